// Trials of several processes on several agents: all of their places or none. An attempt has one
// token, which all of its agents hold; the first fault ends it everywhere, and it is over when the
// processes of the last agent are gone, so that nothing of it meets the next attempt.
//
// A trial on several agents needs them free at one moment, which may never come by itself where
// smaller trials of other studies take each place as it becomes free: studies_holds.cc.

#include <algorithm>
#include <map>
#include <set>

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

constexpr std::string_view kLoopback = "127.";

bool is_loopback(const std::string& address) {
    return address.starts_with(kLoopback) || address == "::1" || address == "localhost";
}

}  // namespace

// --- members -------------------------------------------------------------------------------------

Member Studies::Impl::make_member(const Agent& agent, const LeaseRequest& request, Part part) {
    return {.agent_id = agent.facts.agent_id,
            .host = agent.facts.host,
            .request_id = request.request_id,
            .part = std::move(part),
            .node = {agent.facts.address.empty() ? agent.facts.host : agent.facts.address,
                     request.port},
            .expires_ms = kNotHandedOut_ms};
}

Member* Studies::Impl::current_member(const TrialRef& ref, const std::string& agent_id,
                                      int attempt) const {
    const bool is_running = ref.trial != nullptr && ref.trial->state == TrialState::kRunning &&
                            ref.trial->attempt == attempt;
    return is_running ? ref.trial->progress->holder.find_running(agent_id) : nullptr;
}

/// One agent's part of the attempt has ended. What the attempt's end is, if that was the last one:
/// then the trial was settled.
std::optional<FinishRequest> Studies::Impl::end_part(LockedBatch& locked, const TrialRef& ref,
                                                     Member& member, FinishRequest finish) {
    Holder& holder = ref.trial->progress->holder;
    member.has_ended = true;
    member.is_ending = false;
    member.finish_request = finish.request_id;
    const Outcome outcome = finish.outcome;
    const std::string why = "its part on " + member.host + " has ended" +
                            (finish.reason.empty() ? "" : ": " + finish.reason);
    add_verdict(holder, member, std::move(finish));
    follow(*ref.study, *ref.trial);
    if (holder.has_running()) {
        if (outcome != Outcome::kDone && !ref.trial->progress->directive)
            direct(locked, *ref.study, *ref.trial, Action::kStop, why);
        return std::nullopt;
    }
    FinishRequest verdict = *holder.verdict;
    verdict.request_id = member.finish_request;
    settle_trial(ref, verdict);
    return verdict;
}

void Studies::Impl::settle_trial(const TrialRef& ref, const FinishRequest& finish) {
    ref.study->note_peaks(*ref.trial, finish);
    ref.study->settle(*ref.trial, finish, now_ms());
    const ResourcesConfig& resources = ref.study->config().resources;
    if (resources.learns_memory || resources.learns_gpu_memory) note_obstacle(*ref.study);
}

/// As above for an agent that will not say so itself.
void Studies::Impl::lose_part(LockedBatch& locked, const TrialRef& ref, Member& member,
                              const std::string& reason) {
    if (!ref.trial->progress->holder.is_gang()) {
        ref.study->lose_attempt(*ref.trial, reason, now_ms());
    } else {
        FinishRequest lost;
        lost.outcome = Outcome::kLost;
        lost.reason = reason;
        static_cast<void>(end_part(locked, ref, member, std::move(lost)));
    }
    writer_.write_trial(locked, *ref.study, *ref.trial, nullptr, {});
}

// --- placing -------------------------------------------------------------------------------------

