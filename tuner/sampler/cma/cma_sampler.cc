// CMA-ES for studies: generations that workers share without waiting for each other.
//
//   members      trial number n belongs to the generation whose range of numbers holds n, whoever
//                runs it and whenever it ends; failed ones are left out and the weights are those
//                of the rest
//   closing      a generation is learnt from when all of it has ended, or, so that one slow trial
//                does not hold up the rest, when all of the next one has; if a straggler ends
//                later, what follows is learnt again with it
//   asking       a trial is drawn from the newest distribution there is, so workers never wait; a
//                member that an older one drew counts as a point from outside (cma/state.cc)
//   latents      what was drawn before it was put on the grid is not recorded: it is drawn again,
//                since draws are functions of (seed, number, distribution)
//   restarts     a run that is spent is followed by one with twice the population from a random
//                place (IPOP: Auger and Hansen 2005)
//
// All of that is a function of the set of observations: the sampler keeps the latest generations
// and steps back when an old trial changes.

#include "tuner/sampler/cma/cma_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/normal.h"
#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner {
namespace {

constexpr double kRestartSigma = CmaStart().sigma;
constexpr std::size_t kPopulationMax = 4096;
constexpr std::uint64_t kAttemptsMax = 50;
/// Generations that can be stepped back to; older changes start over.
constexpr std::size_t kPathMax = 32;
/// Earlier distributions that are asked whether they drew a member.
constexpr std::size_t kEarlierMax = 3;

bool is_modelled(const Parameter& parameter) {
    return !parameter.is_single() && parameter.kind != Kind::kChoice && parameter.when.empty();
}

}  // namespace

std::size_t plain_number_count(const Space& space) {
    return static_cast<std::size_t>(
        std::count_if(space.parameters().begin(), space.parameters().end(), is_modelled));
}

bool models_whole(const Space& space) {
    return std::all_of(
        space.parameters().begin(), space.parameters().end(),
        [](const Parameter& parameter) { return parameter.is_single() || is_modelled(parameter); });
}

CmaSampler::CmaSampler(const Space& space, Goal goal, std::uint64_t seed,
                       std::unique_ptr<Sampler> others, CmaStart start)
    : space_(space), goal_(goal), source_(seed), others_(std::move(others)), start_(start) {
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (!is_modelled(space_[i])) continue;
        parameters_.push_back(i);
        axes_.push_back(Axis::of(space_[i]));
    }
    TUNE_CHECK(!axes_.empty(), "CMA-ES needs a number");
    path_.push_back(first_generation());
}

CmaSampler::Generation CmaSampler::first_generation() const {
    const auto d = static_cast<Eigen::Index>(axes_.size());
    Eigen::VectorXd mean = Eigen::VectorXd::Constant(d, 0.5);
    const auto start_at = [&](Eigen::VectorXd at) {
        return Generation{
            CmaState(axes_, default_population(axes_.size()), std::move(at), start_.sigma),
            start_.trial, start_.trial};
    };
    if (const std::vector<double>* best = best_before()) {
        for (std::size_t j = 0; j < axes_.size(); ++j)
            mean[static_cast<Eigen::Index>(j)] =
                axes_[j].share_below(axes_[j].position((*best)[j]));
        return start_at(std::move(mean));
    }
    if (const std::vector<Point> points = space_.first_points(); !points.empty()) {
        const Point& first = points.front();
        for (std::size_t j = 0; j < axes_.size(); ++j) {
            const double given = first[parameters_[j]];
            if (is_active(given))
                mean[static_cast<Eigen::Index>(j)] = axes_[j].share_below(axes_[j].position(given));
        }
    }
    return start_at(std::move(mean));
}

