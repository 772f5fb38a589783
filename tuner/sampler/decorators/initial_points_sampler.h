#pragma once
// The points that the study wants tried first. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// Wraps a sampler of a space with first points (Space::first_points): an ask without given values
/// takes the first of them that no other trial has had, and lets the wrapped sampler fill what it
/// leaves open. A trial has had a point if it has all of its values that exist in the trial.
class InitialPointsSampler final : public Sampler {
public:
    InitialPointsSampler(const Space& space, std::unique_ptr<Sampler> inner);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] std::optional<Origin> origin(std::uint64_t number) override {
        return inner_->origin(number);
    }
    /// First points may lie beside a grid, but are tried before it is used up.
    [[nodiscard]] bool is_exhausted() const override { return inner_->is_exhausted(); }

private:
    Space space_;
    std::unique_ptr<Sampler> inner_;
    std::vector<Point> points_;
    std::vector<std::set<std::uint64_t>> had_by_;  // by point: numbers of trials
};

}  // namespace tune::tuner
