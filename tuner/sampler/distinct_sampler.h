#pragma once
// No point twice. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "tuner/sampler/finite_points.h"
#include "tuner/sampler/random_sampler.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// Wraps a sampler of a finite space: where that proposes what a trial has had, a point that none
/// has had is drawn at random instead, and the space is exhausted when there is none. Points with
/// given values are not replaced.
class DistinctSampler final : public Sampler {
public:
    /// `points`: of the whole space, if it is small enough to be listed.
    DistinctSampler(const Space& space, std::optional<std::vector<Point>> points,
                    std::unique_ptr<Sampler> inner, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] bool is_exhausted() const override {
        return points_ && seen_.size() >= points_->size();
    }

private:
    [[nodiscard]] std::optional<Point> unseen(std::uint64_t number) const;

    Space space_;
    std::vector<Group> groups_;
    std::optional<std::vector<Point>> points_;
    std::unique_ptr<Sampler> inner_;
    std::uint64_t seed_;
    std::unordered_set<Point, PointHash, PointEqual> seen_;
};

/// True if every parameter has finitely many values.
[[nodiscard]] bool is_finite_space(const Space& space);

}  // namespace tune::tuner
