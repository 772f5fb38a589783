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
    LockedBatch locked(*this);
    for (const tracker::Event& event : commit.events)
        if (const auto* metrics = std::get_if<tracker::MetricsLogged>(&event))
            take_metrics(locked, *metrics);
        else if (const auto* changed = std::get_if<tracker::ExperimentChanged>(&event))
            take_experiment(locked, changed->experiment);
    seen_position_ = std::max(seen_position_, commit.position);
    while (!after_position_.empty() && after_position_.begin()->first <= seen_position_) {
        locked.after(std::move(after_position_.begin()->second));
        after_position_.erase(after_position_.begin());
    }
}

/// Whoever logged them: the agent, an MLflow client in any language, a REST client.
void Studies::Impl::take_metrics(LockedBatch& locked, const tracker::MetricsLogged& event) {
    const TrialRef ref = find_run(event.run_id);
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
        write_trial(locked, study, trial, nullptr, {});
    if (has_objective) notify(locked, study, &trial);
    // Last, since it may end the trial at once.
    if (const auto why = study.exceeds_budget(trial); why && !progress.directive)
        direct(locked, study, trial, Action::kStop, *why);
    end_if_over(locked, study);
}

void Studies::Impl::after_observed(LockedBatch& locked, std::function<void()> call) {
    const std::int64_t position = store_.last_position();
    if (position <= seen_position_ || stopping_) return locked.after(std::move(call));
    after_position_.emplace(position, std::move(call));
}

void Studies::Impl::notify(LockedBatch& locked, Study& study, const Trial* trial) {
    study.touch();
    if (options_.listener != nullptr) {
        if (trial != nullptr)
            options_.listener->on_trial(study, *trial);
        else
            options_.listener->on_study(study);
    }
    study_polls_.remove_if([&locked, &study](StudyPoll& poll) {
        if (poll.study != &study) return false;
        locked.after([done = std::move(poll.done)] { done({}); });
        return true;
    });
}

void Studies::Impl::after_change(LockedBatch& locked, Study& study) {
    stop_if_failing(locked, study);
    if (study.state() == StudyState::kStopped)
        cancel_queued(locked, study, "the study was stopped");
    if (study.state() == StudyState::kRunning) {
        if (const auto over = study.over(now_ms())) stop_trials(locked, study, over->note);
    }
    complete_if_done(locked, study);
    wake_leases(locked);
}

void Studies::Impl::cancel_queued(LockedBatch& locked, Study& study, const std::string& reason) {
    const std::set<std::uint64_t> queued = study.queued();
    for (const std::uint64_t number : queued)
        finish_trial(locked, study, *study.find(number),
                     {.state = TrialState::kCancelled, .reason = reason, .now_ms = now_ms()});
}

/// A budget is used: nothing waits any more, and what runs is asked to end.
void Studies::Impl::stop_trials(LockedBatch& locked, Study& study, const std::string& reason) {
    cancel_queued(locked, study, reason);
    const std::set<std::uint64_t> running = study.running();
    for (const std::uint64_t number : running)
        direct(locked, study, *study.find(number), Action::kStop, reason);
}

void Studies::Impl::end_if_over(LockedBatch& locked, Study& study) {
    if (study.state() == StudyState::kRunning && study.over(now_ms())) after_change(locked, study);
}

// --- time ----------------------------------------------------------------------------------------

void Studies::Impl::tick() {
    LockedBatch locked(*this);
    const bool retries = retry_at_ms_ != 0 && monotonic_ms() >= retry_at_ms_;
    if (retries) retry_at_ms_ = 0;
    expire_leases(locked);
    if (agents_.forget_silent(monotonic_ms())) note_obstacles();
    expire_holds(locked);
    for (const auto& [name, study] : studies_) {
        end_if_over(locked, *study);
        if (retries) write_unsynced(locked, *study);
    }
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
        const TrialRef ref = find_run(*run_id);
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
        return write_trial(locked, *ref.study, trial, nullptr, {});
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
    study_polls_.remove_if([&locked, now, this](StudyPoll& poll) {
        if (poll.deadline_ms > now && !draining_) return false;
        locked.after([done = std::move(poll.done)] { done({}); });
        return true;
    });
    const std::int64_t due = draining_ ? Timers::kNever_ms : now;
    while (const auto agent_id = lease_poll_ends_.take_due(due)) drop_lease_poll(locked, *agent_id);
    while (const auto agent_id = heartbeat_poll_ends_.take_due(due))
        wake_heartbeat(locked, *agent_id);
}

void Studies::Impl::write_unsynced(LockedBatch& locked, Study& study) {
    if (unsynced_studies_.contains(&study)) write_study(locked, study, {});
    for (std::uint64_t number = 0; number < study.trials().size(); ++number) {
        Trial& trial = *study.find(number);
        if (trial.sync.unsynced) write_trial(locked, study, trial, nullptr, {});
    }
}

std::int64_t Studies::Impl::next_deadline_ms() const {
    std::int64_t next = kNever_ms;
    if (retry_at_ms_ != 0) next = retry_at_ms_;
    if (retired_.size() > 0) next = std::min(next, retired_looked_ms_ + kRetiredLook_ms);
    next = std::min({next, lease_poll_ends_.next_ms(), heartbeat_poll_ends_.next_ms(),
                     lease_ends_.next_ms(), agents_.next_forgotten_ms(), next_hold_ms()});
    for (const StudyPoll& poll : study_polls_) next = std::min(next, poll.deadline_ms);
    for (const auto& [name, study] : studies_) {
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
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
        const std::int64_t now = monotonic_ms();
        const std::int64_t next = next_deadline_ms();
        if (next > now) {
            const std::int64_t wait_ms = std::min(next - now, kTickMax_ms);
            ticker_sleeps_until_ms_ = now + wait_ms;
            ticker_wake_.wait_for(lock, std::chrono::milliseconds(wait_ms));
            ticker_sleeps_until_ms_ = 0;
            if (stopping_ || next_deadline_ms() > monotonic_ms()) continue;
        }
        lock.unlock();
        tick();
        lock.lock();
    }
}

// --- the end -------------------------------------------------------------------------------------

void Studies::Impl::drain() {
    LockedBatch locked(*this);
    if (!std::exchange(draining_, true)) show_interrupted(locked, true);
    give_up_suggestions(locked);
    expire_polls(locked);
}

void Studies::Impl::stop() {
    drain();
    {
        LockedBatch locked(*this);
        stopping_ = true;
        for (auto& [position, call] : after_position_) locked.after(std::move(call));
        after_position_.clear();
        ticker_wake_.notify_all();
    }
    if (ticker_.joinable()) ticker_.join();
    replays_.stop();
    pool_.stop();
    completions_.stop();
}

}  // namespace tune::tuner
