#pragma once
// What a line of a trial's output says about its failure. The same in study files, on the wire and
// in agents; no code here.

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace tune::tuner {

/// What is done when an attempt that printed such a line fails.
enum class LogAction {
    kRetry,          ///< it is none of the trial's faults, and runs again
    kNoRetry,        ///< it would fail again: the trial ends at once
    kExcludeDevice,  ///< as kRetry, and the agent uses its GPUs no more
    kExcludeHost,    ///< as kRetry, and the agent takes no more trials
};

inline constexpr std::array<std::pair<LogAction, std::string_view>, 4> kLogActions = {{
    {LogAction::kRetry, "retry"},
    {LogAction::kNoRetry, "no_retry"},
    {LogAction::kExcludeDevice, "exclude_device"},
    {LogAction::kExcludeHost, "exclude_host"},
}};

struct LogRule {
    std::string pattern = {};  ///< RE2; found anywhere in a line of stdout or stderr
    LogAction action = LogAction::kRetry;

    friend bool operator==(const LogRule&, const LogRule&) = default;
};

}  // namespace tune::tuner
