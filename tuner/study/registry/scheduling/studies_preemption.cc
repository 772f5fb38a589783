// Trials of a higher priority take the places of lower ones: those get the directive that stops a
// trial at its checkpoint, end as preempted and wait to be run again, which counts as no failure.
//
// No more than needed: agents are found for each trial that could start and has none, first where
// there is room or soon will be, then where the fewest trials have to end; of these the ones with
// the lowest priority, then those that began last. Where ending all lower ones would not be enough,
// none is asked. The agents are kept for the trial meanwhile.

#include <algorithm>
#include <tuple>

#include "tuner/study/placement/victims.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// Trials of one study that places are made for at a time, and agents that are looked at for each.
constexpr std::size_t kPreemptingMax = 64;
constexpr std::size_t kCandidatesMax = 64;

}  // namespace

void Studies::Impl::preempt(LockedBatch& locked) {
    if (phase_.draining || writer_.error() || is_placing_) return;
    std::optional<int> lowest;
    std::optional<int> highest;
    for (const auto& [name, study] : book_.all()) {
        const int priority = priority_of(*study);
        if (study->state() == StudyState::kRunning && (!highest || priority > *highest))
            highest = priority;
        if (!study->running().empty() && (!lowest || priority < *lowest)) lowest = priority;
    }
    if (!lowest || !highest || *highest <= *lowest) return;
    for (Study* study : in_order()) {
        if (priority_of(*study) <= *lowest) break;
        if (!hold_rests_.contains(study)) preempt_for(locked, *study);
    }
}

void Studies::Impl::preempt_for(LockedBatch& locked, Study& study) {
    const TrialNeeds needs = study.needs();
    const std::size_t wanted = study.startable(now_ms(), kPreemptingMax);
    // Who waits its turn does so no longer where places can be made.
    std::optional<Hold> waited;
    for (auto hold = holds_.all().begin(); hold != holds_.all().end(); ++hold)
        if (hold->study == &study && !hold->is_preempting) {
            waited = *hold;
            holds_.drop(hold);
            break;
        }
    make_places(locked, study, needs, wanted);
    if (waited && holds_.count_of(study) == 0) holds_.add(std::move(*waited));
}

void Studies::Impl::make_places(LockedBatch& locked, Study& study, const TrialNeeds& needs,
                                std::size_t wanted) {
    for (std::size_t count = holds_.count_of(study); count < wanted; ++count) {
        std::optional<Claim> claim;
        for (const Shape& shape : needs.shapes)
            if ((claim = find_claim(study, needs, shape, count))) break;
        if (!claim) return;
        std::int64_t grace_ms = 0;
        for (const TrialRef& victim : claim->victims)
            grace_ms = std::max(grace_ms, victim.study->config().grace_ms);
        const Hold& hold = holds_.add({.study = &study,
                                       .shape = claim->shape,
                                       .agents = std::move(claim->agents),
                                       .until_ms = monotonic_ms() + grace_ms + kHold_ms,
                                       .is_preempting = true,
                                       .preempted = claim->victims.size()});
        wake_ticker(hold.until_ms);
        for (const TrialRef& victim : claim->victims)
            direct(locked, *victim.study, *victim.trial, Action::kCheckpointStop,
                   "a trial of study '" + study.name() + "' with priority " +
                       std::to_string(priority_of(study)) + " takes its place");
    }
}

/// What is left of the agent for the study once all that was asked to end has ended, `claim`
/// included, and what is kept there was given out; nothing: what is kept does not fit yet.
std::optional<Room> Studies::Impl::room_to_be(const Agent& agent, const Study& study,
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
    for (const Hold* hold : holds_.on(id)) {
        if (priority_of(*hold->study) < priority_of(study)) continue;
        const auto kept = part_in(room, hold->study->needs(), hold->shape.nproc);
        if (!kept) return std::nullopt;
        take(room, *kept);
    }
    return room;
}

/// Trials on the agent that have to end besides those of the claim; nothing: that would not do.
std::optional<std::vector<TrialRef>> Studies::Impl::victims_on(const Agent& agent,
                                                               const Study& study,
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
            if (priority_of(*ref.study) < priority_of(study)) lower.push_back(ref);
        }
    std::sort(lower.begin(), lower.end(), [this](const TrialRef& a, const TrialRef& b) {
        return std::tuple(priority_of(*a.study), -a.trial->attempt_start_ms, a.study->name(),
                          a.trial->number) < std::tuple(priority_of(*b.study),
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
std::vector<std::string> Studies::Impl::preemptible_agents(const Study& study) {
    std::vector<Study*> lower;
    for (const auto& [name, other] : book_.all())
        if (!other->running().empty() && priority_of(*other) < priority_of(study))
            lower.push_back(other.get());
    std::sort(lower.begin(), lower.end(), [this](const Study* a, const Study* b) {
        const Standing of_a = standing_of(*a);
        const Standing of_b = standing_of(*b);
        return comes_before(of_b, of_a);
    });
    std::vector<std::string> ids;
    std::set<std::string> seen;
    for (Study* other : lower)
        for (auto number = other->running().rbegin(); number != other->running().rend(); ++number)
            for (const Member& member : other->find(*number)->progress->holder.members) {
                if (ids.size() >= kCandidatesMax * 4) return ids;
                if (!member.has_ended && seen.insert(member.agent_id).second)
                    ids.push_back(member.agent_id);
            }
    return ids;
}

/// Agents that have the room already, or will have it without anybody's end.
void Studies::Impl::claim_free_room(Claim& claim, const Study& study, const TrialNeeds& needs) {
    const auto wanted = static_cast<std::size_t>(claim.shape.nodes);
    for (const auto& [text, ids] : agents_.groups()) {
        const Agent* const first = agents_.find(*ids.begin());
        if (first == nullptr || !part_in(first->room, needs, claim.shape.nproc)) continue;
        for (const std::string& id : ids) {
            if (claim.agents.size() >= wanted) return;
            const Agent& agent = *agents_.find(id);
            if (!is_reachable(agent)) continue;
            const auto room = room_to_be(agent, study, claim);
            if (room && part_in(*room, needs, claim.shape.nproc)) claim.agents.insert(id);
        }
    }
}

/// Agents for one trial and what has to end on them; nothing: there are not enough. `before`: for
/// so many trials of the study places are kept already, which its user's quota has to allow too.
std::optional<Studies::Impl::Claim> Studies::Impl::find_claim(const Study& study,
                                                              const TrialNeeds& needs,
                                                              const Shape& shape,
                                                              std::size_t before) {
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
        if (agent == nullptr || claim.agents.contains(id) || !is_reachable(*agent)) continue;
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
    if (!is_within_quota(study, more)) return std::nullopt;
    return claim;
}

/// What the trial would take of the agent if nothing ran there.
std::optional<Part> Studies::Impl::part_of_empty(const Agent& agent, const TrialNeeds& needs,
                                                 int nproc) {
    return part_in(room_of(agent.facts), needs, nproc);
}

}  // namespace tune::tuner
