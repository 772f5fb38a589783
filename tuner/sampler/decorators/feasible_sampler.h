#pragma once
// No forbidden point. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/random_sampler.h"

namespace tune::tuner {

/// Wraps a sampler of a space with rules: where that proposes a forbidden point, an allowed one is
/// drawn from the prior instead (allowed_point.h). Without given values the suggestion is always
/// allowed; with some it may not be, and Space::check says so.
class FeasibleSampler final : public Sampler {
public:
    /// REQUIRES: the space has rules that some point obeys.
    FeasibleSampler(const Space& space, std::unique_ptr<Sampler> inner, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] std::optional<Origin> origin(std::uint64_t number) override {
        return inner_->origin(number);
    }
    [[nodiscard]] bool is_exhausted() const override { return inner_->is_exhausted(); }

private:
    Space space_;
    std::unique_ptr<Sampler> inner_;
    std::uint64_t seed_;
    Point example_;  // an allowed point, for when chance finds none
};

}  // namespace tune::tuner
