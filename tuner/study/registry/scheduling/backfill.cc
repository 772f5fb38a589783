// Agents that are kept for a trial that waits, so that a large one is not passed by small ones for
// ever: each place that becomes free would go to a trial that fits into it.
//
// When a study is passed by one that comes after it, agents are chosen for its next trial: those
// that have the least to end first. What fits beside the trial may still start there; all else is
// kept free, until there is room. The other agents go on as before, so nothing is delayed that does
// not have to be. One study at a time waits like this, in the order of studies; agents that are
// kept for trials of a higher priority come on top (Preemption).

#include "tuner/study/registry/scheduling/backfill.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tuner/study/registry/timers.h"

namespace tune::tuner {

/// What a trial would take of the agent, beside what is kept there for trials that come first.
/// Studies of a higher priority pass what is kept for lower ones.
std::optional<Part> Backfill::part_beside_holds(const Agent& agent, const Study& study,
                                                const TrialNeeds& needs, int nproc) const {
    const std::vector<Hold*>& holds = holds_.on(agent.facts.agent_id);
    if (holds.empty()) return part_in(agent.room, needs, nproc);
    Room left = agent.room;
    for (const Hold* hold : holds) {
        if (hold->study == &study || turns_.priority_of(*hold->study) < turns_.priority_of(study))
            continue;
        const auto kept = part_in(left, hold->study->needs().of_next(), hold->shape.nproc);
        if (!kept) return std::nullopt;
        take(left, *kept);
    }
    return part_in(left, needs, nproc);
}

std::optional<Part> Backfill::fit(const Agent& agent, const Study& study) const {
    const TrialNeeds needs = study.needs().of_next();
    const Shape& first = needs.shapes.front();  // those on one machine come first
    if (first.nodes > 1) return std::nullopt;
    return part_beside_holds(agent, study, needs, first.nproc);
}

/// Whether it can be expected to ask for trials soon.
bool Backfill::is_reachable(const Agent& agent) const {
    return clock_.monotonic_ms() - agent.heard_ms <= options_.lease_ttl_ms;
}

bool Backfill::is_kept_before(const std::string& agent_id, const Study& study) const {
    const std::vector<Hold*>& holds = holds_.on(agent_id);
    return std::any_of(holds.begin(), holds.end(), [&](const Hold* hold) {
        return hold->study == &study ||
               turns_.priority_of(*hold->study) >= turns_.priority_of(study);
    });
}

/// The agents that have the least to end before the trial fits, at most one for each of its
/// machines. O(groups of agents that have the same left).
std::set<std::string> Backfill::nearest_agents(const Study& study, const TrialNeeds& needs,
                                               const Shape& shape) {
    const auto wanted = static_cast<std::size_t>(shape.nodes);
    std::multimap<int, const std::set<std::string>*> groups;
    for (const auto& [text, ids] : agents_.groups()) {
        const Agent* const first = agents_.find(*ids.begin());
        if (first == nullptr) continue;
        if (const auto lacking = lacking_in(first->room, needs, shape.nproc))
            groups.emplace(*lacking, &ids);
    }
    std::set<std::string> chosen;
    for (const auto& [lacking, ids] : groups)
        for (const std::string& id : *ids) {
            if (chosen.size() >= wanted) return chosen;
            if (is_kept_before(id, study) || !is_reachable(*agents_.find(id))) continue;
            chosen.insert(id);
        }
    return chosen;
}

void Backfill::hold_for(Study& study) {
    if (holds_.waiting() != nullptr || rests_.contains(&study)) return;
    const TrialNeeds needs = study.needs().of_next();
    const std::optional<Shape> shape = agents_.possible_shape(needs);
    if (!shape) return;
    const Hold& hold = holds_.add({.study = &study,
                                   .shape = *shape,
                                   .agents = nearest_agents(study, needs, *shape),
                                   .until_ms = clock_.monotonic_ms() + kHold_ms});
    events_.wake_ticker(hold.until_ms);
}

/// An agent that has less to end than one that is kept takes its place.
void Backfill::consider(const Agent& agent) {
    Hold* const hold = holds_.waiting();
    const std::string& id = agent.facts.agent_id;
    if (hold == nullptr || hold->agents.contains(id) || is_kept_before(id, *hold->study)) return;
    const TrialNeeds needs = hold->study->needs().of_next();
    const int nproc = hold->shape.nproc;
    const std::optional<int> lacking = lacking_in(agent.room, needs, nproc);
    if (!lacking) return;
    if (hold->agents.size() < static_cast<std::size_t>(hold->shape.nodes))
        return holds_.keep(*hold, id);
    const std::string* worst = nullptr;
    int most = *lacking;
    for (const std::string& kept : hold->agents) {
        const Agent* const other = agents_.find(kept);
        const std::optional<int> theirs =
            other == nullptr ? std::nullopt : lacking_in(other->room, needs, nproc);
        if (theirs && *theirs <= most) continue;
        worst = &kept;
        if (!theirs) break;  // it is gone
        most = *theirs;
    }
    if (worst == nullptr) return;
    holds_.let_go(*hold, std::string(*worst));
    holds_.keep(*hold, id);
}

/// A trial of the study starts on these agents: what was kept for it is free again.
void Backfill::release(const Study& study, const std::vector<std::string>& ids) {
    const auto is_there = [&](const Hold& hold) {
        return std::any_of(ids.begin(), ids.end(),
                           [&](const std::string& id) { return hold.agents.contains(id); });
    };
    auto found = holds_.all().end();
    for (auto hold = holds_.all().begin(); hold != holds_.all().end(); ++hold) {
        if (hold->study != &study) continue;
        if (found == holds_.all().end()) found = hold;
        if (!is_there(*hold)) continue;
        found = hold;
        break;
    }
    if (found != holds_.all().end()) holds_.drop(found);
}

/// Whether each of its agents has room now: then nothing runs there that has to end first.
bool Backfill::is_ready(const Hold& hold) {
    const TrialNeeds needs = hold.study->needs().of_next();
    return std::all_of(hold.agents.begin(), hold.agents.end(), [&](const std::string& id) {
        const Agent* const agent = agents_.find(id);
        return agent != nullptr && part_in(agent->room, needs, hold.shape.nproc);
    });
}

/// Holds of studies that start nothing now, or fewer trials than they hold for.
void Backfill::drop_idle() {
    std::map<const Study*, std::size_t> kept;
    for (auto hold = holds_.all().begin(); hold != holds_.all().end();) {
        Study& study = *hold->study;
        const std::size_t count = ++kept[&study];
        const bool is_wanted = turns_.may_place(study) && !phase_.draining &&
                               (count == 1 || study.startable(clock_.now_ms(), count) >= count);
        hold = is_wanted ? std::next(hold) : holds_.drop(hold);
    }
}

/// A hold lasts while trials run on its agents that have to end. Once there is room, or where there
/// are not enough agents, it lasts for kHold_ms: an agent that never asks must not keep the others.
/// Then its study rests for as long, and the others get their turn.
void Backfill::expire(LockedBatch& locked) {
    const std::int64_t now = clock_.monotonic_ms();
    const std::size_t before = holds_.all().size();
    drop_idle();
    for (auto hold = holds_.all().begin(); hold != holds_.all().end();) {
        if (now < hold->until_ms) {
            ++hold;
            continue;
        }
        const bool is_whole = hold->agents.size() == static_cast<std::size_t>(hold->shape.nodes);
        const bool is_known =
            std::all_of(hold->agents.begin(), hold->agents.end(), [&](const std::string& id) {
                const Agent* const agent = agents_.find(id);
                return agent != nullptr && is_reachable(*agent);
            });
        if (is_whole && is_known && !is_ready(*hold)) {
            hold->until_ms = now + kHold_ms;
            ++hold;
            continue;
        }
        // With other agents it may do better, so only what cannot be had rests.
        if (is_known) rests_[hold->study] = now + kHold_ms;
        hold = holds_.drop(hold);
    }
    const std::size_t rested =
        std::erase_if(rests_, [now](const auto& rest) { return rest.second <= now; });
    if (holds_.all().size() < before || rested > 0) events_.wake_leases(locked);
}

std::int64_t Backfill::next_ms() const {
    std::int64_t next = Timers::kNever_ms;
    for (const Hold& hold : holds_.all()) next = std::min(next, hold.until_ms);
    for (const auto& [study, until_ms] : rests_) next = std::min(next, until_ms);
    return next;
}

/// The study that waits and comes before this one; nullptr: none does. One that rests after agents
/// were kept for it in vain lets the others pass.
Study* Backfill::study_before(const Study& study) const {
    Study* first = nullptr;
    Turns::Standing best = turns_.standing_of(study);
    for (const auto& [name, other] : book_.all()) {
        if (other.get() == &study || rests_.contains(other.get())) continue;
        if (!turns_.may_place(*other)) continue;
        const Turns::Standing standing = turns_.standing_of(*other);
        if (!Turns::comes_before(standing, best)) continue;
        best = standing;
        first = other.get();
    }
    return first;
}

}  // namespace tune::tuner
