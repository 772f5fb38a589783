#include "tuner/sampler/simple/random_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {

double draw_uniform(const Parameter& parameter, UniformSource& source, std::uint64_t trial) {
    const Axis axis = Axis::of(parameter);
    double uniform = 0;
    if (!axis.shares.empty()) {
        source.fill(trial, axis.key, {&uniform, 1});
        return axis.category_at(uniform);
    }
    if (axis.kind == Axis::Kind::kCategory) {
        // One number a category, the largest wins: uniform, and what the optuna of the golden files
        // does.
        std::vector<double> scores(parameter.count());
        source.fill(trial, axis.key, scores);
        return static_cast<double>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    }
    source.fill(trial, axis.key, {&uniform, 1});
    const double value = axis.value(axis.quantile(uniform));
    if (axis.kind == Axis::Kind::kStepped) return parameter.snap(value);
    // The upper end of a continuous range has probability 0; rounding must not give it more.
    return std::min(value, std::nextafter(parameter.high, parameter.low));
}

void draw_uniform(const Space& space, const Group& group, UniformSource& source,
                  std::uint64_t trial, Point& point) {
    for (const std::size_t index : group.members)
        point[index] = draw_uniform(space[index], source, trial);
}

Point compose_from(const Space& space, const std::vector<Group>& groups, const Point& fixed,
                   const Point& start, UniformSource& source, std::uint64_t trial) {
    return compose_point(space, groups, fixed, [&](const Group& group, Point& point) {
        for (const std::size_t index : group.members)
            point[index] =
                is_active(start[index]) ? start[index] : draw_uniform(space[index], source, trial);
    });
}

RandomSampler::RandomSampler(const Space& space, std::unique_ptr<UniformSource> source)
    : space_(space), groups_(groups_of(space)), source_(std::move(source)) {}

Result<void> RandomSampler::observe(const Observation& observation) {
    if (observation.state == Observation::State::kGone) return {};
    return space_.check(observation.point);
}

Point RandomSampler::suggest(std::uint64_t number, const Point& fixed) {
    return compose_from(space_, groups_, fixed, space_.empty_point(), *source_, number);
}

const SamplerKind& random_sampler() {
    static const OptionTable kOptions = TableOf<NoOptions>();
    static const SamplerKind kKind = [] {
        SamplerKind kind{
            {"random", "independent draws", kOptions},
            [](const SamplerConfig&, const SamplerContext& context) -> std::unique_ptr<Sampler> {
                return std::make_unique<RandomSampler>(
                    context.space, std::make_unique<CounterSource>(context.seed));
            }};
        kind.uses_results = false;
        kind.takes_more = true;
        return kind;
    }();
    return kKind;
}

}  // namespace tune::tuner
