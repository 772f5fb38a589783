#include "tuner/sampler/pbt/pbt_options.h"

#include <algorithm>

#include "tuner/options/fields.h"
#include "tuner/sampler/pbt/pbt_sampler.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

constexpr int kMembersMax = 1000;

OptionTable pbt_rows() {
    using Options = PbtOptions;
    TableOf<Options> table;
    table.integer("population", &Options::population, 2, kMembersMax, "members");
    table.integer("interval", &Options::interval, 1, kStepMax, "steps of a trial");
    table.integer("warmup", &Options::warmup, 1, kStepMax, "steps of a member's first trial")
        .brief()
        .defaults_to("as interval");
    table
        .integer("max", &Options::max, 1, kStepMax,
                 "the step at which a member has trained to the end")
        .brief()
        .defaults_to("no end: give a budget");
    table.number("quantile", &Options::quantile, 0, 0.5,
                 "this share of the worst continue one of as many of the best");
    table.number("resample_probability", &Options::resample_probability, 0, 1,
                 "of a new draw, for each parameter of those");
    table.numbers("factors", &Options::factors,
                  {.low = 0.01,
                   .high = 100,
                   .count_low = 1,
                   .count_high = 16,
                   .example = "[0.8, 1.2]",
                   .get = {},
                   .set = {}},
                  "else the value times one of these");
    return table;
}

std::unique_ptr<Sampler> make_pbt(const SamplerConfig& config, const SamplerContext& context) {
    return std::make_unique<PbtSampler>(context.space, config.get<PbtOptions>(),
                                        context.objectives.goals.front(), context.seed);
}

Result<void> check_pbt(const SamplerConfig&, const StudyShape& shape) {
    if (!shape.has_history) return {};
    return error_at({}, "warm_start.history",
                    "the sampler pbt continues checkpoints of its own trials and learns nothing "
                    "from another study's; leave history out (top is fine)");
}

/// It ends when every member has trained to the end, not when points run out.
std::optional<std::uint64_t> no_points(const Space&, const SamplerConfig&) {
    return std::nullopt;
}

}  // namespace

const SamplerKind& pbt_sampler() {
    static const OptionTable kOptions = pbt_rows();
    static const SamplerKind kKind = [] {
        SamplerKind kind{{"pbt",
                          "population based training: a trial is one member for one interval and "
                          "continues the checkpoint of its parent",
                          kOptions},
                         make_pbt};
        kind.ends_itself = true;
        kind.check_study = check_pbt;
        kind.point_count = no_points;
        return kind;
    }();
    return kKind;
}

Steps steps_of(const PbtOptions& options, int generation) {
    const std::int64_t first = options.warmup != 0 ? options.warmup : options.interval;
    // Far beyond what a lineage can be; so that no product overflows.
    const auto later = static_cast<double>(options.interval) * static_cast<double>(generation);
    const bool is_far = later > static_cast<double>(kStepMax);
    const std::int64_t end = is_far ? kStepMax : first + options.interval * generation;
    Steps steps{generation == 0 ? 0 : end - options.interval, end};
    if (options.max != 0) steps.to = std::min(steps.to, options.max);
    return steps;
}

}  // namespace tune::tuner
