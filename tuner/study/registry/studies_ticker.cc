// What time and commits bring: leases and polls that expire, studies whose time is over, metrics
// that arrive, writes that are tried again.

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/log.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

constexpr std::int64_t kNever_ms = std::numeric_limits<std::int64_t>::max();
/// Longest sleep of the ticker: the machine's clocks may disagree about suspend.
constexpr std::int64_t kTickMax_ms = 10'000;
/// How often removed studies are looked at until they are freed.
constexpr std::int64_t kRetiredLook_ms = 1000;
/// Names of metrics kept for the sentence "reported only ...".
constexpr std::size_t kOtherMetricsMax = 8;

std::vector<std::string> silent_members(const Holder& holder, std::int64_t now) {
    std::vector<std::string> ids;
    for (const Member& member : holder.members)
        if (!member.has_ended && !member.is_ending && member.expires_ms <= now)
            ids.push_back(member.agent_id);
    return ids;
}

}  // namespace

// --- commits -------------------------------------------------------------------------------------

void Studies::Impl::on_commit(const tracker::Commit& commit) {
    LockedBatch locked(lock_);
    for (const tracker::Event& event : commit.events)
        if (const auto* metrics = std::get_if<tracker::MetricsLogged>(&event))
            take_metrics(locked, *metrics);
        else if (const auto* changed = std::get_if<tracker::ExperimentChanged>(&event))
            lifecycle_.take_experiment(locked, changed->experiment);
    commits_.observe(locked, commit.position);
}

/// Whoever logged them: the agent, an MLflow client in any language, a REST client.
void Studies::Impl::take_metrics(LockedBatch& locked, const tracker::MetricsLogged& event) {
    const TrialRef ref = book_.find_run(event.run_id);
    if (ref.trial == nullptr || ref.trial->state != TrialState::kRunning) return;
    Study& study = *ref.study;
    Trial& trial = *ref.trial;
    TrialProgress& progress = *trial.progress;
    const auto& cost = study.config().budget.cost;
    bool has_objective = false;
    for (const tracker::Metric& metric : event.metrics) {
        if (cost && metric.key == cost->metric) progress.note_cost(metric.step, metric.value);
        const std::optional<Verdict> verdict =
            study.report(trial, metric.key, {metric.step, metric.timestamp_ms, metric.value});
        if (!verdict) {
            auto& others = progress.other_metrics;
            const bool is_own =
                metric.key.starts_with("tune.") || metric.key.starts_with("system/");
            if (!is_own && others.size() < kOtherMetricsMax &&
                std::find(others.begin(), others.end(), metric.key) == others.end())
                others.push_back(metric.key);
            continue;
        }
        has_objective = true;
        if (*verdict == Verdict::kPrune && !progress.directive)
            direct(locked, study, trial, Action::kPrune,
                   "pruned at step " + std::to_string(metric.step));
    }
    if (std::exchange(progress.is_rolled_back, false))
        writer_.write_trial(locked, study, trial, nullptr, {});
    if (has_objective) notify(locked, study, &trial);
    // Last, since it may end the trial at once.
    if (const auto why = study.exceeds_budget(trial); why && !progress.directive)
        direct(locked, study, trial, Action::kStop, *why);
    end_if_over(locked, study);
}

void Studies::Impl::end_if_over(LockedBatch& locked, Study& study) {
    if (study.state() == StudyState::kRunning && study.over(now_ms())) after_change(locked, study);
}

// --- time ----------------------------------------------------------------------------------------

void Studies::Impl::tick() {
    LockedBatch locked(lock_);
    expire_leases(locked);
    if (agents_.forget_silent(monotonic_ms())) note_obstacles();
    expire_holds(locked);
    for (const auto& [name, study] : book_.all()) end_if_over(locked, *study);
    writer_.retry_due(locked);
    expire_polls(locked);
    free_retired(locked);
    retired_looked_ms_ = monotonic_ms();
}

/// Renewals that have arrived count before anything is judged.
void Studies::Impl::expire_leases(LockedBatch& locked) {
    count_renewals();
    const std::int64_t now = monotonic_ms();
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
        expire_lease(locked, ref, now);
        changed.insert(ref.study);
    }
    for (Study* study : changed) after_change(locked, *study);
}

