// Population based training (Jaderberg et al. 2017, arXiv:1711.09846).
//
// The idea. A population of members trains side by side. After each interval a member that is among
// the worst copies the weights of one of the best and its parameters, changed a little (exploit,
// explore); the others go on as they are. So the parameters change while the weights are trained,
// and what comes out is a schedule of them. Rules and defaults are those of Ray Tune's
// PopulationBasedTraining: the worst and the best quarter, a quarter of the parameters drawn anew,
// the others times 0.8 or 1.2.
//
// Here a trial is one member for one interval, and starts from the checkpoint of its parent trial.
// An ask looks for a member that does not train and has come least far; it is compared with what is
// known of the others at that moment, however far they are, so nobody waits for a straggler. Only
// as many trials as there are members run at once. A member whose trial failed or was pruned
// continues one of the best; without any the place is filled by a new random member.
//
// What a trial continues is part of its observation (Observation::origin), so that the population
// is a function of the set of observations: trials without an origin (of another sampler, before
// the study changed to this one) are no members.

#include "tuner/sampler/pbt/pbt_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "base/check.h"
#include "tuner/sampler/pbt/pbt_explore.h"
#include "tuner/sampler/simple/random_sampler.h"

namespace tune::tuner {
namespace {

/// Changes tried until one is allowed by the space's rules; then the parent's values stay.
constexpr int kTurnsMax = 32;

}  // namespace

PbtSampler::PbtSampler(const Space& space, const PbtOptions& options, Goal goal, std::uint64_t seed)
    : space_(space),
      options_(options),
      goal_(goal),
      seed_(seed),
      groups_(groups_of(space)),
      members_(static_cast<std::size_t>(options.population)) {}

Result<void> PbtSampler::observe(const Observation& observation) {
    if (observation.state != Observation::State::kGone)
        TUNE_TRY_VOID(space_.check(observation.point));
    if (const auto before = seen_.find(observation.number); before != seen_.end()) {
        members_[static_cast<std::size_t>(before->second.origin.member)].erase(observation.number);
        seen_.erase(before);
    }
    // A population may have become smaller since the trial was asked.
    const bool is_member = observation.origin && observation.origin->member >= 0 &&
                           observation.origin->member < options_.population;
    if (!is_member) return {};
    Seen seen{.number = observation.number,
              .state = observation.state,
              .point = observation.point,
              .loss = goal_ == Goal::kMinimize ? observation.value : -observation.value,
              .origin = *observation.origin};
    if (seen.state == Observation::State::kComplete && std::isnan(seen.loss))
        seen.state = Observation::State::kGone;
    members_[static_cast<std::size_t>(seen.origin.member)].insert(seen.number);
    seen_.insert_or_assign(observation.number, std::move(seen));
    return {};
}

const PbtSampler::Seen* PbtSampler::newest(std::size_t member) const {
    return members_[member].empty() ? nullptr : &seen_.at(*members_[member].rbegin());
}

const PbtSampler::Seen* PbtSampler::last_complete(std::size_t member) const {
    const Numbers& numbers = members_[member];
    for (auto at = numbers.rbegin(); at != numbers.rend(); ++at)
        if (const Seen& seen = seen_.at(*at); seen.state == Observation::State::kComplete)
            return &seen;
    return nullptr;
}

bool PbtSampler::is_finished(const Seen& seen) const {
    const std::int64_t max = options_.max;
    return max != 0 && steps_of(options_, seen.origin.generation).to >= max;
}

/// Whether the member may train now: it does not train, and has not come to the end.
bool PbtSampler::is_free(std::size_t member) const {
    const Seen* last = newest(member);
    if (last == nullptr) return true;
    if (last->state == Observation::State::kRunning) return false;
    if (last->state == Observation::State::kComplete) return !is_finished(*last);
    const std::vector<const Seen*> known = ranked();
    return known.empty() || !worth_copying(known).empty();
}

/// The one that has come least far.
std::optional<std::size_t> PbtSampler::free_member() const {
    std::optional<std::size_t> found;
    int least = 0;
    for (std::size_t member = 0; member < members_.size(); ++member) {
        if (!is_free(member)) continue;
        const Seen* done = last_complete(member);
        const int trained = done == nullptr ? 0 : done->origin.generation + 1;
        if (found && trained >= least) continue;
        found = member;
        least = trained;
    }
    return found;
}

/// What is known of the members, best first: the last complete trial of each.
std::vector<const PbtSampler::Seen*> PbtSampler::ranked() const {
    std::vector<const Seen*> known;
    for (std::size_t member = 0; member < members_.size(); ++member)
        if (const Seen* done = last_complete(member)) known.push_back(done);
    std::sort(known.begin(), known.end(), [](const Seen* a, const Seen* b) {
        return std::tie(a->loss, a->number) < std::tie(b->loss, b->number);
    });
    return known;
}

/// Source: ray 2, tune/schedulers/pbt.py, _quantiles.
std::size_t PbtSampler::quantile_size(std::size_t known) const {
    const double share = std::ceil(static_cast<double>(known) * options_.quantile);
    return std::min(static_cast<std::size_t>(share), known / 2);
}

/// The best of `ranked` that may train on; if none of them, the best that may.
std::vector<const PbtSampler::Seen*> PbtSampler::worth_copying(
    const std::vector<const Seen*>& ranked) const {
    const std::size_t best = std::max<std::size_t>(quantile_size(ranked.size()), 1);
    std::vector<const Seen*> worth;
    for (std::size_t i = 0; i < ranked.size() && (i < best || worth.empty()); ++i)
        if (!is_finished(*ranked[i])) worth.push_back(ranked[i]);
    return worth;
}

PbtSampler::Plan PbtSampler::plan(std::uint64_t number) const {
    // More trials than members at once only where the user gives points while all train.
    const std::size_t member = free_member().value_or(number % members_.size());
    const Seen* last = newest(member);
    Plan plan;
    plan.origin.member = static_cast<int>(member);
    if (last == nullptr) return plan;
    const std::vector<const Seen*> known = ranked();
    const auto worst = known.end() - static_cast<std::ptrdiff_t>(quantile_size(known.size()));
    const bool goes_on = last->state == Observation::State::kComplete && !is_finished(*last) &&
                         std::find(worst, known.end(), last) == known.end();
    const std::vector<const Seen*> best = worth_copying(known);
    if (goes_on) {
        plan.parent = last;
    } else if (!best.empty()) {
        Draws draws(seed_, number, "pbt exploit");
        plan.parent = best[draws.index(best.size())];
        plan.explores = true;
    } else {
        return plan;
    }
    plan.origin.parent = plan.parent->number;
    plan.origin.generation = plan.parent->origin.generation + 1;
    return plan;
}

std::optional<Origin> PbtSampler::origin(std::uint64_t number) {
    return plan(number).origin;
}

/// With a parent: its values, changed if the member took another's place.
Point PbtSampler::inherited(const Plan& plan, std::uint64_t number, const Point& fixed) const {
    const Point& parent = plan.parent->point;
    for (int turn = 0; plan.explores && turn < kTurnsMax; ++turn) {
        CounterSource source(
            turn == 0 ? seed_ : seed_ ^ stream_key("explore again " + std::to_string(turn)));
        const Point start = explored(space_, parent, options_, source, number);
        Point point = compose_from(space_, groups_, fixed, start, source, number);
        if (!space_.is_forbidden(point)) return point;
    }
    CounterSource source(seed_);
    return compose_from(space_, groups_, fixed, parent, source, number);
}

Point PbtSampler::suggest(std::uint64_t number, const Point& fixed) {
    const Plan made = plan(number);
    if (made.parent != nullptr) return inherited(made, number, fixed);
    CounterSource source(seed_);
    return compose_from(space_, groups_, fixed, space_.empty_point(), source, number);
}

}  // namespace tune::tuner
