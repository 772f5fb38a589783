#pragma once
// No point twice. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/finite_points.h"
#include "tuner/sampler/random_sampler.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// Wraps a sampler of a finite space: where that proposes what a trial has had, a point that none
/// has had is drawn at random instead, and the space is exhausted when there is none. Points with
/// given values are not replaced. With `reuses`, neither are points that a trial completed, whose
/// values are known, unless kRepeatsMax trials in a row were repeats.
class DistinctSampler final : public Sampler {
public:
    /// `points`: of the whole space, if it is small enough to be listed.
    DistinctSampler(const Space& space, std::optional<std::vector<Point>> points,
                    std::unique_ptr<Sampler> inner, std::uint64_t seed, bool reuses);

    /// A sampler that is sure of its best point would propose it for ever.
    static constexpr std::uint64_t kRepeatsMax = 10;

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] bool is_exhausted() const override {
        return points_ && seen_.size() >= points_->size();
    }

private:
    struct Seen {
        std::uint64_t first = 0;   // the lowest number of a trial of this point
        bool is_complete = false;  // one of them has a value
    };

    [[nodiscard]] std::optional<Point> unseen(std::uint64_t number) const;
    [[nodiscard]] bool may_repeat(std::uint64_t number, const Seen& seen) const;

    Space space_;
    std::vector<Group> groups_;
    std::optional<std::vector<Point>> points_;
    std::unique_ptr<Sampler> inner_;
    std::uint64_t seed_;
    bool reuses_;
    std::unordered_map<Point, Seen, PointHash, PointEqual> seen_;
    std::unordered_map<std::uint64_t, const Seen*> by_number_;  // only where `reuses`
};

/// True if every parameter has finitely many values.
[[nodiscard]] bool is_finite_space(const Space& space);

}  // namespace tune::tuner
