// TPE as others set it up. Both build their densities from the whole history at every ask: they are
// for comparing and for people who come from elsewhere, not for 10^5 trials.
//
//                hyperopt (Hyperopt 0.3.0)             watanabe (arXiv:2304.11127)
//   good         min(ceil(sqrt(n) / 4), 25)            min(ceil(0.15 n), 25)
//   running      bad ones, and counted                 not seen
//   weights      by age on both sides                  good: by how much better than the best bad
//                                                      one, the prior their mean; bad: equal
//   model        one parameter at a time               jointly, group by group
//   densities    plain_mixture.cc

#include "tuner/sampler/tpe/presets/preset_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/tpe/trial_split.h"

namespace tune::tuner {
namespace {

constexpr double kWeightMin = 1e-12;

std::size_t good_of(MixtureRule rule, std::size_t count) {
    if (rule == MixtureRule::kHyperopt) return root_good_count(count);
    constexpr double kMost = 25;
    return static_cast<std::size_t>(std::min(std::ceil(0.15 * static_cast<double>(count)), kMost));
}

}  // namespace

PresetSampler::PresetSampler(const Space& space, const TpeOptions& options, Goal goal,
                             std::uint64_t seed)
    : space_(space),
      goal_(goal),
      rule_(options.preset == TpePreset::kHyperopt ? MixtureRule::kHyperopt
                                                   : MixtureRule::kWatanabe),
      startup_(static_cast<std::size_t>(options.startup)),
      candidates_(static_cast<std::size_t>(options.candidates)),
      groups_(groups_of(space)),
      source_(seed) {
    if (rule_ == MixtureRule::kHyperopt) groups_ = one_by_one(groups_);
}

Result<void> PresetSampler::observe(const Observation& observation) {
    TUNE_CHECK(observation.number < kTrialsMax, "trial numbers are below kTrialsMax");
    const bool is_nan =
        observation.state == Observation::State::kComplete && std::isnan(observation.value);
    if (observation.state == Observation::State::kGone || is_nan) {
        trials_.erase(observation.number);
        return {};
    }
    TUNE_TRY_VOID(space_.check(observation.point));
    Trial trial{observation.point, observation.state != Observation::State::kRunning, {}};
    if (trial.is_finished) trial.rank = rank_of(observation, goal_);
    trials_.insert_or_assign(observation.number, std::move(trial));
    return {};
}

PresetSampler::Split PresetSampler::split(std::uint64_t number) const {
    std::vector<const Trial*> ranked;
    std::vector<const Trial*> running;
    for (const auto& [other, trial] : trials_) {
        if (other == number) continue;
        (trial.is_finished ? ranked : running).push_back(&trial);
    }
    std::sort(ranked.begin(), ranked.end(),
              [](const Trial* a, const Trial* b) { return a->rank < b->rank; });
    // To Hyperopt a trial without a result has an infinite loss.
    if (rule_ == MixtureRule::kHyperopt)
        ranked.insert(ranked.end(), running.begin(), running.end());
    const std::size_t good = std::min(good_of(rule_, ranked.size()), ranked.size());
    std::map<const Trial*, bool> is_good;
    for (std::size_t i = 0; i < ranked.size(); ++i) is_good[ranked[i]] = i < good;
    Split split;
    split.best_bad = good < ranked.size() && ranked[good]->rank.tier == 0
                         ? ranked[good]->rank.first
                         : std::numeric_limits<double>::infinity();
    for (const auto& [other, trial] : trials_) {
        const auto at = is_good.find(&trial);
        if (at != is_good.end()) (at->second ? split.good : split.bad).push_back(&trial);
    }
    return split;
}

PlainMixture PresetSampler::mixture_of(const std::vector<Axis>& axes, const Group& group,
                                       const std::vector<const Trial*>& trials,
                                       const double* best_bad) const {
    std::vector<std::vector<double>> rows;
    std::vector<double> gains;
    for (const Trial* trial : trials) {
        if (!is_active(trial->point[group.members.front()])) continue;
        rows.emplace_back();
        for (std::size_t j = 0; j < axes.size(); ++j)
            rows.back().push_back(axes[j].position(trial->point[group.members[j]]));
        const double gain =
            best_bad != nullptr && trial->rank.tier == 0 ? *best_bad - trial->rank.first : 0;
        gains.push_back(std::max(gain, kWeightMin));
    }
    if (rule_ == MixtureRule::kHyperopt) {
        std::vector<double> weights = weights_by_age(rows.size());
        weights.push_back(1);
        return {axes, rows, std::move(weights), rule_};
    }
    const bool has_gains =
        best_bad != nullptr && !gains.empty() &&
        std::all_of(gains.begin(), gains.end(), [](double gain) { return std::isfinite(gain); });
    std::vector<double> weights(rows.size() + 1, 1.0);
    if (has_gains) {
        weights = gains;
        weights.push_back(std::accumulate(gains.begin(), gains.end(), 0.0) /
                          static_cast<double>(gains.size()));
    }
    return {axes, rows, std::move(weights), rule_};
}

Point PresetSampler::suggest(std::uint64_t number, const Point& fixed) {
    TUNE_CHECK(fixed.empty() || fixed.size() == space_.size(), "a point of this space");
    const Split sides = split(number);
    const std::size_t known =
        rule_ == MixtureRule::kHyperopt
            ? sides.good.size() + sides.bad.size()
            : static_cast<std::size_t>(
                  std::count_if(trials_.begin(), trials_.end(), [&](const auto& entry) {
                      return entry.first != number && entry.second.is_finished;
                  }));
    const bool is_startup = known < startup_;
    return compose_point(space_, groups_, fixed, [&](const Group& group, Point& partial) {
        if (!is_startup) return draw(group, sides, number, partial);
        draw_uniform(space_, group, source_, number, partial);
    });
}

void PresetSampler::draw(const Group& group, const Split& split, std::uint64_t number,
                         Point& point) {
    std::vector<Axis> axes;
    for (const std::size_t index : group.members) axes.push_back(Axis::of(space_[index]));
    const PlainMixture good = mixture_of(axes, group, split.good, &split.best_bad);
    const PlainMixture bad = mixture_of(axes, group, split.bad, nullptr);
    std::vector<double> uniforms(candidates_);
    std::vector<std::size_t> rows(candidates_);
    source_.fill(number, stream_key("component of " + space_[group.members.front()].name),
                 uniforms);
    for (std::size_t c = 0; c < candidates_; ++c) rows[c] = good.component(uniforms[c]);
    std::vector<std::vector<double>> points(candidates_, std::vector<double>(axes.size()));
    for (std::size_t j = 0; j < axes.size(); ++j) {
        source_.fill(number, axes[j].key, uniforms);
        for (std::size_t c = 0; c < candidates_; ++c) {
            double position = good.draw_position(j, rows[c], uniforms[c]);
            if (axes[j].kind == Axis::Kind::kStepped)
                position = axes[j].position(axes[j].value(position));
            points[c][j] = position;
        }
    }
    std::size_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < candidates_; ++c) {
        const double score = good.log_density(points[c]) - bad.log_density(points[c]);
        if (!(score > best_score)) continue;
        best_score = score;
        best = c;
    }
    for (std::size_t j = 0; j < axes.size(); ++j) {
        const std::size_t index = group.members[j];
        point[index] = value_at(axes[j], space_[index], points[best][j]);
    }
}

}  // namespace tune::tuner
