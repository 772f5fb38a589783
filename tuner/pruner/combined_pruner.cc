// Every part sees every report and is asked each time, so that what it keeps (ASHA's rungs) does
// not depend on what the others say.

#include "tuner/pruner/combined_pruner.h"

namespace tune::tuner {

void CombinedPruner::note(std::uint64_t number, std::int64_t step, double value) {
    for (const auto& part : parts_) part->note(number, step, value);
}

Verdict CombinedPruner::judge(std::uint64_t number) {
    std::size_t against = 0;
    for (const auto& part : parts_) against += part->judge(number) == Verdict::kPrune ? 1 : 0;
    return against >= (needs_all_ ? parts_.size() : 1) ? Verdict::kPrune : Verdict::kKeep;
}

void CombinedPruner::finish(std::uint64_t number, End end, double value) {
    for (const auto& part : parts_) part->finish(number, end, value);
}

}  // namespace tune::tuner
