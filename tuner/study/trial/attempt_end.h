#pragma once
// What the end of an attempt means for its trial: whether it waits for another attempt or ends, as
// what and with which values. Decides and counts on the trial; who calls it moves the trial.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/protocol.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// A trial whose machine or agent was lost this often is given up: it may be what kills them.
inline constexpr int kLostAttemptsMax = 10;

/// How a trial ends for good.
struct TrialEnd {
    TrialState state = TrialState::kFailed;
    std::optional<double> value = {};
    std::string reason = {};
    std::int64_t now_ms = 0;
    std::vector<double> more_values = {};
    std::vector<double> constraint_values = {};
};

struct AttemptEnd {
    std::optional<TrialEnd> end = {};  ///< nothing: the trial waits for the next attempt
    std::string reason = {};           ///< why it waits
};

/// Of a trial with this result. `reason`: a remark of the caller, mostly empty.
[[nodiscard]] TrialEnd completed(const TrialResult& result, std::string reason,
                                 std::int64_t now_ms);

/// By the outcome that an agent gives, the metrics that arrived, and the retry rules of the study.
/// Notes the finish, and a failure where it is one, on the trial. REQUIRES: it has progress.
[[nodiscard]] AttemptEnd attempt_end(Trial& trial, const FinishRequest& request,
                                     const StudyConfig& config, std::int64_t now_ms);

/// Of an attempt whose agent is gone. After kLostAttemptsMax of them the trial fails.
[[nodiscard]] AttemptEnd lost_attempt_end(Trial& trial, std::string reason, std::int64_t now_ms);

/// The sentence for a trial that ended well without its metric. `is_unheard`: it is known that no
/// request came with its credential.
[[nodiscard]] std::string metric_never_arrived(const std::string& metric,
                                               const std::vector<std::string>& arrived,
                                               bool is_unheard = false);

}  // namespace tune::tuner
