// c-TPE (Watanabe, Hutter 2023, arXiv:2211.14411): the objective and each constraint have a pair of
// densities of their own, of the trials that are good in it and of the others, and a candidate is
// worth the product of what each says of it: prod_k 1 / (q_k + (1 - q_k) g_k / l_k). A constraint
// that nearly every trial satisfies (q near 1) says nearly nothing; one that few satisfy leads the
// search. Candidates are drawn from every l_k.
//
//   objective    good: in order of loss, feasible or not, until ceil(sqrt(n) / 4) are feasible; all
//                of them (nothing is said) while there are fewer
//   constraint   good: the trials that satisfy it; if none does, the one that misses it by least
//
// Deviations: the kernels are those of our TPE (bandwidths of Optuna 5, all trials weigh the same);
// trials that run or were pruned count as bad in the objective, so that parallel asks keep apart.
//
// Deterministic: all is a function of the set of observations and of (seed, trial, parameter).

#include "tuner/sampler/tpe/ctpe_sampler.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/check.h"
#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/tpe/ctpe_rule.h"
#include "tuner/sampler/tpe/trial_split.h"

namespace tune::tuner {
namespace {

constexpr std::uint64_t kNobody = kTrialsMax;

}  // namespace

CtpeSampler::CtpeSampler(const Space& space, const TpeOptions& options, Goal goal,
                         std::uint64_t seed)
    : space_(space),
      goal_(goal),
      startup_(static_cast<std::size_t>(options.startup)),
      candidates_(static_cast<std::size_t>(options.candidates)),
      source_(seed),
      groups_(groups_of(space)) {
    models_.push_back(new_model());
}

CtpeSampler::Model CtpeSampler::new_model() const {
    Model model;
    for (const Group& group : groups_) {
        std::vector<Axis> axes;
        if (!group.is_fixed)
            for (const std::size_t index : group.members) axes.push_back(Axis::of(space_[index]));
        model.good.emplace_back(axes, Weights::kEqual);
        model.bad.emplace_back(std::move(axes), Weights::kEqual);
    }
    return model;
}

Result<void> CtpeSampler::observe(const Observation& observation) {
    TUNE_CHECK(observation.number < kTrialsMax, "trial numbers are below kTrialsMax");
    const bool is_complete = observation.state == Observation::State::kComplete;
    if (observation.state == Observation::State::kGone ||
        (is_complete && std::isnan(observation.value))) {
        forget(observation.number);
        return {};
    }
    TUNE_TRY_VOID(space_.check(observation.point));
    forget(observation.number);
    Trial trial;
    trial.point = observation.point;
    trial.is_complete = is_complete;
    if (is_complete) {
        trial.loss = goal_ == Goal::kMinimize ? observation.value : -observation.value;
        trial.violation = observation.violation;
        trial.violations = observation.violations;
        if (trial.violations.empty()) trial.violations = {observation.violation};
        while (models_.size() < 1 + trial.violations.size()) models_.push_back(new_model());
    }
    trials_.insert_or_assign(observation.number, std::move(trial));
    return {};
}

void CtpeSampler::forget(std::uint64_t number) {
    if (!trials_.contains(number)) return;
    for (Model& model : models_) take_out(model, number);
    trials_.erase(number);
}

void CtpeSampler::insert(ParzenEstimator& into, std::size_t group, std::uint64_t number) const {
    std::vector<double> positions;
    const Point& point = trials_.at(number).point;
    for (std::size_t j = 0; j < groups_[group].members.size(); ++j)
        positions.push_back(into.axes()[j].position(point[groups_[group].members[j]]));
    into.insert(number, positions);
}

void CtpeSampler::take_out(Model& model, std::uint64_t number) {
    const auto at = model.sides.find(number);
    if (at == model.sides.end()) return;
    const Point& point = trials_.at(number).point;
    for (std::size_t g = 0; g < groups_.size(); ++g)
        if (!groups_[g].is_fixed && is_active(point[groups_[g].members.front()]))
            (at->second ? model.good : model.bad)[g].erase(number);
    model.sides.erase(at);
}

void CtpeSampler::place(Model& model, std::uint64_t number, bool is_good) {
    const auto at = model.sides.find(number);
    if (at != model.sides.end() && at->second == is_good) return;
    take_out(model, number);
    const Point& point = trials_.at(number).point;
    for (std::size_t g = 0; g < groups_.size(); ++g)
        if (!groups_[g].is_fixed && is_active(point[groups_[g].members.front()]))
            insert((is_good ? model.good : model.bad)[g], g, number);
    model.sides.emplace(number, is_good);
}

/// Brings the objective's sides in line with the trials, of which one may be left out.
void CtpeSampler::settle_objective(std::uint64_t without) {
    std::vector<ConstrainedLoss> complete;
    for (const auto& [number, trial] : trials_)
        if (trial.is_complete && number != without)
            complete.push_back({trial.loss, trial.violation <= 0, number});
    const std::size_t count = root_good_count(complete.size());
    const Numbers good = constrained_good(complete, count);
    const std::set<std::uint64_t> is_good(good.begin(), good.end());
    for (const auto& [number, trial] : trials_)
        if (number != without) place(models_[0], number, is_good.contains(number));
    models_[0].share =
        complete.empty() ? 1
                         : static_cast<double>(good.size()) / static_cast<double>(complete.size());
}

void CtpeSampler::settle_constraint(std::size_t constraint, std::uint64_t without) {
    Numbers numbers;
    std::vector<double> violations;
    for (const auto& [number, trial] : trials_) {
        if (!trial.is_complete || number == without) continue;
        numbers.push_back(number);
        violations.push_back(constraint < trial.violations.size() ? trial.violations[constraint]
                                                                  : 0);
    }
    const std::vector<bool> holds = satisfied(violations);
    Model& model = models_[1 + constraint];
    for (std::size_t i = 0; i < numbers.size(); ++i) place(model, numbers[i], holds[i]);
    const auto good = static_cast<double>(std::count(holds.begin(), holds.end(), true));
    model.share = numbers.empty() ? 1 : good / static_cast<double>(numbers.size());
}

Point CtpeSampler::suggest(std::uint64_t number, const Point& fixed) {
    TUNE_CHECK(fixed.empty() || fixed.size() == space_.size(), "a point of this space");
    // A trial that asks again must not see its own point.
    const auto own = trials_.find(number);
    const std::uint64_t without = own == trials_.end() ? kNobody : number;
    if (own != trials_.end())
        for (Model& model : models_) take_out(model, number);
    const auto complete = static_cast<std::size_t>(std::count_if(
        trials_.begin(), trials_.end(),
        [&](const auto& entry) { return entry.second.is_complete && entry.first != without; }));
    const bool is_startup = complete < startup_;
    if (!is_startup) {
        settle_objective(without);
        for (std::size_t k = 0; k + 1 < models_.size(); ++k) settle_constraint(k, without);
    }
    return compose_point(space_, groups_, fixed, [&](const Group& group, Point& point) {
        const auto at = static_cast<std::size_t>(&group - groups_.data());
        if (!is_startup) return draw(at, number, point);
        draw_uniform(space_, group, source_, number, point);
    });
}

/// As many of each model's good density, [models * candidates][axes].
std::vector<double> CtpeSampler::candidates_of(std::size_t group, std::uint64_t number) const {
    const std::span<const Axis> axes = models_[0].good[group].axes();
    std::vector<double> points(models_.size() * candidates_ * axes.size());
    std::vector<double> uniforms(candidates_);
    std::vector<double> positions(candidates_);
    CounterSource source = source_;
    for (std::size_t k = 0; k < models_.size(); ++k) {
        const ParzenEstimator& good = models_[k].good[group];
        const std::string label = " of model " + std::to_string(k) + " for ";
        const std::string& first = space_[groups_[group].members.front()].name;
        source.fill(number, stream_key("component" + label + first), uniforms);
        std::vector<std::size_t> rows(candidates_);
        for (std::size_t c = 0; c < candidates_; ++c) rows[c] = good.component(uniforms[c]);
        for (std::size_t j = 0; j < axes.size(); ++j) {
            const std::string& name = space_[groups_[group].members[j]].name;
            source.fill(number, stream_key("value" + label + name), uniforms);
            good.draw(j, rows, uniforms, positions);
            for (std::size_t c = 0; c < candidates_; ++c)
                points[(k * candidates_ + c) * axes.size() + j] = positions[c];
        }
    }
    return points;
}

void CtpeSampler::draw(std::size_t group, std::uint64_t number, Point& point) {
    const std::vector<std::size_t>& members = groups_[group].members;
    const std::vector<double> points = candidates_of(group, number);
    const std::size_t count = models_.size() * candidates_;
    std::vector<double> worth(count, 0);
    std::vector<double> log_good(count);
    std::vector<double> log_bad(count);
    const Candidates laid_out = models_[0].good[group].lay_out(points, count);
    for (const Model& model : models_) {
        model.good[group].log_density(laid_out, log_good);
        model.bad[group].log_density(laid_out, log_bad);
        for (std::size_t c = 0; c < count; ++c)
            worth[c] += constrained_term(model.share, log_good[c], log_bad[c]);
    }
    const auto take = [&](std::size_t candidate) {
        const std::span<const Axis> axes = models_[0].good[group].axes();
        for (std::size_t j = 0; j < axes.size(); ++j)
            point[members[j]] =
                value_at(axes[j], space_[members[j]], points[candidate * axes.size() + j]);
    };
    // The best of those that no rule forbids; if all are, what wraps this sampler finds another.
    std::optional<std::size_t> best;
    for (std::size_t c = 0; c < count; ++c) {
        if (best && !(worth[c] > worth[*best])) continue;
        take(c);
        if (!space_.is_forbidden(point)) best = c;
    }
    take(best.value_or(0));
}

}  // namespace tune::tuner
