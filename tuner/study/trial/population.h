#pragma once
// The last complete trial of each member of a study of population based training: whom a later
// trial may continue. Kept as trials come and end, so that nobody looks through the history.

#include <cstdint>
#include <map>

#include "tuner/study/trial/trial.h"

namespace tune::tuner {

class Population {
public:
    /// A trial that is new or has ended. O(log(members)).
    void note(const Trial& trial);

    /// By member; of members that a smaller population left behind, too, for it may grow again.
    [[nodiscard]] const std::map<int, std::uint64_t>& heads() const { return heads_; }
    /// Trials before this one may be of another sampler.
    [[nodiscard]] std::uint64_t first() const { return first_; }

private:
    std::map<int, std::uint64_t> heads_;
    std::uint64_t first_ = 0;
};

}  // namespace tune::tuner
