// Trials of a higher priority take the places of lower ones: those get the directive that stops a
// trial at its checkpoint, end as preempted and wait to be run again, which counts as no failure.
//
// No more than needed: agents are found for each trial that could start and has none, first where
// there is room or soon will be, then where the fewest trials have to end; of these the ones with
// the lowest priority, then those that began last. Where ending all lower ones would not be enough,
// none is asked. The agents are kept for the trial meanwhile.

#include "tuner/study/registry/scheduling/preemption.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tuner/study/placement/victims.h"

namespace tune::tuner {
namespace {

/// Trials of one study that places are made for at a time, and agents that are looked at for each.
constexpr std::size_t kPreemptingMax = 64;
constexpr std::size_t kCandidatesMax = 64;

/// What the trial would take of the agent if nothing ran there.
std::optional<Part> part_of_empty(const Agent& agent, const TrialNeeds& needs, int nproc) {
    return part_in(room_of(agent.facts), needs, nproc);
}

}  // namespace

void Preemption::preempt(LockedBatch& locked) {
    if (phase_.draining || writer_.error()) return;
    std::optional<int> lowest;
    std::optional<int> highest;
    for (const auto& [name, study] : book_.all()) {
        const int priority = turns_.priority_of(*study);
        if (study->state() == StudyState::kRunning && (!highest || priority > *highest))
            highest = priority;
        if (!study->trials().running().empty() && (!lowest || priority < *lowest))
            lowest = priority;
    }
    if (!lowest || !highest || *highest <= *lowest) return;
    for (Study* study : turns_.in_order()) {
        if (turns_.priority_of(*study) <= *lowest) break;
        if (!backfill_.rests(*study)) preempt_for(locked, *study);
    }
}

void Preemption::preempt_for(LockedBatch& locked, Study& study) {
    const TrialNeeds needs = study.needs().of_next();
    const std::size_t wanted = study.startable(clock_.now_ms(), kPreemptingMax);
    // Who waits its turn does so no longer where places can be made.
    std::optional<Hold> waited;
    for (auto hold = backfill_.holds().all().begin(); hold != backfill_.holds().all().end(); ++hold)
        if (hold->study == &study && !hold->is_preempting) {
            waited = *hold;
            backfill_.holds().drop(hold);
            break;
        }
    make_places(locked, study, needs, wanted);
    if (waited && backfill_.holds().count_of(study) == 0) backfill_.holds().add(std::move(*waited));
}

void Preemption::make_places(LockedBatch& locked, Study& study, const TrialNeeds& needs,
                             std::size_t wanted) {
    for (std::size_t count = backfill_.holds().count_of(study); count < wanted; ++count) {
        std::optional<Claim> claim;
        for (const Shape& shape : needs.shapes)
            if ((claim = find_claim(study, needs, shape, count))) break;
        if (!claim) return;
        std::int64_t grace_ms = 0;
        for (const TrialRef& victim : claim->victims)
            grace_ms = std::max(grace_ms, victim.study->config().grace_ms);
        const Hold& hold =
            backfill_.holds().add({.study = &study,
                                   .shape = claim->shape,
                                   .agents = std::move(claim->agents),
                                   .until_ms = clock_.monotonic_ms() + grace_ms + kHold_ms,
                                   .is_preempting = true,
                                   .preempted = claim->victims.size()});
        events_.wake_ticker(hold.until_ms);
        for (const TrialRef& victim : claim->victims)
            events_.direct(locked, *victim.study, *victim.trial, Action::kCheckpointStop,
                           "a trial of study '" + study.name() + "' with priority " +
                               std::to_string(turns_.priority_of(study)) + " takes its place");
    }
}

/// What is left of the agent for the study once all that was asked to end has ended, `claim`
/// included, and what is kept there was given out; nothing: what is kept does not fit yet.
std::optional<Room> Preemption::room_to_be(const Agent& agent, const Study& study,
                                           const Claim& claim) {
    Room room = agent.room;
    const std::string& id = agent.facts.agent_id;
    if (const auto* const held = agents_.held_by(id))
        for (const auto& [run_id, ref] : *held) {
            const bool is_claimed =
                std::any_of(claim.victims.begin(), claim.victims.end(),
                            [&](const TrialRef& victim) { return victim.trial == ref.trial; });
            if (is_claimed || ref.trial->progress->directive)
                give_back(room, ref.trial->progress->holder.find_running(id)->part);
        }
    for (const Hold* hold : backfill_.holds().on(id)) {
        if (turns_.priority_of(*hold->study) < turns_.priority_of(study)) continue;
        const auto kept = part_in(room, hold->study->needs().of_next(), hold->shape.nproc);
        if (!kept) return std::nullopt;
        take(room, *kept);
    }
    return room;
}

/// Trials on the agent that have to end besides those of the claim; nothing: that would not do.
std::optional<std::vector<TrialRef>> Preemption::victims_on(const Agent& agent, const Study& study,
                                                            const TrialNeeds& needs, int nproc,
                                                            const Claim& claim) {
    const std::optional<Room> room = room_to_be(agent, study, claim);
    if (!room) return std::nullopt;
    const std::string& id = agent.facts.agent_id;
    std::vector<TrialRef> lower;
    if (const auto* const held = agents_.held_by(id))
        for (const auto& [run_id, ref] : *held) {
            const bool is_claimed =
                std::any_of(claim.victims.begin(), claim.victims.end(),
                            [&](const TrialRef& victim) { return victim.trial == ref.trial; });
            if (is_claimed || ref.trial->progress->directive) continue;
            if (turns_.priority_of(*ref.study) < turns_.priority_of(study)) lower.push_back(ref);
        }
    std::sort(lower.begin(), lower.end(), [this](const TrialRef& a, const TrialRef& b) {
        return std::tuple(turns_.priority_of(*a.study), -a.trial->attempt_start_ms, a.study->name(),
                          a.trial->number) < std::tuple(turns_.priority_of(*b.study),
                                                        -b.trial->attempt_start_ms, b.study->name(),
                                                        b.trial->number);
    });
    std::vector<Part> parts;
    for (const TrialRef& ref : lower)
        parts.push_back(ref.trial->progress->holder.find_running(id)->part);
    const auto chosen = victims_in(*room, needs, nproc, parts);
    if (!chosen) return std::nullopt;
    std::vector<TrialRef> victims;
    for (const std::size_t i : *chosen) victims.push_back(lower[i]);
    return victims;
}

/// Agents on which a trial of lower priority runs, those of the lowest that began last first.
std::vector<std::string> Preemption::preemptible_agents(const Study& study) {
    std::vector<Study*> lower;
    for (const auto& [name, other] : book_.all())
        if (!other->trials().running().empty() &&
            turns_.priority_of(*other) < turns_.priority_of(study))
            lower.push_back(other.get());
    std::sort(lower.begin(), lower.end(), [this](const Study* a, const Study* b) {
        const Turns::Standing of_a = turns_.standing_of(*a);
        const Turns::Standing of_b = turns_.standing_of(*b);
        return Turns::comes_before(of_b, of_a);
    });
    std::vector<std::string> ids;
    std::set<std::string> seen;
    for (Study* other : lower)
        for (auto number = other->trials().running().rbegin();
             number != other->trials().running().rend(); ++number)
            for (const Member& member : other->find(*number)->progress->holder.members) {
                if (ids.size() >= kCandidatesMax * 4) return ids;
                if (!member.has_ended && seen.insert(member.agent_id).second)
                    ids.push_back(member.agent_id);
            }
    return ids;
}

/// Agents that have the room already, or will have it without anybody's end.
void Preemption::claim_free_room(Claim& claim, const Study& study, const TrialNeeds& needs) {
    const auto wanted = static_cast<std::size_t>(claim.shape.nodes);
    for (const auto& [text, ids] : agents_.groups()) {
        const Agent* const first = agents_.find(*ids.begin());
        if (first == nullptr || !part_in(first->room, needs, claim.shape.nproc)) continue;
        for (const std::string& id : ids) {
            if (claim.agents.size() >= wanted) return;
            const Agent& agent = *agents_.find(id);
            if (!backfill_.is_reachable(agent)) continue;
            const auto room = room_to_be(agent, study, claim);
            if (room && part_in(*room, needs, claim.shape.nproc)) claim.agents.insert(id);
        }
    }
}

/// Agents for one trial and what has to end on them; nothing: there are not enough. `before`: for
/// so many trials of the study places are kept already, which its user's quota has to allow too.
std::optional<Preemption::Claim> Preemption::find_claim(const Study& study, const TrialNeeds& needs,
                                                        const Shape& shape, std::size_t before) {
    const auto wanted = static_cast<std::size_t>(shape.nodes);
    Claim claim{.shape = shape};
    claim_free_room(claim, study, needs);
    struct Candidate {
        std::size_t victims = 0;
        std::string id;
    };
    std::vector<Candidate> candidates;
    for (const std::string& id : preemptible_agents(study)) {
        if (claim.agents.size() >= wanted || candidates.size() >= kCandidatesMax + wanted) break;
        const Agent* const agent = agents_.find(id);
        if (agent == nullptr || claim.agents.contains(id) || !backfill_.is_reachable(*agent))
            continue;
        const auto victims = victims_on(*agent, study, needs, shape.nproc, claim);
        if (victims) candidates.push_back({victims->size(), id});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.victims < b.victims; });
    for (const Candidate& candidate : candidates) {
        if (claim.agents.size() >= wanted) break;
        // Those of a trial on several agents have ended here too by now.
        const auto victims =
            victims_on(*agents_.find(candidate.id), study, needs, shape.nproc, claim);
        if (!victims) continue;
        claim.agents.insert(candidate.id);
        claim.victims.insert(claim.victims.end(), victims->begin(), victims->end());
    }
    if (claim.agents.size() < wanted) return std::nullopt;
    Usage more;
    for (const std::string& id : claim.agents)
        if (const auto part = part_of_empty(*agents_.find(id), needs, shape.nproc))
            for (std::size_t i = 0; i <= before; ++i)
                more += usage_of(*part, agents_.find(id)->room);
    if (!turns_.is_within_quota(study, more)) return std::nullopt;
    return claim;
}

}  // namespace tune::tuner
