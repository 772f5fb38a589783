// Which sampler, decided by what was measured (tests/bench/tuner, figures in docs/samplers.md):
//
//   a Gaussian process finds better values than TPE with up to a few hundred trials on every kind
//   of space that was tried, conditional and categorical ones too, alone and with 8, 32 and 64
//   trials at a time. Its cost grows with the square of the trials and with the parameters, so it
//   stops where an ask would take longer than 5 ms.
//
//   Then CMA-ES goes on from the best trial where every parameter is a number that is always there
//   (at least two of them): 700 trials end lower with it than with TPE. Elsewhere TPE goes on.
//
//   Noise needs no switch between samplers: the process learns how large it is (or is told), and
//   looks around the best trial only while that is little. Nor does the number of trials at a time:
//   pending ones are part of each of the three.
//
//   Every fifth trial is TPE's in the meantime. Where the process is misled (many narrow valleys)
//   the two together find better values than either; where it is not, a fifth costs little.
//
// The switch is by the number of finished trials, which is part of the set of observations: a
// suggestion stays a function of that set, and of nothing that a user may change on the way.

#include "tuner/sampler/auto_sampler.h"

#include <cmath>
#include <utility>

#include "base/text/counted.h"
#include "tuner/sampler/cma/cma_sampler.h"
#include "tuner/sampler/gp/gp_sampler.h"
#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kGpTrials = 300;
constexpr std::uint64_t kTpeEvery = 5;
/// Beyond so many parameters the kernel's length scales can no longer be told apart by 300 trials,
/// and an ask takes too long.
constexpr std::size_t kGpParametersMax = 40;
/// So many trials at a time are nothing special; with so many the samplers were compared.
constexpr int kParallelUsual = 8;
constexpr int kParallelMeasured = 64;

std::string noise_text(const AutoOptions& options) {
    if (!options.noise) return "noise is learnt";
    return *options.noise > 0 ? "with noise as given" : "without noise, as given";
}

std::string parallel_text(int parallel) {
    if (parallel <= 1) return "";
    std::string text = "; the " + std::to_string(parallel) + " at a time keep apart";
    if (parallel <= kParallelUsual) return text;
    const std::string most = std::to_string(kParallelMeasured);
    if (parallel <= kParallelMeasured)
        return text + ", better than with tpe, cmaes or qmc as measured with up to " + most;
    return text + ", though more than " + most + " were never measured";
}

}  // namespace

AutoChoice choose_sampler(const Space& space, const Objectives& objectives) {
    std::size_t free = 0;
    std::size_t categories = 0;
    std::size_t conditional = 0;
    for (const Parameter& parameter : space.parameters()) {
        if (parameter.is_single()) continue;
        ++free;
        categories += parameter.kind == Kind::kChoice ? 1 : 0;
        conditional += parameter.when.empty() ? 0 : 1;
    }
    AutoChoice choice;
    choice.reason = counted(static_cast<std::int64_t>(free), "parameter");
    if (free > kGpParametersMax) {
        choice.reason += ", too many for a Gaussian process";
        return choice;
    }
    if (objectives.goals.size() > 1) {
        choice.reason +=
            ", " + counted(static_cast<std::int64_t>(objectives.goals.size()), "objective");
        return choice;
    }
    if (objectives.is_constrained) {
        choice.reason += ", with constraints";
        return choice;
    }
    choice.gp_trials = kGpTrials;
    choice.is_cmaes_last = free > 1 && models_whole(space);
    if (categories > 0)
        choice.reason += ", " + std::to_string(categories) +
                         (categories == 1 ? " of them a category" : " of them categories");
    if (conditional > 0) choice.reason += ", " + std::to_string(conditional) + " under conditions";
    return choice;
}

std::string choice_text(const AutoOptions& options, const StudyOutlook& study) {
    const AutoChoice choice = choose_sampler(study.space, study.objectives);
    const std::optional<std::uint64_t>& trials = study.trials;
    if (choice.gp_trials == 0) return "tpe (" + choice.reason + ")";
    std::string text = "gp with every fifth trial by tpe for the first " +
                       std::to_string(choice.gp_trials) + " trials (" + choice.reason + "; " +
                       noise_text(options) + "), then ";
    text += choice.is_cmaes_last ? "cmaes from the best one, for all are numbers, with every fifth "
                                   "by tpe"
                                 : "tpe";
    text += parallel_text(study.parallel);
    if (!trials || *trials > choice.gp_trials) return text;
    return text + "; the budget of " + std::to_string(*trials) + " ends before that";
}

namespace {

/// Of the range: a Gaussian process has found the region, CMA-ES is to find its lowest place.
constexpr double kCmaSigma = 0.03;

OptionTable auto_rows() {
    TableOf<AutoOptions> table;
    add_model_rows(table);
    return table;
}

std::unique_ptr<Sampler> make_auto(const SamplerConfig& config, const SamplerContext& context) {
    const auto& options = config.get<AutoOptions>();
    const Space& space = context.space;
    const Goal goal = context.objectives.goals.front();
    AutoParts parts;
    parts.choice = choose_sampler(space, context.objectives);
    parts.later = make_tpe(tpe_within(), context);
    if (parts.choice.gp_trials > 0)
        parts.first = std::make_unique<GpSampler>(
            space, GpOptions{.warp = options.warp, .noise = options.noise}, goal, context.seed);
    if (parts.choice.is_cmaes_last)
        parts.last = std::make_unique<CmaSampler>(
            space, goal, context.seed,
            std::make_unique<RandomSampler>(space, std::make_unique<CounterSource>(context.seed)),
            CmaStart{parts.choice.gp_trials, kCmaSigma});
    return std::make_unique<AutoSampler>(std::move(parts));
}

std::string auto_outlook(const SamplerConfig& config, const StudyOutlook& study) {
    return choice_text(config.get<AutoOptions>(), study);
}

}  // namespace

const SamplerKind& auto_sampler() {
    static const OptionTable kOptions = auto_rows();
    static const SamplerKind kKind = [] {
        SamplerKind kind{{"auto",
                          "what the space and the number of trials call for; `tune plan` says what "
                          "and why",
                          kOptions},
                         make_auto};
        kind.takes_more = true;
        kind.outlook = auto_outlook;
        return kind;
    }();
    return kKind;
}

AutoSampler::AutoSampler(AutoParts parts) : parts_(std::move(parts)) {}

Result<void> AutoSampler::observe(const Observation& observation) {
    TUNE_TRY_VOID(parts_.later->observe(observation));
    if (parts_.last) TUNE_TRY_VOID(parts_.last->observe(observation));
    const bool is_finished =
        observation.state == Observation::State::kPruned ||
        (observation.state == Observation::State::kComplete && !std::isnan(observation.value));
    if (is_finished) {
        finished_.insert(observation.number);
    } else {
        finished_.erase(observation.number);
    }
    return parts_.first ? parts_.first->observe(observation) : Result<void>();
}

Point AutoSampler::suggest(std::uint64_t number, const Point& fixed) {
    const std::size_t others = finished_.size() - finished_.count(number);
    const bool is_first = others < parts_.choice.gp_trials && number % kTpeEvery != 1;
    if (is_first) return parts_.first->suggest(number, fixed);
    const bool is_last =
        parts_.last && others >= parts_.choice.gp_trials && number % kTpeEvery != 1;
    return (is_last ? *parts_.last : *parts_.later).suggest(number, fixed);
}

}  // namespace tune::tuner
