#pragma once
// Every combination once. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "tuner/sampler/sampler_kind.h"
#include "tuner/sampler/simple/finite_points.h"

namespace tune::tuner {

struct GridOptions {
    int points = 0;  // values of a continuous parameter; 0: refuse it

    [[nodiscard]] bool operator==(const GridOptions&) const = default;
};

/// "grid" in a study.
[[nodiscard]] const SamplerKind& grid_sampler();

/// The points of the grid in an order that the seed shuffles; a suggestion is the first that no
/// trial has had, whatever became of it. Enqueued trials count where they lie on the grid.
class GridSampler final : public Sampler {
public:
    /// `points`: of the grid, each once.
    GridSampler(const Space& space, std::vector<Point> points, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] bool is_exhausted() const override { return unseen_ == 0; }

private:
    Space space_;
    std::uint64_t seed_;
    std::vector<Point> points_;
    std::unordered_set<Point, PointHash, PointEqual> grid_;
    std::unordered_set<Point, PointHash, PointEqual> seen_;
    std::size_t unseen_;      // points of the grid
    std::size_t cursor_ = 0;  // those before it are seen
};

}  // namespace tune::tuner
