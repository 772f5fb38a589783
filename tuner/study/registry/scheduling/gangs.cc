// Trials of several processes on several agents: all of their places or none. An attempt has one
// token, which all of its agents hold; the first fault ends it everywhere, and it is over when the
// processes of the last agent are gone, so that nothing of it meets the next attempt.
//
// A trial on several agents needs them free at one moment, which may never come by itself where
// smaller trials of other studies take each place as it becomes free: Backfill.

#include "tuner/study/registry/scheduling/gangs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/system/address.h"
#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/registry/broker/lease_terms.h"

namespace tune::tuner {

/// Agents that wait for a lease and have room for a part each, if there are enough: those of one
/// topology if possible, else the longest waiting.
std::vector<std::string> Gangs::choose_agents(const Study& study, const TrialNeeds& needs,
                                              const Shape& shape) {
    const auto wanted = static_cast<std::size_t>(shape.nodes);
    std::vector<std::string> all;
    std::map<std::string, std::vector<std::string>> by_topology;
    for (const std::string& front : waiting_.line().fronts()) {
        const Agent* const first = agents_.find(front);
        if (first == nullptr || !part_in(first->room, needs, shape.nproc)) continue;
        const std::string topology = topology_of(first->room);
        // Some of a group may be kept for other trials.
        const std::size_t most = wanted + backfill_.holds().agents_kept();
        for (const std::string& id : waiting_.line().group_of(front, most)) {
            const Agent* const agent = agents_.find(id);
            if (agent == nullptr || !backfill_.part_beside_holds(*agent, study, needs, shape.nproc))
                continue;
            all.push_back(id);
            if (!topology.empty()) by_topology[topology].push_back(id);
        }
    }
    for (auto& [topology, ids] : by_topology)
        if (ids.size() >= wanted) {
            all = std::move(ids);
            break;
        }
    if (all.size() < wanted) return {};
    all.resize(wanted);
    return all;
}

/// Gives out what trials on several agents can have now, in the order of their studies, and keeps
/// agents for the first that cannot. Then places are made for higher priorities.
void Gangs::place(LockedBatch& locked) {
    if (phase_.draining || writer_.error() || is_placing_) return;
    const bool has_gangs =
        std::any_of(book_.all().begin(), book_.all().end(), [](const auto& entry) {
            const ResourcesConfig& resources = entry.second->config().resources;
            return resources.nnodes > 1 || resources.processes > 1;
        });
    is_placing_ = true;
    if (has_gangs) waiting_.sort_line(agents_);
    for (bool is_placed = has_gangs; is_placed;) {
        is_placed = false;
        for (Study* study : turns_.in_order()) {
            is_placed = place_one(locked, *study);
            if (is_placed) break;  // what it holds now may change the order
        }
    }
    is_placing_ = false;
    preemption_.preempt(locked);
}

/// True: a trial was started, and another may be.
bool Gangs::place_one(LockedBatch& locked, Study& study) {
    const TrialNeeds needs = study.needs().of_next();
    if (!needs.is_gang()) return false;
    suggestions_.reuse_known(locked, study);
    if (!study.may_start(clock_.now_ms())) return false;
    for (const Shape& shape : needs.shapes) {
        if (shape.nodes == 1) continue;
        const std::vector<std::string> ids = choose_agents(study, needs, shape);
        if (ids.empty() || !turns_.is_within_quota(study, usage_on(ids, study, needs, shape)))
            continue;
        if (study.trials().queued().empty()) {
            if (!wanted_.insert(&study).second) return false;
            suggestions_.want(
                locked, study,
                {.settled = [this, &study](LockedBatch& later, const Result<Trial*>&) {
                    wanted_.erase(&study);
                    place(later);
                }});
            return false;
        }
        start(locked, study, needs, shape, ids);
        return true;
    }
    if (turns_.quota_reason(study).empty() && backfill_.study_before(study) == nullptr)
        backfill_.hold_for(study);
    return false;
}

/// What the trial would hold of these agents.
Usage Gangs::usage_on(const std::vector<std::string>& ids, const Study& study,
                      const TrialNeeds& needs, const Shape& shape) {
    Usage usage;
    for (const std::string& id : ids) {
        const Agent& agent = *agents_.find(id);
        if (const auto part = backfill_.part_beside_holds(agent, study, needs, shape.nproc))
            usage += usage_of(*part, agent.room);
    }
    return usage;
}

void Gangs::start(LockedBatch& locked, Study& study, const TrialNeeds& needs, const Shape& shape,
                  const std::vector<std::string>& ids) {
    std::vector<LeasePoll> polls;
    std::vector<Member> members;
    bool is_local = true;
    std::string hosts;
    for (const std::string& id : ids) {
        const Agent& agent = *agents_.find(id);
        polls.push_back(waiting_.take_lease_poll(id));
        members.push_back(
            make_member(agent, polls.back().request,
                        *backfill_.part_beside_holds(agent, study, needs, shape.nproc)));
        is_local = is_local && agent.facts.host == members.front().host;
        hosts += (hosts.empty() ? "" : ", ") + agent.facts.host;
    }
    // An agent beside the server may know only the way within its machine.
    for (Member& member : members)
        if (!is_local && is_loopback(member.node.address)) member.node.address = member.host;
    Trial& trial = study.start({.holder = {.agent_id = ids.front(),
                                           .request_id = polls.front().request.request_id,
                                           .ttl_ms = options_.lease_ttl_ms,
                                           .members = std::move(members)},
                                .worker = std::move(hosts),
                                .ask_request = {},
                                .now_ms = clock_.now_ms()});
    backfill_.release(study, ids);
    agents_.follow(study, trial);
    give(locked, {&study, &trial}, std::move(polls));
}

/// Answers all once the attempt is on disk.
void Gangs::give(LockedBatch& locked, const TrialRef& ref, std::vector<LeasePoll> polls) {
    std::vector<Lease> leases;
    const Holder& holder = ref.trial->progress->holder;
    for (const Member& member : holder.members)
        leases.push_back(make_lease(*ref.study, *ref.trial, member));
    if (polls.front().request.wants_tokens && !logs_in(*ref.study))
        leases.front().token = issue_token(*ref.trial);
    attempts_.begin(*ref.trial);
    events_.wake_ticker_for(*ref.study, *ref.trial);
    writer_.write_trial(
        locked, *ref.study, *ref.trial, nullptr,
        [this, ref, attempt = ref.trial->attempt, polls = std::move(polls),
         leases = std::move(leases)](LockedBatch& later, const Result<void>& result) {
            const bool is_still_held =
                ref.trial->state == TrialState::kRunning && ref.trial->attempt == attempt;
            if (!result && is_still_held) {
                ref.study->requeue(*ref.trial, "could not be written", clock_.now_ms());
                events_.follow(*ref.study, *ref.trial);
            }
            for (std::size_t i = 0; i < polls.size(); ++i)
                later.after([result, done = polls[i].done, lease = leases[i]] {
                    if (result)
                        done(LeaseReply{{lease}});
                    else
                        done(result.error());
                });
        });
}

}  // namespace tune::tuner
