#pragma once
// When a study stops because its command cannot work: trials that fail alike, one after another,
// before a single one succeeds. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// Follows ended trials in the order of their ends. O(length of the reason) a trial, O(1) memory.
class FailureWatch {
public:
    /// `limit`: so many failures alike in a row stop the study; 0: none do.
    explicit FailureWatch(std::uint64_t limit) : limit_(limit) {}

    /// A complete or pruned trial is a success; a cancelled one says nothing. A failure without a
    /// reason is like no other one: its client did not say what went wrong.
    void trial_ended(TrialState state, std::string_view reason);

    /// Why the study is to stop, one sentence without a full stop; nothing: go on.
    [[nodiscard]] std::optional<std::string> should_stop() const;

private:
    std::uint64_t limit_;
    bool has_success_ = false;
    std::uint64_t alike_ = 0;  ///< of the last failures
    std::string kind_;         ///< of the last failure
};

/// What two reasons have in common where the same thing went wrong with other values: the type of
/// an exception without its message; else every word that holds a digit reads "#".
[[nodiscard]] std::string failure_kind(std::string_view reason);

/// The end of a beginning that failed: what ended up to `until` counts towards no budget. Failed
/// trials all; cancelled ones where the stop after failures at `stopped_at` cancelled them. Both
/// are log positions, so that a restart finds the same trials.
struct ExcusedEnds {
    std::int64_t stopped_at = 0;
    std::int64_t until = 0;  ///< 0: stopped, and not resumed since

    [[nodiscard]] bool holds(const Trial& trial) const;
};

/// As the study's document holds them, and back. Throws as Json::at does.
[[nodiscard]] Json to_json(const std::vector<ExcusedEnds>& excused);
[[nodiscard]] std::vector<ExcusedEnds> excused_from_json(const Json& json);

}  // namespace tune::tuner