/// What the best of the trials before the first run had; none: nothing.
const std::vector<double>* CmaSampler::best_before() const {
    const Trial* best = nullptr;
    for (const auto& [number, trial] : trials_) {
        if (number >= start_.trial) break;
        if (trial.state != Observation::State::kComplete) continue;
        if (best == nullptr || trial.rank < best->rank) best = &trial;
    }
    return best == nullptr ? nullptr : &best->values;
}

Result<void> CmaSampler::observe(const Observation& observation) {
    TUNE_CHECK(observation.number < kTrialsMax, "trial numbers are below kTrialsMax");
    TUNE_TRY_VOID(others_->observe(observation));
    Trial trial;
    trial.state = observation.state;
    const bool is_nan =
        observation.state == Observation::State::kComplete && std::isnan(observation.value);
    if (is_nan) trial.state = Observation::State::kGone;
    if (trial.state != Observation::State::kGone) {
        TUNE_TRY_VOID(space_.check(observation.point));
        for (const std::size_t index : parameters_)
            trial.values.push_back(observation.point[index]);
        if (trial.state != Observation::State::kRunning) trial.rank = rank_of(observation, goal_);
    }
    const auto known = trials_.find(observation.number);
    const bool was_ended =
        known != trials_.end() && known->second.state != Observation::State::kRunning;
    const bool has_ended = trial.state != Observation::State::kRunning;
    trials_.insert_or_assign(observation.number, std::move(trial));
    // A trial that runs has told nothing yet; any other may change all that came after it. One that
    // runs again opens generations that were closed.
    if (was_ended && !has_ended) {
        path_.assign(1, first_generation());
    } else if (was_ended || has_ended) {
        step_back(observation.number);
    }
    return {};
}

/// Forgets the distributions that have learnt from this trial, or would have.
void CmaSampler::step_back(std::uint64_t number) {
    while (path_.size() > 1 && path_.back().first > number) path_.pop_back();
    const bool is_whole = path_.front().first == start_.trial;
    if (number < start_.trial) path_.assign(1, first_generation());
    if (!is_whole && (path_.back().first > number || path_.size() <= kEarlierMax))
        path_.assign(1, first_generation());
}

bool CmaSampler::has_ended(std::uint64_t first, std::size_t count) const {
    auto at = trials_.lower_bound(first);
    for (std::size_t i = 0; i < count; ++i, ++at)
        if (at == trials_.end() || at->first != first + i ||
            at->second.state == Observation::State::kRunning)
            return false;
    return true;
}

bool CmaSampler::is_closed(const Generation& generation) const {
    const std::size_t count = generation.state.population();
    return has_ended(generation.first, count) || has_ended(generation.first + count, count);
}

void CmaSampler::advance() {
    while (is_closed(path_.back())) {
        path_.push_back(next_of(path_.back()));
        if (path_.size() > kPathMax) path_.pop_front();
    }
}

/// A copy of the distribution that has learnt from its members, or the first of the next run.
CmaSampler::Generation CmaSampler::next_of(const Generation& generation) {
    const std::size_t population = generation.state.population();
    std::vector<std::pair<std::uint64_t, const Trial*>> ended;
    for (auto at = trials_.lower_bound(generation.first);
         at != trials_.end() && at->first < generation.first + population; ++at)
        if (at->second.state == Observation::State::kComplete ||
            at->second.state == Observation::State::kPruned)
            ended.emplace_back(at->first, &at->second);
    std::sort(ended.begin(), ended.end(),
              [](const auto& a, const auto& b) { return a.second->rank < b.second->rank; });
    std::vector<CmaMember> members;
    for (const auto& [number, trial] : ended) members.push_back(member_of(number, *trial));
    Generation next{generation.state, generation.first + population, generation.run_first};
    if (!ended.empty())
        next.state.update(members, ended.front().second->rank.first,
                          ended.back().second->rank.first);
    if (!next.state.is_spent()) return next;
    std::vector<double> place(axes_.size());
    source_.fill(next.first, stream_key("mean of a run of CMA-ES"), place);
    next.run_first = next.first;
    next.state = CmaState(
        axes_, std::min(2 * population, kPopulationMax),
        Eigen::Map<const Eigen::VectorXd>(place.data(), static_cast<Eigen::Index>(place.size())),
        kRestartSigma);
    return next;
}

