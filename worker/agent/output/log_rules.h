#pragma once
// What the lines of a trial's output say about its failure. Pure: no I/O.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tuner/log_rule.h"

namespace tune::worker {

/// A line that a rule was found in.
struct LogHit {
    tuner::LogAction action = tuner::LogAction::kRetry;
    std::string line = {};  ///< without control characters, cut at 300 bytes
};

/// Rules for a GPU that fails: memory errors that were not corrected, lost devices, Xids of the
/// device (fault_of_xid). They apply to trials that have GPUs.
[[nodiscard]] const std::vector<tuner::LogRule>& gpu_log_rules();

/// Not thread-safe.
class LogRules {
public:
    /// In order of precedence. Errors: kInvalidParameterValue with the pattern and what is wrong
    /// with it.
    [[nodiscard]] static Result<LogRules> create(const std::vector<tuner::LogRule>& rules);
    ~LogRules();
    LogRules(LogRules&&) noexcept;
    LogRules& operator=(LogRules&&) noexcept;

    /// Looks at a line. All patterns at once: about 1 us for 100 bytes.
    void read(std::string_view line);
    /// Of the rules that were found so far the first in the order of `create`, with its first line.
    [[nodiscard]] const std::optional<LogHit>& hit() const { return hit_; }

private:
    class Patterns;
    LogRules(std::unique_ptr<Patterns> patterns, std::vector<tuner::LogAction> actions);

    std::unique_ptr<Patterns> patterns_;  // null: there are none
    std::vector<tuner::LogAction> actions_;
    std::size_t best_;  // index of the rule of hit_, or how many there are
    std::optional<LogHit> hit_;
};

}  // namespace tune::worker
