#pragma once
// The positions of a study's log. Each is given once, to a suggestion or to the end of a trial, so
// that of any two of them a replay knows which the study saw first.

#include <algorithm>
#include <cstdint>

namespace tune::tuner {

/// Not thread-safe: part of a Study.
class StudyLog {
public:
    /// The last one that was given; 0: none was.
    [[nodiscard]] std::int64_t position() const { return position_; }
    [[nodiscard]] std::int64_t next() { return ++position_; }
    /// One that was given before a restart: later ones lie above it.
    void reach(std::int64_t position) { position_ = std::max(position_, position); }

private:
    std::int64_t position_ = 0;
};

}  // namespace tune::tuner