CmaMember CmaSampler::member_of(std::uint64_t number, const Trial& trial) {
    std::size_t tried = 0;
    for (auto at = path_.rbegin(); at != path_.rend() && tried < kEarlierMax; ++at, ++tried) {
        if (at->run_first != path_.back().run_first) break;
        Eigen::VectorXd latent = draw(at->state, number);
        if (at->state.values(latent) == trial.values) return {std::move(latent), tried == 0};
    }
    return {path_.back().state.position(trial.values), false};
}

Eigen::VectorXd CmaSampler::draw(const CmaState& state, std::uint64_t number) {
    std::vector<double> uniforms(axes_.size());
    Eigen::VectorXd normals(static_cast<Eigen::Index>(axes_.size()));
    Eigen::VectorXd latent;
    const std::uint64_t key = stream_key("draw of CMA-ES");
    for (std::uint64_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
        source_.fill(number, key + attempt, uniforms);
        for (std::size_t j = 0; j < uniforms.size(); ++j)
            normals[static_cast<Eigen::Index>(j)] = normal_quantile(std::max(uniforms[j], 1e-16));
        latent = state.latent(normals);
        if (state.is_feasible(latent)) return latent;
    }
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        double& at = latent[static_cast<Eigen::Index>(j)];
        if (axes_[j].kind != Axis::Kind::kStepped) at = std::clamp(at, 0.0, 1.0);
    }
    return latent;
}

Point CmaSampler::suggest(std::uint64_t number, const Point& fixed) {
    TUNE_CHECK(fixed.empty() || fixed.size() == space_.size(), "a point of this space");
    advance();
    const CmaState& state = path_.back().state;
    const std::vector<double> values = state.values(draw(state, number));
    Point given = fixed;
    if (given.empty()) given = space_.empty_point();
    for (std::size_t j = 0; j < parameters_.size(); ++j)
        if (!is_active(given[parameters_[j]]))
            given[parameters_[j]] = space_[parameters_[j]].snap(values[j]);
    return others_->suggest(number, given);
}

// --- in a study ----------------------------------------------------------------------------------

namespace {

constexpr const char* kCmaEsName = "cmaes";

/// With TPE for what CMA-ES does not model.
std::unique_ptr<Sampler> make_cmaes(const SamplerConfig&, const SamplerContext& context) {
    const Space& space = context.space;
    const Goal goal = context.objectives.goals.front();
    const Objectives one(goal);
    const SamplerContext inner{space, one, context.seed};
    if (plain_number_count(space) == 0) return make_tpe(tpe_within(), inner);
    std::unique_ptr<Sampler> others;
    if (models_whole(space)) {
        others =
            std::make_unique<RandomSampler>(space, std::make_unique<CounterSource>(context.seed));
    } else {
        others = make_tpe(tpe_within(), inner);
    }
    return std::make_unique<CmaSampler>(space, goal, context.seed, std::move(others));
}

Result<void> check_cmaes(const Space& space, const SamplerConfig&) {
    return check_model_size(kCmaEsName, plain_number_count(space), "numbers");
}

}  // namespace

const SamplerKind& cmaes_sampler() {
    static const OptionTable kOptions = TableOf<NoOptions>();
    static const SamplerKind kKind = [] {
        SamplerKind kind{{kCmaEsName,
                          "draws of a normal distribution that learns, generation by generation: "
                          "for a thousand trials and more of numbers that depend on each other; "
                          "tpe does the rest; at most 500 numbers",
                          kOptions},
                         make_cmaes};
        kind.check_space = check_cmaes;
        return kind;
    }();
    return kKind;
}

}  // namespace tune::tuner