/// Of a client, or of each agent that is silent.
void Studies::Impl::expire_lease(LockedBatch& locked, const TrialRef& ref, std::int64_t now) {
    Trial& trial = *ref.trial;
    Holder& holder = trial.progress->holder;
    const std::string silent = " has been silent for " + duration_text(holder.ttl_ms);
    const auto on = [](const std::string& host) { return host.empty() ? "" : " on " + host; };
    if (holder.members.empty()) {
        ref.study->lose_attempt(trial, "its client" + on(trial.worker) + silent, now_ms());
        return writer_.write_trial(locked, *ref.study, trial, nullptr, {});
    }
    const int attempt = trial.attempt;
    for (const std::string& id : silent_members(holder, now)) {
        Member* const member = current_member(ref, id, attempt);
        if (member == nullptr) return;  // that was the last one, and the attempt is over
        const std::string host = member->host.empty() ? trial.worker : member->host;
        lose_part(locked, ref, *member, "its agent" + on(host) + silent);
    }
    if (trial.state != TrialState::kRunning) return;
    if (const auto next = trial.progress->holder.first_expiry_ms())
        lease_ends_.set(trial.run_id, *next);
}

void Studies::Impl::expire_polls(LockedBatch& locked) {
    const std::int64_t now = monotonic_ms();
    const std::int64_t due = phase_.draining ? Timers::kNever_ms : now;
    waits_.expire(locked, due);
    while (const auto agent_id = lease_poll_ends_.take_due(due)) drop_lease_poll(locked, *agent_id);
    while (const auto agent_id = heartbeat_poll_ends_.take_due(due))
        wake_heartbeat(locked, *agent_id);
}

std::int64_t Studies::Impl::next_deadline_ms() const {
    std::int64_t next = kNever_ms;
    if (writer_.retry_at_ms() != 0) next = writer_.retry_at_ms();
    if (book_.retired().size() > 0) next = std::min(next, retired_looked_ms_ + kRetiredLook_ms);
    next = std::min({next, lease_poll_ends_.next_ms(), heartbeat_poll_ends_.next_ms(),
                     lease_ends_.next_ms(), agents_.next_forgotten_ms(), next_hold_ms(),
                     waits_.next_ms()});
    for (const auto& [name, study] : book_.all()) {
        if (study->state() != StudyState::kRunning) continue;
        const auto deadline = study->deadline_ms(now_ms());
        if (!deadline) continue;
        // Told once: afterwards the running trials are on their way out.
        if (!study->over(now_ms()))
            next = std::min(next, monotonic_ms() + std::max<std::int64_t>(*deadline - now_ms(), 1));
        else if (study->running().empty())
            next = monotonic_ms();
    }
    return next;
}

void Studies::Impl::wake_ticker(std::int64_t deadline_ms) {
    if (deadline_ms < ticker_sleeps_until_ms_) ticker_wake_.notify_one();
}

void Studies::Impl::wake_ticker_for(const Study& study, const Trial& trial) {
    const BudgetConfig& budget = study.config().budget;
    if (budget.time_ms || budget.cost) return ticker_wake_.notify_one();
    if (const auto first = trial.progress->holder.first_expiry_ms()) wake_ticker(*first);
}

void Studies::Impl::start_ticker() {
    if (options_.ticker) ticker_ = std::thread([this] { run_ticker(); });
}

void Studies::Impl::run_ticker() {
    std::unique_lock<std::mutex> lock = lock_.take();
    while (!phase_.stopping) {
        const std::int64_t now = monotonic_ms();
        const std::int64_t next = next_deadline_ms();
        if (next > now) {
            const std::int64_t wait_ms = std::min(next - now, kTickMax_ms);
            ticker_sleeps_until_ms_ = now + wait_ms;
            ticker_wake_.wait_for(lock, std::chrono::milliseconds(wait_ms));
            ticker_sleeps_until_ms_ = 0;
            if (phase_.stopping || next_deadline_ms() > monotonic_ms()) continue;
        }
        lock.unlock();
        tick();
        lock.lock();
    }
}

// --- the end -------------------------------------------------------------------------------------

void Studies::Impl::drain() {
    LockedBatch locked(lock_);
    if (!std::exchange(phase_.draining, true)) lifecycle_.show_interrupted(locked, true);
    suggestions_.give_up(locked);
    expire_polls(locked);
}

void Studies::Impl::stop() {
    drain();
    {
        LockedBatch locked(lock_);
        phase_.stopping = true;
        commits_.stop(locked);
        ticker_wake_.notify_all();
    }
    if (ticker_.joinable()) ticker_.join();
    replays_.stop();
    suggestions_.stop();
    lock_.stop();
}

}  // namespace tune::tuner
