// Which agent gets which trial. A poll is answered with as many trials as the agent has places;
// while one of them is only being suggested, others go on. A poll for which there is nothing waits.

#include "tuner/study/registry/broker/leases.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/registry/broker/lease_terms.h"

namespace tune::tuner {
namespace {

/// How long a poll that has a trial already waits for the suggestion of another.
constexpr std::int64_t kGatherMax_ms = 200;
/// Trials of one answer; the agent asks again at once.
constexpr std::size_t kGrantMax = kAgentSlotsMax;

}  // namespace

void Leases::lease(const std::string& agent_id, LeaseRequest request, Done<LeaseReply> done) {
    LockedBatch locked(lock_);
    Agent* const agent = agents_.find(agent_id);
    if (agent == nullptr) return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    agents_.heard(*agent, clock_.monotonic_ms());
    LeasePoll poll{.agent_id = agent_id,
                   .request = std::move(request),
                   .deadline_ms = 0,
                   .done = done,
                   .give_up = [done = std::move(done)](LockedBatch& later) {
                       later.after([done] { done(LeaseReply{}); });
                   }};
    poll.deadline_ms = clock_.monotonic_ms() + poll_wait_ms(poll.request.wait_ms);
    begin(locked, std::move(poll));
}

void Leases::begin(LockedBatch& locked, LeasePoll poll) {
    // One poll an agent: an older one belongs to a connection that is gone.
    const auto older = granting_.find(poll.agent_id);
    if (older != granting_.end()) {
        Granting& granting = *older->second;
        for (const auto& [ref, attempt] : granting.started)
            if (Member* const member = attempts_.current_member(ref, poll.agent_id, attempt))
                member->request_id = poll.request.request_id;
        std::swap(granting.poll, poll);
        return locked.after([answer = std::move(poll.done)] { answer(LeaseReply{}); });
    }
    drop(locked, poll.agent_id);
    if (!repeat(locked, poll)) grant(locked, std::move(poll));
}

/// The first of the studies that may start a trial there. Where another one that comes before it
/// finds no room, agents are kept for that first.
Study* Leases::next_study(const Agent& agent) {
    const Choice choice = choose_study(agent);
    const bool is_passed = choice.fitting != nullptr && choice.first != nullptr &&
                           choice.first != choice.fitting && backfill_.holds().waiting() == nullptr;
    if (!is_passed) return choice.fitting;
    backfill_.hold_for(*choice.first);
    return choose_study(agent).fitting;
}

Leases::Choice Leases::choose_study(const Agent& agent) {
    Choice choice;
    Turns::Standing first;
    Turns::Standing fitting;
    for (const auto& [name, study] : book_.all()) {
        if (!turns_.may_place(*study) || suggestions_.is_full(*study)) continue;
        const Turns::Standing standing = turns_.standing_of(*study);
        const bool may_be_first = choice.first == nullptr || Turns::comes_before(standing, first);
        const bool may_fit = choice.fitting == nullptr || Turns::comes_before(standing, fitting);
        if (!may_fit) continue;  // then it is not the first of all either
        const std::optional<Part> part = backfill_.fit(agent, *study);
        const std::optional<Usage> used =
            part ? std::optional(usage_of(*part, agent.room)) : std::nullopt;
        if (used ? !turns_.is_within_quota(*study, *used) : !turns_.quota_reason(*study).empty())
            continue;
        if (may_be_first && !backfill_.rests(*study)) {
            choice.first = study.get();
            first = standing;
        }
        if (!used) continue;
        choice.fitting = study.get();
        fitting = standing;
    }
    return choice;
}

/// Whether some study could start a trial of its own on one agent or several.
bool Leases::has_work() {
    return std::any_of(book_.all().begin(), book_.all().end(), [this](const auto& entry) {
        return turns_.may_place(*entry.second) && !suggestions_.is_full(*entry.second);
    });
}

/// The answer to this request was lost on the way: the attempts it started are given again.
bool Leases::repeat(LockedBatch& locked, LeasePoll& poll) {
    if (poll.request.request_id.empty()) return false;
    std::vector<TrialRef> started;
    if (const auto* const held = agents_.held_by(poll.agent_id))
        for (const auto& [run_id, ref] : *held)
            if (ref.trial->sync.run_confirmed &&
                ref.trial->progress->holder.find_running(poll.agent_id)->request_id ==
                    poll.request.request_id)
                started.push_back(ref);
    if (started.empty()) return false;
    std::sort(started.begin(), started.end(), [](const TrialRef& a, const TrialRef& b) {
        return std::tuple(a.study->name(), a.trial->number) <
               std::tuple(b.study->name(), b.trial->number);
    });
    give(locked, poll, started);
    return true;
}

/// Starts as many trials as the agent has places, then answers. None while the disk fails: the
/// writes that wait find out when it works again.
void Leases::grant(LockedBatch& locked, LeasePoll poll) {
    auto granting = std::make_shared<Granting>();
    granting->since_ms = clock_.monotonic_ms();
    granting->poll = std::move(poll);
    granting_[granting->poll.agent_id] = granting;
    continue_grant(locked, granting);
}

void Leases::continue_grant(LockedBatch& locked, const std::shared_ptr<Granting>& granting) {
    const std::string& agent_id = granting->poll.agent_id;
    while (!phase_.draining && !writer_.error() && granting->poll.request.free_slots > 0) {
        const Agent* const agent = agents_.find(agent_id);
        // What it registered and what it holds count, whatever it asks for.
        if (agent == nullptr || agent->room.slots_all <= 0) break;
        backfill_.consider(*agent);
        Study* study = next_study(*agent);
        if (study == nullptr) break;
        suggestions_.reuse_known(locked, *study);
        if (!study->may_start(clock_.now_ms())) continue;
        std::optional<Part> part = backfill_.fit(*agent, *study);
        if (!part) continue;  // what is known by now of its needs has changed
        // Of those in one process only the first one takes a place.
        const bool joins = agent->room.pools.contains(part->pool);
        if (!joins && granting->places_taken >= granting->poll.request.free_slots) break;
        if (granting->started.size() >= kGrantMax) break;
        if (study->trials().queued().empty()) {
            const bool is_late = clock_.monotonic_ms() - granting->since_ms > kGatherMax_ms;
            if (is_late && !granting->started.empty()) break;
            const auto go_on = [this, granting](LockedBatch& later, const Result<Trial*>&) {
                continue_grant(later, granting);
            };
            return suggestions_.want(locked, *study, {.settled = go_on});
        }
        if (!joins) ++granting->places_taken;
        std::vector<Member> members = {
            make_member(*agent, granting->poll.request, *std::move(part))};
        Trial& trial = study->start({.holder = {.agent_id = agent_id,
                                                .request_id = granting->poll.request.request_id,
                                                .ttl_ms = options_.lease_ttl_ms,
                                                .members = std::move(members)},
                                     .worker = agent->facts.host,
                                     .ask_request = {},
                                     .now_ms = clock_.now_ms()});
        backfill_.release(*study, {agent_id});
        agents_.follow(*study, trial);
        granting->started.push_back({{study, &trial}, trial.attempt});
    }
    end_grant(locked, *granting);
}

/// Those that were stopped or lost while others were suggested are not the agent's any more.
void Leases::end_grant(LockedBatch& locked, Granting& granting) {
    LeasePoll& poll = granting.poll;
    const std::shared_ptr<Granting> kept = granting_.extract(poll.agent_id).mapped();
    std::vector<TrialRef> started;
    for (const auto& [ref, attempt] : granting.started)
        if (attempts_.is_current(ref, poll.agent_id, attempt)) started.push_back(ref);
    if (!started.empty()) return give(locked, poll, started);
    if (writer_.error())
        return locked.after(
            [done = std::move(poll.done), error = *writer_.error()] { done(error); });
    if (phase_.draining || clock_.monotonic_ms() >= poll.deadline_ms)
        return locked.after([answer = std::move(poll.done)] { answer(LeaseReply{}); });
    park(locked, std::move(poll));
}

/// Answers once all is on disk, also the hashes of the credentials. One whose answer was lost gets
/// another credential: nobody has the first, and its text is kept nowhere. If none
/// could be written, the answer is the error.
void Leases::give(LockedBatch& locked, LeasePoll& poll, const std::vector<TrialRef>& started) {
    struct Join {
        std::size_t left = 0;
        LeaseReply reply;
        std::optional<Error> error;
        Done<LeaseReply> done;
    };
    auto join = std::make_shared<Join>();
    join->left = started.size();
    join->done = std::move(poll.done);
    for (const TrialRef& ref : started) {
        const Member& member = *ref.trial->progress->holder.find_running(poll.agent_id);
        Lease lease = make_lease(*ref.study, *ref.trial, member);
        // Only who has rank 0 reports; a credential of another would end his.
        const bool is_reporting = !lease.gang || lease.gang->node == 0;
        if (is_reporting) ref.trial->progress->holder.credential_hash.clear();
        if (is_reporting && poll.request.wants_tokens && !logs_in(*ref.study))
            lease.token = issue_token(*ref.trial);
        attempts_.begin(*ref.trial);
        events_.wake_ticker_for(*ref.study, *ref.trial);
        writer_.write_trial(
            locked, *ref.study, *ref.trial, nullptr,
            [this, join, ref, lease = std::move(lease)](LockedBatch& later,
                                                        const Result<void>& result) {
                if (result) {
                    join->reply.leases.push_back(lease);
                } else {
                    join->error = result.error();
                    const bool is_still_held = ref.trial->state == TrialState::kRunning &&
                                               ref.trial->attempt == lease.attempt;
                    if (is_still_held) {
                        ref.study->requeue(*ref.trial, "could not be written", clock_.now_ms());
                        events_.follow(*ref.study, *ref.trial);
                    }
                }
                if (--join->left > 0) return;
                later.after([join] {
                    if (join->reply.leases.empty()) return join->done(*join->error);
                    join->done(std::move(join->reply));
                });
            });
    }
}

void Leases::park(LockedBatch& locked, LeasePoll poll) {
    if (poll.call && poll.call->is_answered) return;
    if (!poll.call) events_.wake_ticker(poll.deadline_ms);
    const Agent* const agent = agents_.find(poll.agent_id);
    waiting_.park(std::move(poll), agent == nullptr ? std::string() : room_text(agent->room));
    gangs_.place(locked);
}

void Leases::drop(LockedBatch& locked, const std::string& agent_id) {
    if (waiting_.has_lease_poll(agent_id)) waiting_.take_lease_poll(agent_id).give_up(locked);
}

bool Leases::add_place(const std::string& agent_id) {
    if (LeasePoll* const parked = waiting_.find_lease_poll(agent_id)) {
        ++parked->request.free_slots;
        return true;
    }
    const auto granting = granting_.find(agent_id);
    if (granting != granting_.end()) ++granting->second->poll.request.free_slots;
    return granting != granting_.end();
}

bool Leases::names(const Study& study) const {
    for (const auto& [agent_id, granting] : granting_)
        for (const auto& [ref, attempt] : granting->started)
            if (ref.study == &study) return true;
    return false;
}

/// Looks at one agent of each group of those that have the same left. Whoever finds nothing waits
/// again, behind those that are looked at now.
void Leases::wake(LockedBatch& locked) {
    backfill_.drop_idle();
    if (writer_.error() || !has_work()) return;
    std::size_t left = waiting_.lease_polls();
    for (bool is_given = true; is_given && left > 0;) {
        is_given = false;
        waiting_.sort_line(agents_);
        for (const std::string& agent_id : waiting_.line().fronts()) {
            if (left == 0 || writer_.error() || !has_work()) break;
            const Agent* const agent = agents_.find(agent_id);
            if (agent == nullptr || !waiting_.has_lease_poll(agent_id)) continue;
            backfill_.consider(*agent);
            if (next_study(*agent) == nullptr) continue;
            --left;
            is_given = true;
            grant(locked, waiting_.take_lease_poll(agent_id));
        }
    }
    if (!writer_.error()) gangs_.place(locked);
}

}  // namespace tune::tuner