/// Agents that wait for a lease and have room for a part each, if there are enough: those of one
/// topology if possible, else the longest waiting.
std::vector<std::string> Studies::Impl::choose_agents(const Study& study, const TrialNeeds& needs,
                                                      const Shape& shape) {
    const auto wanted = static_cast<std::size_t>(shape.nodes);
    std::vector<std::string> all;
    std::map<std::string, std::vector<std::string>> by_topology;
    for (const std::string& front : lease_line_.fronts()) {
        const Agent* const first = agents_.find(front);
        if (first == nullptr || !part_in(first->room, needs, shape.nproc)) continue;
        const std::string topology = topology_of(first->room);
        // Some of a group may be kept for other trials.
        const std::size_t most = wanted + holds_.agents_kept();
        for (const std::string& id : lease_line_.group_of(front, most)) {
            const Agent* const agent = agents_.find(id);
            if (agent == nullptr || !part_beside_holds(*agent, study, needs, shape.nproc)) continue;
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
void Studies::Impl::place_gangs(LockedBatch& locked) {
    if (phase_.draining || writer_.error() || is_placing_) return;
    const bool has_gangs =
        std::any_of(book_.all().begin(), book_.all().end(), [](const auto& entry) {
            const ResourcesConfig& resources = entry.second->config().resources;
            return resources.nnodes > 1 || resources.processes > 1;
        });
    is_placing_ = true;
    if (has_gangs) sort_lease_line();
    for (bool is_placed = has_gangs; is_placed;) {
        is_placed = false;
        for (Study* study : in_order()) {
            is_placed = place_gang(locked, *study);
            if (is_placed) break;  // what it holds now may change the order
        }
    }
    is_placing_ = false;
    preempt(locked);
}

/// True: a trial was started, and another may be.
bool Studies::Impl::place_gang(LockedBatch& locked, Study& study) {
    const TrialNeeds needs = study.needs();
    if (!needs.is_gang()) return false;
    suggestions_.reuse_known(locked, study);
    if (!study.may_start(now_ms())) return false;
    for (const Shape& shape : needs.shapes) {
        if (shape.nodes == 1) continue;
        const std::vector<std::string> ids = choose_agents(study, needs, shape);
        if (ids.empty() || !is_within_quota(study, usage_on(ids, study, needs, shape))) continue;
        if (study.queued().empty()) {
            if (!gangs_wanted_.insert(&study).second) return false;
            suggestions_.want(
                locked, study,
                {.settled = [this, &study](LockedBatch& later, const Result<Trial*>&) {
                    gangs_wanted_.erase(&study);
                    place_gangs(later);
                }});
            return false;
        }
        start_gang(locked, study, needs, shape, ids);
        return true;
    }
    if (quota_reason(study).empty() && study_before(study) == nullptr) hold_for(study);
    return false;
}

/// What the trial would hold of these agents.
Usage Studies::Impl::usage_on(const std::vector<std::string>& ids, const Study& study,
                              const TrialNeeds& needs, const Shape& shape) {
    Usage usage;
    for (const std::string& id : ids) {
        const Agent& agent = *agents_.find(id);
        if (const auto part = part_beside_holds(agent, study, needs, shape.nproc))
            usage += usage_of(*part, agent.room);
    }
    return usage;
}

void Studies::Impl::start_gang(LockedBatch& locked, Study& study, const TrialNeeds& needs,
                               const Shape& shape, const std::vector<std::string>& ids) {
    std::vector<LeasePoll> polls;
    std::vector<Member> members;
    bool is_local = true;
    std::string hosts;
    for (const std::string& id : ids) {
        const Agent& agent = *agents_.find(id);
        polls.push_back(unpark(id));
        members.push_back(make_member(agent, polls.back().request,
                                      *part_beside_holds(agent, study, needs, shape.nproc)));
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
                                .now_ms = now_ms()});
    release_hold(study, ids);
    agents_.follow(study, trial);
    give_gang(locked, {&study, &trial}, std::move(polls));
}

/// Answers all once the attempt is on disk.
void Studies::Impl::give_gang(LockedBatch& locked, const TrialRef& ref,
                              std::vector<LeasePoll> polls) {
    std::vector<Lease> leases;
    const Holder& holder = ref.trial->progress->holder;
    for (const Member& member : holder.members)
        leases.push_back(make_lease(*ref.study, *ref.trial, member));
    if (polls.front().request.wants_tokens && !logs_in(*ref.study))
        leases.front().token = issue_token(*ref.trial);
    begin_lease(*ref.trial);
    wake_ticker_for(*ref.study, *ref.trial);
    writer_.write_trial(
        locked, *ref.study, *ref.trial, nullptr,
        [this, ref, attempt = ref.trial->attempt, polls = std::move(polls),
         leases = std::move(leases)](LockedBatch& later, const Result<void>& result) {
            const bool is_still_held =
                ref.trial->state == TrialState::kRunning && ref.trial->attempt == attempt;
            if (!result && is_still_held) {
                ref.study->requeue(*ref.trial, "could not be written", now_ms());
                follow(*ref.study, *ref.trial);
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
