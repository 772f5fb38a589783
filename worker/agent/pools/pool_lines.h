#pragma once
// The lines between an agent and a pool: JSON objects, one a line, both ways. docs/pools.md is the
// contract with the programs of users. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tuner/protocol.h"

namespace tune::worker {

/// Asks for the trial of `lease`. The folders are absolute; an empty `resume_dir`: it starts from
/// nothing. A model that is left in `model_dir` is logged (empty: none).
[[nodiscard]] std::string run_line(const tuner::Lease& lease, const std::string& checkpoint_dir,
                                   const std::string& resume_dir,
                                   const std::string& model_dir = {});

/// Asks for the end of one trial: "prune", or "stop".
[[nodiscard]] std::string end_line(std::string_view op, const tuner::AttemptId& id);

/// Says that no more trials come.
[[nodiscard]] std::string finish_line();

struct PoolEvent {
    enum class Kind { kStarted, kMetrics, kLog, kEnded, kRefused };
    Kind kind = Kind::kStarted;
    tuner::AttemptId id = {};  ///< of kRefused only where the line names one
    /// kMetrics: the values as a JSON object; kLog: text of the log, whole lines.
    std::string text = {};
    bool is_error = false;     ///< kLog: of stderr
    int exit_code = 0;         ///< kEnded
    std::string message = {};  ///< kEnded, kRefused
};

/// Errors: kInvalidParameterValue for what is no line of a pool: output of the program for people.
[[nodiscard]] Result<PoolEvent> parse_pool_event(std::string_view line);

}  // namespace tune::worker
