// Tree-structured Parzen Estimator with the rules of Optuna 5.0.0 (optuna/samplers/_tpe/sampler.py;
// Bergstra et al. 2011; Watanabe, arXiv:2304.11127).
//
// The idea. Split what is known into a good tenth and the rest, model both as densities b and a,
// draw 24 points from b and take the one with the largest b/a, which maximises the expected
// improvement. Before ten trials have finished, draw at random.
//
//   good    the best min(ceil(N/10), 25) of the N finished trials: complete ones by value, then
//           pruned ones, the longest-lived first
//   bad     all other finished trials, and every trial that is still running: its outcome is taken
//           to be poor until it is known ("constant liar"), so parallel asks keep apart
//   joint   all parameters of a group share one mixture, so dependences between them are kept
//   groups  parameters under the same conditions; the trials of a group are those in which it is
//           active. Optuna must discover this from history, here the space declares it
//
// Why an ask does not read the history. A trial that starts is inserted in the bad density; when it
// ends, usually nothing moves. Only when the good set changes (its size, or a new best) do one or
// two trials change sides. Everything else that an ask needs is in the columns already.
//
// Huge histories. The cost of an ask grows with the number of bad ones, so beyond `window` of them
// the oldest are left out of the model, a quarter of a window at a time. What that costs: the bad
// density no longer remembers where the search was long ago, and old trials weigh little as it is
// (the ramp of weights by age). The good ones are chosen among all trials, always.
//
// Preset `tune` has narrower kernels where an axis is continuous. Optuna's good density, of at most
// 25 kernels, is never narrower than 1/27 of the range, and of 1/12 with ten: too wide to home in;
// its bad one goes down to 1/100, which leaves gaps beside each bad point that look good. A floor
// of 1/50 for both found points of 0.82 times the mean regret on the problems of quality_bench.cc.
// All else is Optuna's, grids and categories and several objectives too.
//
// Preset `optuna4` is what Optuna did until 4.9: each parameter by itself, running trials not seen.
//
// Several objectives (MOTPE; Ozaki et al. 2022). Good is a tenth, without the limit of 25: the
// first ranks of dominance and the part of the next one that keeps most volume (pareto_split.h).
// Each parameter is modelled by itself, and good trials weigh the same. The split is made when a
// suggestion needs it, not trial by trial.
//
// Constraints. An infeasible trial ranks after all feasible and pruned ones, by how far it is off
// (trial_split.h), so that it is good only while there are too few others.
//
// Deterministic: the densities are functions of the set of observations (parzen.cc), the numbers of
// (seed, trial, parameter) (uniform.h), and ties between candidates go to the first.
//
// Deviation from Optuna: continuous values are clamped to their bounds after rounding.

#include "tuner/sampler/tpe/tpe_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/simple/random_sampler.h"

