#pragma once
// How much memory a trial of a study needs, learnt from those that have ended.

#include <cstdint>
#include <deque>
#include <optional>

namespace tune::tuner {

/// Not thread-safe. The last kKept peaks count: what a study tries changes while it runs.
class PeakMemory {
public:
    static constexpr std::size_t kKept = 64;
    /// Peaks before the first estimate.
    static constexpr std::size_t kFirst = 3;

    /// A trial had so much at most; 0: unknown, and nothing is learnt.
    void note(std::int64_t bytes);
    /// A trial that was given so much ran out of it.
    void note_shortage(std::int64_t given);
    /// What to give to a trial: the 95th percentile and 15 % more, and half as much again as what
    /// was not enough; nothing: not known yet. O(1).
    [[nodiscard]] std::optional<std::int64_t> estimate() const { return estimate_; }

private:
    void update();

    std::deque<std::int64_t> peaks_;
    std::int64_t floor_ = 0;
    std::optional<std::int64_t> estimate_;
};

}  // namespace tune::tuner
