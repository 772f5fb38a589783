// Attempts that run. A lease ends when it is not renewed in time; each agent of a trial on several
// has its own. An attempt of several has one token, which all of its agents hold; the first fault
// ends it everywhere, and it is over when the processes of the last agent are gone, so that nothing
// of it meets the next attempt.

#include "tuner/study/registry/broker/running_attempts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text/number_text.h"

namespace tune::tuner {
namespace {

std::vector<std::string> silent_members(const Holder& holder, std::int64_t now) {
    std::vector<std::string> ids;
    for (const Member& member : holder.members)
        if (!member.has_ended && !member.is_ending && member.expires_ms <= now)
            ids.push_back(member.agent_id);
    return ids;
}

}  // namespace

std::string token_of(const AttemptId& attempt) {
    return attempt.run_id + "/" + std::to_string(attempt.attempt);
}

Member* RunningAttempts::current_member(const TrialRef& ref, const std::string& agent_id,
                                        int attempt) const {
    const bool is_running = ref.trial != nullptr && ref.trial->state == TrialState::kRunning &&
                            ref.trial->attempt == attempt;
    return is_running ? ref.trial->progress->holder.find_running(agent_id) : nullptr;
}

void RunningAttempts::renew(const TrialRef& ref, Member& member) const {
    member.expires_ms = clock_.monotonic_ms() + ref.trial->progress->holder.ttl_ms;
}

void RunningAttempts::begin(const Trial& trial) {
    Holder& holder = trial.progress->holder;
    holder.expires_ms = clock_.monotonic_ms() + holder.ttl_ms;
    for (Member& member : holder.members) member.expires_ms = holder.expires_ms;
    if (holder.ttl_ms > 0) lease_ends_.set(trial.run_id, holder.expires_ms);
}

void RunningAttempts::count_renewals() {
    for (const Renewal& renewal : renewals_.take()) {
        const TrialRef ref = book_.find_run(renewal.attempt.run_id);
        if (Member* const member = current_member(ref, renewal.agent_id, renewal.attempt.attempt))
            renew(ref, *member);
    }
}

/// Asks whoever holds the attempt to end it. A client without a connection learns of it
/// at its next report; when the study is over its attempt is cancelled at once.
void RunningAttempts::direct(LockedBatch& locked, Study& study, Trial& trial, Action action,
                             std::string reason) {
    TrialProgress& progress = *trial.progress;
    if (progress.holder.agent_id.empty() && action == Action::kStop) {
        writer_.finish_trial(
            locked, study, trial,
            {.state = TrialState::kCancelled, .reason = reason, .now_ms = clock_.now_ms()});
        return;
    }
    if (progress.directive && progress.directive->action == action) return;
    progress.directive = Directive{.run_id = trial.run_id,
                                   .attempt = trial.attempt,
                                   .action = action,
                                   .reason = std::move(reason)};
    for (Member& member : progress.holder.members) {
        member.is_directed = false;
        if (!member.has_ended) events_.wake_heartbeat(locked, member.agent_id);
    }
}

/// One agent's part of the attempt has ended. What the attempt's end is, if that was the last one:
/// then the trial was settled.
std::optional<FinishRequest> RunningAttempts::end_part(LockedBatch& locked, const TrialRef& ref,
                                                       Member& member, FinishRequest finish) {
    Holder& holder = ref.trial->progress->holder;
    member.has_ended = true;
    member.is_ending = false;
    member.finish_request = finish.request_id;
    const Outcome outcome = finish.outcome;
    const std::string why = "its part on " + member.host + " has ended" +
                            (finish.reason.empty() ? "" : ": " + finish.reason);
    add_verdict(holder, member, std::move(finish));
    events_.follow(*ref.study, *ref.trial);
    if (holder.has_running()) {
        if (outcome != Outcome::kDone && !ref.trial->progress->directive)
            direct(locked, *ref.study, *ref.trial, Action::kStop, why);
        return std::nullopt;
    }
    FinishRequest verdict = *holder.verdict;
    verdict.request_id = member.finish_request;
    settle(ref, verdict);
    return verdict;
}

void RunningAttempts::settle(const TrialRef& ref, const FinishRequest& finish) {
    ref.study->needs().note_peaks(*ref.trial, finish);
    ref.study->settle(*ref.trial, finish, clock_.now_ms());
    const ResourcesConfig& resources = ref.study->config().resources;
    if (resources.learns_memory || resources.learns_gpu_memory) events_.note_obstacle(*ref.study);
}

/// As above for an agent that will not say so itself.
void RunningAttempts::lose(LockedBatch& locked, const TrialRef& ref, Member& member,
                           const std::string& reason) {
    if (!ref.trial->progress->holder.is_gang()) {
        ref.study->lose_attempt(*ref.trial, reason, clock_.now_ms());
    } else {
        FinishRequest lost;
        lost.outcome = Outcome::kLost;
        lost.reason = reason;
        static_cast<void>(end_part(locked, ref, member, std::move(lost)));
    }
    writer_.write_trial(locked, *ref.study, *ref.trial, nullptr, {});
}

/// Renewals that have arrived count before anything is judged.
void RunningAttempts::expire(LockedBatch& locked) {
    count_renewals();
    const std::int64_t now = clock_.monotonic_ms();
    std::set<Study*> changed;
    while (const auto run_id = lease_ends_.take_due(now)) {
        const TrialRef ref = book_.find_run(*run_id);
        if (ref.trial == nullptr || ref.trial->state != TrialState::kRunning) continue;
        const std::optional<std::int64_t> first = ref.trial->progress->holder.first_expiry_ms();
        if (!first || *first == kNotHandedOut_ms) continue;
        if (*first > now) {
            lease_ends_.set(*run_id, *first);
            continue;
        }
        expire_one(locked, ref, now);
        changed.insert(ref.study);
    }
    for (Study* study : changed) events_.after_change(locked, *study);
}

/// Of a client, or of each agent that is silent.
void RunningAttempts::expire_one(LockedBatch& locked, const TrialRef& ref, std::int64_t now) {
    Trial& trial = *ref.trial;
    Holder& holder = trial.progress->holder;
    const std::string silent = " has been silent for " + duration_text(holder.ttl_ms);
    const auto on = [](const std::string& host) { return host.empty() ? "" : " on " + host; };
    if (holder.members.empty()) {
        ref.study->lose_attempt(trial, "its client" + on(trial.worker) + silent, clock_.now_ms());
        return writer_.write_trial(locked, *ref.study, trial, nullptr, {});
    }
    const int attempt = trial.attempt;
    for (const std::string& id : silent_members(holder, now)) {
        Member* const member = current_member(ref, id, attempt);
        if (member == nullptr) return;  // that was the last one, and the attempt is over
        const std::string host = member->host.empty() ? trial.worker : member->host;
        lose(locked, ref, *member, "its agent" + on(host) + silent);
    }
    if (trial.state != TrialState::kRunning) return;
    if (const auto next = trial.progress->holder.first_expiry_ms())
        lease_ends_.set(trial.run_id, *next);
}

}  // namespace tune::tuner
