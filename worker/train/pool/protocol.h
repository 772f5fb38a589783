#pragma once
// The lines between an agent and `tune-trainer pool`: JSON objects, one a line, both ways.
// docs/trainer.md describes them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "worker/train/exit_code.h"

namespace tune::train {

/// Which try of which trial: the token under which everything about it is said.
struct AttemptId {
    std::string trial;
    std::int64_t attempt = 0;
    auto operator<=>(const AttemptId&) const = default;
};

/// What a trial of the pool does.
enum class TrialKind {
    kTrain,   ///< as `tune-trainer train`
    kReport,  ///< gives its values out as metrics and ends: a trial that costs nothing
};

struct TrialRequest {
    AttemptId id;
    TrialKind kind = TrialKind::kTrain;
    /// --NAME=VALUE of `tune-trainer train`, by name.
    std::map<std::string, std::string> parameters = {};
    /// The same of what the agent says beside the parameters: seed, folders, the last epoch. What
    /// the command or the parameters say wins.
    std::map<std::string, std::string> origin = {};
    /// Of kReport, as JSON.
    std::string values = {};
};

/// Why a trial is to end early.
enum class EndReason { kStop, kPrune };

struct PoolCommand {
    enum class Kind { kRun, kEnd, kFinish };
    Kind kind = Kind::kFinish;
    TrialRequest request = {};            ///< kRun
    AttemptId id = {};                    ///< kEnd
    EndReason reason = EndReason::kStop;  ///< kEnd
};

/// Errors: kInvalidParameterValue saying what is wrong with the line.
[[nodiscard]] Result<PoolCommand> parse_command(std::string_view line);

/// How a trial ended.
struct TrialEnd {
    ExitCode code = ExitCode::kDone;
    std::string message = {};  ///< of an error, or the reason of an early stop
    std::int64_t epochs = 0;
    std::int64_t steps = 0;
    std::optional<double> best = {};
};

// Lines to the agent, each with a line feed.
[[nodiscard]] std::string started_line(const AttemptId& id);
/// `values`: a JSON object, as metric_line() has it.
[[nodiscard]] std::string metrics_line(const AttemptId& id, std::string_view values);
[[nodiscard]] std::string ended_line(const AttemptId& id, const TrialEnd& end);
/// A line of the agent that could not be obeyed.
[[nodiscard]] std::string refused_line(const std::string& message);

}  // namespace tune::train
