// An extended space starts a new epoch: the record of a trial names the epoch it was suggested in,
// so a replay asks the sampler of that time, and a trial that is read back is carried over into
// today's space epoch by epoch.

#include "tuner/study/study_definition.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/counted.h"
#include "tuner/space/expression/rules.h"
#include "tuner/study/journal/carry_over.h"
#include "tuner/study/journal/warm_start.h"

namespace tune::tuner {
namespace {

/// Steele et al., "Fast splittable pseudorandom number generators", 2014.
std::uint64_t splitmix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// What else is said of a space, and must not change under its trials.
void add_rule_differences(const Space& was, const Space& now, std::vector<std::string>& found) {
    const auto texts_of = [](const Space& space) {
        return space.rules() != nullptr ? space.rules()->texts() : RuleTexts();
    };
    if (texts_of(now).forbid != texts_of(was).forbid) found.push_back("forbid has other clauses");
    if (texts_of(now).derive != texts_of(was).derive) found.push_back("derive has other values");
}

/// What makes values of two studies incomparable. What a step is called does not.
void add_metric_differences(const StudyConfig& was, const StudyConfig& now,
                            std::vector<std::string>& found) {
    const std::vector<MetricConfig> before = metrics_of(was);
    const std::vector<MetricConfig> after = metrics_of(now);
    if (before.size() != after.size()) {
        const bool is_one = after.size() == 1;
        found.push_back((is_one ? "there is " : "there are ") +
                        counted(static_cast<std::int64_t>(after.size()), "objective") +
                        (is_one ? ", there were " : ", were ") + std::to_string(before.size()));
        return;
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
        const std::string of = before.size() == 1 ? "" : " of '" + after[i].name + "'";
        if (after[i].name != before[i].name)
            found.push_back("metric is '" + after[i].name + "', was '" + before[i].name + "'");
        if (after[i].goal != before[i].goal)
            found.push_back("goal" + of + " is " + std::string(goal_name(after[i].goal)) +
                            ", was " + std::string(goal_name(before[i].goal)));
        if (aggregation_name(after[i]) != aggregation_name(before[i]))
            found.push_back("the metric" + of + " is taken as " + aggregation_name(after[i]) +
                            ", was " + aggregation_name(before[i]));
    }
    if (now.constraints != was.constraints)
        found.push_back("constraints are " + to_text(to_json(now.constraints)) + ", were " +
                        to_text(to_json(was.constraints)));
}

}  // namespace

StudyDefinition::StudyDefinition(StudyIdentity identity, StudyConfig config)
    : identity_(std::move(identity)), config_(std::move(config)) {}

std::shared_ptr<const StudyConfig> StudyDefinition::shared_config() const {
    if (!shared_config_) shared_config_ = std::make_shared<const StudyConfig>(config_);
    return shared_config_;
}

std::uint64_t StudyDefinition::trial_seed(std::uint64_t number) const {
    return splitmix64(splitmix64(identity_.seed) ^ number) >> 33;
}

std::vector<std::string> StudyDefinition::differences(const StudyConfig& config) const {
    std::vector<std::string> found;
    const Json was = config_.space.to_json();
    const Json now = config.space.to_json();
    for (const auto& [name, spec] : now.items()) {
        if (!was.contains(name))
            found.push_back("space." + name + " is new");
        else if (was[name] != spec)
            found.push_back("space." + name + " is " + to_text(spec) + ", was " +
                            to_text(was[name]));
    }
    for (const auto& [name, spec] : was.items())
        if (!now.contains(name)) found.push_back("space." + name + " is gone");
    add_rule_differences(config_.space, config.space, found);
    add_metric_differences(config_, config, found);
    if (config.sampler.seed && *config.sampler.seed != identity_.seed)
        found.push_back("seed is " + std::to_string(*config.sampler.seed) + ", was " +
                        std::to_string(identity_.seed));
    return found;
}

std::unique_ptr<Sampler> StudyDefinition::new_sampler(const Space& space,
                                                      const SamplerConfig& config) const {
    return make_sampler(space, config, objectives_of(config_), identity_.seed,
                        warm_history(config_, space));
}

void StudyDefinition::rename(const std::string& name) {
    identity_.name = config_.study = name;
    shared_config_.reset();
}

void StudyDefinition::set_priority(int priority) {
    config_.priority = priority;
    shared_config_.reset();
}

StudyDefinition::Changes StudyDefinition::replace(StudyConfig config,
                                                  std::optional<std::int64_t> until) {
    config.sampler.seed = identity_.seed;
    const Changes changes{
        .model = !(config.sampler == config_.sampler) || !(config.space == config_.space),
        .pruner = !(config.pruner == config_.pruner)};
    if (changes.model && until) earlier_.push_back({*until, config_.space, config_.sampler});
    config.warm_start = std::move(config_.warm_start);
    config_ = std::move(config);
    shared_config_.reset();
    return changes;
}

Result<void> StudyDefinition::bring_up(Trial& trial) const {
    const auto now = earlier_.size();
    for (auto epoch = static_cast<std::size_t>(trial.epoch); epoch < now; ++epoch) {
        const Space& from = earlier_[epoch].space;
        const Space& to = epoch + 1 < now ? earlier_[epoch + 1].space : config_.space;
        if (from == to) continue;
        TUNE_TRY_VOID(from.check(trial.point));
        TUNE_TRY(point, carry_over(from, trial.point, to));
        trial.point = std::move(point);
        if (trial.fixed.empty()) continue;
        const Result<Point> fixed = to.point_from_json(from.to_json(trial.fixed));
        trial.fixed = fixed ? *fixed : to.empty_point();
    }
    trial.epoch = static_cast<int>(now);
    return config_.space.check(trial.point);
}

}  // namespace tune::tuner
