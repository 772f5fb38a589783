// The rows of TPE's options, and which of its samplers they ask for: a preset of another tuner, one
// model per constraint, or TPE itself. What a preset cannot do (several objectives,
// constraints) is refused when the study is read, with the way out, and never ignored.

#include "tuner/sampler/tpe/tpe_options.h"

#include "tuner/options/fields.h"
#include "tuner/sampler/tpe/ctpe_sampler.h"
#include "tuner/sampler/tpe/presets/preset_sampler.h"
#include "tuner/sampler/tpe/tpe_sampler.h"

namespace tune::tuner {
namespace {

/// Hyperopt's own default.
constexpr int kHyperoptStartup = 20;
constexpr int kCandidatesMax = 1000;
constexpr int kWindowMax = 100'000'000;

using PresetNames = std::vector<std::pair<std::string, TpePreset>>;

const PresetNames& preset_names() {
    static const PresetNames kNames = {{"tune", TpePreset::kTune},
                                       {"optuna5", TpePreset::kOptuna5},
                                       {"optuna4", TpePreset::kOptuna4},
                                       {"hyperopt", TpePreset::kHyperopt},
                                       {"watanabe", TpePreset::kWatanabe}};
    return kNames;
}

bool is_foreign(TpePreset preset) {
    return preset == TpePreset::kHyperopt || preset == TpePreset::kWatanabe;
}

OptionTable tpe_rows() {
    using Options = TpeOptions;
    TableOf<Options> table;
    table
        .integer("startup", &Options::startup, 0, kCountMax,
                 "random trials before the model is used")
        .defaults_to("10; 20 with the preset hyperopt");
    table.integer("candidates", &Options::candidates, 1, kCandidatesMax,
                  "points drawn for each suggestion");
    table.choice(
        "preset", &Options::preset, preset_names(),
        "tune: optuna5 with kernels of continuous parameters down to a fiftieth of the "
        "range; optuna5: joint model, running trials count as bad; optuna4: each parameter "
        "by itself, running trials not seen; hyperopt: good trials sqrt(n)/4, each "
        "parameter by itself; watanabe: arXiv:2304.11127");
    table
        .integer("window", &Options::window, 0, kWindowMax,
                 "bad trials in the model, the latest; 0: all")
        .brief();
    table
        .choice("constraints", &Options::constraints,
                std::vector<std::pair<std::string, ConstraintRule>>{
                    {"joint", ConstraintRule::kJoint}, {"each", ConstraintRule::kEach}},
                "joint: infeasible trials rank last in one model; each: each constraint has a "
                "model of its own")
        .brief();
    table.check([](const Fields& fields, Options& options) -> Result<void> {
        const bool has_startup = fields.find("startup") != nullptr;
        if (options.preset == TpePreset::kHyperopt && !has_startup)
            options.startup = kHyperoptStartup;
        return {};
    });
    return table;
}

std::unique_ptr<Sampler> make_chosen(const SamplerConfig& config, const SamplerContext& context) {
    return make_tpe(config.get<TpeOptions>(), context);
}

Result<void> check_tpe(const SamplerConfig& config, const StudyShape& shape) {
    const auto& options = config.get<TpeOptions>();
    const bool is_several = shape.objectives > 1;
    if ((is_several || shape.has_constraints) && is_foreign(options.preset)) {
        std::string name;
        for (const auto& [text, preset] : preset_names())
            if (preset == options.preset) name = text;
        return error_at(
            {}, "sampler",
            "the preset " + name + " takes one objective and no constraints; leave it out here");
    }
    const bool is_each = options.constraints == ConstraintRule::kEach && shape.has_constraints;
    const bool is_plain =
        options.preset == TpePreset::kTune || options.preset == TpePreset::kOptuna5;
    if (is_each && (is_several || !is_plain))
        return error_at({}, "sampler.constraints",
                        "one model a constraint (each) goes with one objective and no other "
                        "preset; leave constraints out here");
    return {};
}

}  // namespace

const SamplerKind& tpe_sampler() {
    static const OptionTable kOptions = tpe_rows();
    static const SamplerKind kKind = [] {
        SamplerKind kind{
            {"tpe", "the best of some draws from a model of the good trials", kOptions},
            make_chosen};
        kind.takes_more = true;
        kind.check_study = check_tpe;
        return kind;
    }();
    return kKind;
}

std::unique_ptr<Sampler> make_tpe(const TpeOptions& options, const SamplerContext& context) {
    const Objectives& objectives = context.objectives;
    const Goal goal = objectives.goals.front();
    if (is_foreign(options.preset))
        return std::make_unique<PresetSampler>(context.space, options, goal, context.seed);
    if (objectives.is_constrained && options.constraints == ConstraintRule::kEach)
        return std::make_unique<CtpeSampler>(context.space, options, goal, context.seed);
    return std::make_unique<TpeSampler>(context.space, options, objectives,
                                        TpeSources{std::make_unique<CounterSource>(context.seed),
                                                   std::make_unique<CounterSource>(context.seed)},
                                        context.seen);
}

}  // namespace tune::tuner
