#pragma once
// Independent uniform draws; the baseline, and TPE's first trials. Private to tuner/sampler.

#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/sampler/axis.h"
#include "tuner/sampler/layout.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

/// A draw from the parameter's prior: uniform on its (widened, logarithmic) segment or its
/// categories unless the space says otherwise. Source of the uniform arithmetic: optuna 5.0.0,
/// _transform.py and samplers/_random.py.
[[nodiscard]] double draw_uniform(const Parameter& parameter, UniformSource& source,
                                  std::uint64_t trial);

/// The same for all parameters of a group, into `point`.
void draw_uniform(const Space& space, const Group& group, UniformSource& source,
                  std::uint64_t trial, Point& point);

/// Fills what the conditions make active: `fixed` values where they are given, `draw(group, point)`
/// for the rest.
template <class Draw>
[[nodiscard]] Point compose_point(const Space& space, const std::vector<Group>& groups,
                                  const Point& fixed, Draw draw) {
    Point point = space.empty_point();
    for (const Group& group : groups) {
        if (!space.active(group.members.front(), point)) continue;
        if (group.is_fixed) {
            point[group.members.front()] = space[group.members.front()].low;
        } else {
            draw(group, point);
        }
        for (const std::size_t index : group.members) {
            if (!fixed.empty() && is_active(fixed[index])) point[index] = fixed[index];
        }
    }
    return point;
}

/// A point of `start`'s values, where it has any, and of independent draws for all else.
[[nodiscard]] Point compose_from(const Space& space, const std::vector<Group>& groups,
                                 const Point& fixed, const Point& start, UniformSource& source,
                                 std::uint64_t trial);

class RandomSampler final : public Sampler {
public:
    RandomSampler(const Space& space, std::unique_ptr<UniformSource> source);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    Space space_;
    std::vector<Group> groups_;
    std::unique_ptr<UniformSource> source_;
};

/// "random" in a study.
[[nodiscard]] const SamplerKind& random_sampler();

}  // namespace tune::tuner
