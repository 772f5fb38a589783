#include "tuner/sampler/decorators/warm_start_sampler.h"

#include <utility>

#include "base/check.h"

namespace tune::tuner {

WarmStartSampler::WarmStartSampler(std::unique_ptr<Sampler> inner,
                                   std::span<const Observation> earlier)
    : inner_(std::move(inner)), earlier_(earlier.size()) {
    for (std::size_t i = 0; i < earlier.size(); ++i) {
        Observation seen = earlier[i];
        seen.number = i;
        const Result<void> told = inner_->observe(seen);
        TUNE_CHECK(told.has_value(), "earlier trials lie in the space");
    }
}

Result<void> WarmStartSampler::observe(const Observation& observation) {
    Observation moved = observation;
    moved.number += earlier_;
    return inner_->observe(moved);
}

Point WarmStartSampler::suggest(std::uint64_t number, const Point& fixed) {
    return inner_->suggest(number + earlier_, fixed);
}

}  // namespace tune::tuner