namespace tune::tuner {
namespace {

/// So often 24 candidates are drawn before another way to an unseen point is taken.
constexpr std::uint64_t kRoundsMax = 4;

/// Tells the rounds' streams apart: odd, so that multiples differ.
constexpr std::uint64_t kRoundKey = 0xD1B54A32D192ED03u;

std::vector<Axis> axes_of(const Space& space, const std::vector<std::size_t>& members) {
    std::vector<Axis> axes;
    for (const std::size_t index : members) axes.push_back(Axis::of(space[index]));
    return axes;
}

bool has_nan(const Observation& observation) {
    return std::isnan(observation.value) ||
           std::any_of(observation.more_values.begin(), observation.more_values.end(),
                       [](double value) { return std::isnan(value); });
}

/// The stream that chooses kernels, one a group.
std::uint64_t component_key(const Space& space, const Group& group) {
    return stream_key("component of " + space[group.members.front()].name);
}

}  // namespace

TpeSampler::TpeSampler(const Space& space, const TpeOptions& options, const Objectives& objectives,
                       TpeSources sources, std::shared_ptr<const SeenPoints> avoided)
    : space_(space),
      goal_(objectives.goals.front()),
      startup_(static_cast<std::size_t>(options.startup)),
      candidates_(static_cast<std::size_t>(options.candidates)),
      sees_running_(options.preset != TpePreset::kOptuna4),
      window_(static_cast<std::size_t>(options.window)),
      sources_(std::move(sources)),
      avoided_(std::move(avoided)),
      constants_(space.empty_point()),
      groups_(groups_of(space)),
      model_of_group_(space.size(), 0) {
    TUNE_CHECK(options.startup >= 0 && options.candidates >= 1, "the sampler's config was checked");
    if (options.preset == TpePreset::kOptuna4) groups_ = one_by_one(groups_);
    if (objectives.goals.size() > 1) {
        split_.emplace(objectives);
        groups_ = one_by_one(groups_);
    }
    for (const Group& group : groups_) {
        const Parameter& first = space_[group.members.front()];
        if (group.is_fixed && first.when.empty()) constants_[group.members.front()] = first.low;
        if (group.is_fixed) continue;
        model_of_group_[group.members.front()] = models_.size();
        const std::vector<Axis> axes = axes_of(space_, group.members);
        const Weights good_weights = split_ ? Weights::kEqual : Weights::kAge;
        const bool is_narrow = options.preset == TpePreset::kTune && !split_;
        models_.push_back(Model{
            group.members,
            ParzenEstimator(axes, good_weights, is_narrow ? Floor::kNarrowest : Floor::kOptuna),
            ParzenEstimator(axes, Weights::kAge, is_narrow ? Floor::kNarrow : Floor::kOptuna)});
    }
}

Result<void> TpeSampler::observe(const Observation& observation) {
    TUNE_CHECK(observation.number < kTrialsMax, "trial numbers are below kTrialsMax");
    const bool is_complete = observation.state == Observation::State::kComplete;
    const bool is_gone =
        observation.state == Observation::State::kGone || (is_complete && has_nan(observation));
    if (is_gone) {
        forget(observation.number);
        rebalance();
        return {};
    }
    TUNE_TRY_VOID(space_.check(observation.point));
    // A trial that only changes its state keeps its place in the densities.
    const auto known = trials_.find(observation.number);
    const bool same_point =
        known != trials_.end() && std::equal(known->second.point.begin(), known->second.point.end(),
                                             observation.point.begin(), [](double a, double b) {
                                                 return a == b || (!is_active(a) && !is_active(b));
                                             });
    if (known != trials_.end() && !same_point) forget(observation.number);
    Trial& trial = trials_[observation.number];
    if (!same_point) trial.point = observation.point;
    if (trial.is_finished) ranking_.erase(trial.rank);
    if (split_) split_->erase(observation.number);
    trial.is_finished = observation.state != Observation::State::kRunning;
    if (trial.is_finished) {
        trial.rank = rank_of(observation, goal_);
        ranking_.insert(trial.rank);
        if (split_) split_->insert(observation);
    }
    const bool is_seen = trial.is_finished || sees_running_;
    if (trial.side == Side::kNone || !is_seen)
        place(observation.number, trial, is_seen ? Side::kBad : Side::kNone);
    rebalance();
    return {};
}

void TpeSampler::forget(std::uint64_t number) {
    const auto at = trials_.find(number);
    if (at == trials_.end()) return;
    place(number, at->second, Side::kNone);
    if (at->second.is_finished) ranking_.erase(at->second.rank);
    if (split_) split_->erase(number);
    trials_.erase(at);
}

/// Moves a trial between the densities of every group it has.
void TpeSampler::place(std::uint64_t number, Trial& trial, Side side) {
    if (trial.side == side) return;
    if (trial.side == Side::kGood) erase_rows(number, trial, &Model::good);
    if (trial.side == Side::kBad) leave_bad(number, trial);
    trial.side = side;
    if (side == Side::kGood) insert_rows(number, trial, &Model::good);
    if (side == Side::kBad) enter_bad(number, trial);
}

void TpeSampler::insert_rows(std::uint64_t number, const Trial& trial,
                             ParzenEstimator Model::*side) {
    std::vector<double> positions;
    for (Model& model : models_) {
        if (!is_active(trial.point[model.members.front()])) continue;
        positions.clear();
        for (std::size_t j = 0; j < model.members.size(); ++j)
            positions.push_back(model.bad.axes()[j].position(trial.point[model.members[j]]));
        (model.*side).insert(number, positions);
    }
}

void TpeSampler::erase_rows(std::uint64_t number, const Trial& trial,
                            ParzenEstimator Model::*side) {
    for (Model& model : models_)
        if (is_active(trial.point[model.members.front()])) (model.*side).erase(number);
}

void TpeSampler::enter_bad(std::uint64_t number, const Trial& trial) {
    bad_.insert(number);
    if (number < kept_from_) {
        ++dropped_;
    } else {
        insert_rows(number, trial, &Model::bad);
    }
    settle_window();
}

void TpeSampler::leave_bad(std::uint64_t number, const Trial& trial) {
    bad_.erase(number);
    if (number < kept_from_) {
        --dropped_;
    } else {
        erase_rows(number, trial, &Model::bad);
    }
    settle_window();
}

/// Leaves out the oldest bad ones beyond the window: always the same for the same set.
void TpeSampler::settle_window() {
    if (window_ == 0) return;
    const std::size_t step = std::max<std::size_t>(window_ / 4, 1);
    const std::size_t excess = bad_.size() > window_ ? bad_.size() - window_ : 0;
    const std::size_t target = (excess + step - 1) / step * step;
    while (dropped_ > target) {
        const std::uint64_t back = *std::prev(bad_.lower_bound(kept_from_));
        kept_from_ = back;
        --dropped_;
        insert_rows(back, trials_.at(back), &Model::bad);
    }
    if (dropped_ == target) {
        if (target == 0) kept_from_ = 0;
        return;
    }
    auto at = bad_.lower_bound(kept_from_);
    for (; dropped_ < target; ++dropped_) ++at;
    kept_from_ = at == bad_.end() ? *bad_.rbegin() + 1 : *at;
    for (Model& model : models_) model.bad.erase_before(kept_from_);
}

/// Brings the sides in line with the ranking: at most 25 good ones, few of which ever change.
void TpeSampler::rebalance() {
    if (!split_) move_sides(ranking_.good());
}

void TpeSampler::move_sides(std::vector<std::uint64_t> good) {
    const std::unordered_set<std::uint64_t> stays(good.begin(), good.end());
    for (const std::uint64_t number : good_) {
        if (stays.contains(number)) continue;
        const auto at = trials_.find(number);
        if (at != trials_.end()) place(number, at->second, Side::kBad);
    }
    for (const std::uint64_t number : good) place(number, trials_.at(number), Side::kGood);
    good_ = std::move(good);
}

Point TpeSampler::suggest(std::uint64_t number, const Point& fixed) {
    TUNE_CHECK(fixed.empty() || fixed.size() == space_.size(), "a point of this space");
    if (split_) move_sides(split_->good());
    // A trial that asks again must not avoid its own first point.
    const auto own = trials_.find(number);
    const Side own_side = own == trials_.end() ? Side::kNone : own->second.side;
    if (own_side != Side::kNone) place(number, own->second, Side::kNone);
    const bool is_startup = ranking_.size() < startup_;
    Point point = compose_point(space_, groups_, fixed, [&](const Group& group, Point& partial) {
        if (!is_startup) return draw(group, number, partial);
        draw_uniform(space_, group, *sources_.startup, number, partial);
    });
    if (own_side != Side::kNone) place(number, own->second, own_side);
    return point;
}

void TpeSampler::draw(const Group& group, std::uint64_t number, Point& point) {
    const Model& model = models_[model_of_group_[group.members.front()]];
    const std::uint64_t rounds = avoided_ == nullptr ? 1 : kRoundsMax;
    Point best;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        draw_candidates(group, model, number, round);
        for (const std::size_t candidate : best_candidates(model)) {
            take(model, candidate, point);
            if (is_wanted(point)) return;
            if (best.empty()) best = point;
        }
    }
    // None will do: what is wrapped around this sampler finds another point.
    point = std::move(best);
}

