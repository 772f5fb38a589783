#pragma once
// No point twice. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/decorators/seen_points.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/random_sampler.h"

namespace tune::tuner {

/// What happens to a point that a trial has had.
struct Repeats {
    bool are_reused = false;  // kept where its value is known, unless kRepeatsMax in a row were
    bool is_near = true;      // replaced by a point that differs little; else by any
};

/// Wraps a sampler of a finite space: where that proposes what a trial has had, another point is
/// drawn that none has had, and the space is exhausted when there is none. Points with given values
/// are not replaced.
class DeduplicatingSampler final : public Sampler {
public:
    /// `points`: of the whole space, if it is small enough to be listed. `seen`: is filled here;
    /// `inner` may look at it.
    DeduplicatingSampler(const Space& space, std::optional<std::vector<Point>> points,
                         std::unique_ptr<Sampler> inner, std::shared_ptr<SeenPoints> seen,
                         std::uint64_t seed, Repeats repeats);

    /// A sampler that is sure of its best point would propose it for ever.
    static constexpr std::uint64_t kRepeatsMax = 10;

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;
    [[nodiscard]] bool is_exhausted() const override {
        return points_ && seen_->size() >= points_->size();
    }

private:
    [[nodiscard]] std::optional<Point> unseen(std::uint64_t number, const Point& wanted) const;
    [[nodiscard]] Point drawn(std::uint64_t number, std::uint64_t turn, const Point& wanted) const;
    [[nodiscard]] bool may_repeat(std::uint64_t number, const Seen& seen) const;

    Space space_;
    std::vector<Group> groups_;
    std::optional<std::vector<Point>> points_;
    std::unique_ptr<Sampler> inner_;
    std::shared_ptr<SeenPoints> seen_;
    std::uint64_t seed_;
    Repeats repeats_;
    std::unordered_map<std::uint64_t, const Seen*> by_number_;  // only where they are reused
};

/// True if every parameter has finitely many values.
[[nodiscard]] bool is_finite_space(const Space& space);

}  // namespace tune::tuner
