#pragma once
// A sampler that begins with what another study saw. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <span>

#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// The earlier trials come before all of the study's own, so that samplers which weigh by age give
/// them the least weight, and they count as start-up trials. Numbers of the study's trials are
/// moved up behind them, for the random numbers too.
class WarmStartSampler final : public Sampler {
public:
    /// `earlier`: complete trials of the sampler's space, least weight first; their numbers are
    /// not read.
    WarmStartSampler(std::unique_ptr<Sampler> inner, std::span<const Observation> earlier);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] bool is_exhausted() const override { return inner_->is_exhausted(); }

private:
    std::unique_ptr<Sampler> inner_;
    std::uint64_t earlier_;
};

}  // namespace tune::tuner