/// Fills points_. Round 0 is what a study sees; the later ones draw from the same densities again.
void TpeSampler::draw_candidates(const Group& group, const Model& model, std::uint64_t number,
                                 std::uint64_t round) {
    const std::span<const Axis> axes = model.good.axes();
    UniformSource& source = *sources_.model;
    const std::uint64_t other = round * kRoundKey;
    points_.resize(candidates_ * axes.size());
    uniforms_.resize(candidates_);
    rows_.resize(candidates_);
    positions_.resize(candidates_);
    source.fill(number, component_key(space_, group) ^ other, uniforms_);
    for (std::size_t c = 0; c < candidates_; ++c) rows_[c] = model.good.component(uniforms_[c]);
    // Categories first, then numbers: the order of optuna's generator.
    for (const bool categories : {true, false}) {
        for (std::size_t j = 0; j < axes.size(); ++j) {
            const Axis& axis = axes[j];
            if ((axis.kind == Axis::Kind::kCategory) != categories) continue;
            source.fill(number, axis.key ^ other, uniforms_);
            model.good.draw(j, rows_, uniforms_, positions_);
            for (std::size_t c = 0; c < candidates_; ++c)
                points_[c * axes.size() + j] = positions_[c];
        }
    }
}

/// Neither forbidden nor avoided, as far as it is drawn: one of several groups that leaves others
/// open is no whole point yet, and equals none.
bool TpeSampler::is_wanted(const Point& point) const {
    if (space_.rules() != nullptr && space_.is_forbidden(point)) return false;
    if (avoided_ == nullptr) return true;
    Point whole = point;
    for (std::size_t i = 0; i < whole.size(); ++i)
        if (is_active(constants_[i])) whole[i] = constants_[i];
    return !avoided_->contains(whole);
}

void TpeSampler::take(const Model& model, std::size_t candidate, Point& point) const {
    const std::span<const Axis> axes = model.good.axes();
    const double* positions = points_.data() + candidate * axes.size();
    for (std::size_t j = 0; j < axes.size(); ++j) {
        const std::size_t index = model.members[j];
        point[index] = value_at(axes[j], space_[index], positions[j]);
    }
}

/// The best first; where nothing can be forbidden or avoided, only that one.
std::vector<std::size_t> TpeSampler::best_candidates(const Model& model) {
    good_density_.resize(candidates_);
    bad_density_.resize(candidates_);
    const Candidates points = model.good.lay_out(points_, candidates_);
    model.good.log_density(points, good_density_);
    model.bad.log_density(points, bad_density_);
    std::size_t best = 0;
    for (std::size_t c = 1; c < candidates_; ++c)
        if (good_density_[c] - bad_density_[c] > good_density_[best] - bad_density_[best]) best = c;
    if (space_.rules() == nullptr && avoided_ == nullptr) return {best};
    std::vector<std::size_t> order(candidates_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return good_density_[a] - bad_density_[a] > good_density_[b] - bad_density_[b];
    });
    return order;
}

}  // namespace tune::tuner
