#pragma once
// When an agent that must end at a given time stops taking trials, and when it stops those it has.
// Pure: times come in, in milliseconds of any one clock.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace tune::worker {

/// How long trials take, by the last ones of each study that ran to their end. Not thread-safe.
class TrialDurations {
public:
    void add(const std::string& study, std::int64_t wall_ms);
    /// The time within which nine of ten trials end: of the study whose trials take longest, as
    /// nobody knows which study the next trial will be of. 0: nothing is known.
    [[nodiscard]] std::int64_t expected_ms() const;

private:
    static constexpr std::size_t kPerStudyMax = 100;
    static constexpr std::size_t kStudiesMax = 100;
    std::map<std::string, std::deque<std::int64_t>> durations_;
};

struct TimeLimit {
    std::int64_t begin_ms = 0;
    std::int64_t limit_ms = 0;  // 0: none

    /// From then on no trial is taken.
    [[nodiscard]] std::int64_t last_lease_ms(std::int64_t expected_ms, std::int64_t grace_ms) const;
    /// Then the trials that still run are asked to end; `grace_ms` is the longest time that one of
    /// them may take over it.
    [[nodiscard]] std::int64_t stop_ms(std::int64_t grace_ms) const;
};

}  // namespace tune::worker
