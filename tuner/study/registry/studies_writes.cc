// The way to the store: what memory decided is written, and what could not be written is written
// again later.

#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/log.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// How long a failed write waits. A full disk or queue is given time; nobody waits for it.
constexpr std::int64_t kRetryWrites_ms = 1000;

/// The store will never take this command as it is: the user deleted the run or the experiment.
bool is_permanent(const Error& error) {
    return error.code == Code::kResourceDoesNotExist ||
           error.code == Code::kInvalidParameterValue || error.code == Code::kInvalidState;
}

}  // namespace

Studies::Impl::LockedBatch::~LockedBatch() {
    if (!writes_.empty()) submit();
    lock_.unlock();
    for (const std::function<void()>& call : after_) call();
}

void Studies::Impl::LockedBatch::write(std::vector<tracker::Command> commands, Written written) {
    writes_.push_back({std::move(commands), std::move(written)});
}

/// In one go, so that they share a commit: what is answered after the last of them would wait for
/// the syncs of the others. Under the lock, so that the store takes turns in their order. It may
/// complete at once, on this thread, when its queue is full; such answers wait for the end.
void Studies::Impl::LockedBatch::submit() {
    struct Submission {
        std::thread::id thread = std::this_thread::get_id();
        bool is_over = false;  // of that thread only
    };
    auto submission = std::make_shared<Submission>();
    std::vector<tracker::Submission> all;
    all.reserve(writes_.size());
    for (Write& write : writes_) {
        auto written = std::make_shared<Written>(std::move(write.written));
        auto complete = [this, &impl = impl_, submission, hold = impl_.retired_.hold(),
                         written](const Result<tracker::Outcome>& outcome) {
            Result<void> result = outcome ? Result<void>() : Result<void>(outcome.error());
            auto tell = [&impl, hold, written, result = std::move(result)] {
                LockedBatch later(impl);
                if (*written) (*written)(later, result);
            };
            const bool is_early =
                submission->thread == std::this_thread::get_id() && !submission->is_over;
            if (is_early) return after(std::move(tell));
            impl.completions_.post(std::move(tell));
        };
        all.push_back({tracker::Atomic{std::move(write.commands)}, std::move(complete)});
    }
    impl_.store_.submit(std::move(all));
    submission->is_over = true;
}

void Studies::Impl::write_trial(LockedBatch& locked, Study& study, Trial& trial,
                                const FinishRequest* finish, Written written) {
    retired_.touch(study);
    follow(study, trial);
    const bool creates = !trial.sync.run_requested && !trial.sync.detached;
    std::vector<tracker::Command> commands;
    if (creates)
        commands = create_trial_commands(study, trial);
    else if (trial.sync.detached)
        commands.push_back(trial_document_command(study, trial));
    else
        commands = update_trial_commands(study, trial, finish);
    trial.sync.run_requested = true;
    locked.write(std::move(commands), [this, &study, &trial, creates, written = std::move(written)](
                                          LockedBatch& later, Result<void> result) {
        trial_written(later, study, trial, creates, std::move(result), written);
    });
}

void Studies::Impl::trial_written(LockedBatch& locked, Study& study, Trial& trial, bool creates,
                                  Result<void> result, const Written& written) {
    TrialSync& sync = trial.sync;
    note_write(locked, result);
    if (!result && retired_.contains(study)) {  // nobody misses it
        if (written) written(locked, std::move(result));
        return;
    }
    if (result) {
        if (creates) sync.run_confirmed = true;
        if (std::exchange(sync.unsynced, false)) --unsynced_trials_;
        notify(locked, study, &trial);
        if (written) written(locked, std::move(result));
        return;
    }
    const bool is_lost_run = is_permanent(result.error()) && !creates && sync.run_confirmed;
    if (is_lost_run && !sync.detached) {
        log_warning("study '" + study.name() + "', trial " + std::to_string(trial.number) +
                    ": its run can no longer be changed (" + result.error().message +
                    "); the trial continues without it");
        sync.detached = true;
        return write_trial(locked, study, trial, nullptr, written);
    }
    if (creates) sync.run_requested = false;
    if (!std::exchange(sync.unsynced, true)) ++unsynced_trials_;
    write_again_later();
    const bool is_known = study.is_experiment_deleted();
    if (creates && !is_known && is_permanent(result.error()) &&
        study.state() == StudyState::kRunning) {
        study.set_state(StudyState::kPaused,
                        "paused: a trial could not be written (" + result.error().message + ")");
        log_warning("study '" + study.name() + "' " + study.note());
        write_study(locked, study, {});
    }
    if (written) written(locked, std::move(result));
}

/// While the disk fails no lease is given: each would be an attempt that cannot be written. The
/// first write that succeeds again hands out what waits.
void Studies::Impl::note_write(LockedBatch& locked, const Result<void>& result) {
    const bool was_failing = write_error_.has_value();
    write_error_.reset();
    if (!result && !is_permanent(result.error())) write_error_ = result.error();
    if (was_failing && !write_error_) wake_leases(locked);
}

void Studies::Impl::follow(Study& study, Trial& trial) {
    credentials_.follow(study, trial);
    agents_.follow(study, trial);
}

void Studies::Impl::write_again_later() {
    if (retry_at_ms_ == 0) retry_at_ms_ = monotonic_ms() + kRetryWrites_ms;
    wake_ticker(retry_at_ms_);
}

void Studies::Impl::write_study(LockedBatch& locked, Study& study, Written written) {
    retired_.touch(study);
    locked.write(
        update_study_commands(study, now_ms()),
        [this, &study, written = std::move(written)](LockedBatch& later, Result<void> result) {
            note_write(later, result);
            if (!result && retired_.contains(study)) {
                if (written) written(later, std::move(result));
                return;
            }
            if (!result && is_permanent(result.error())) {
                // The parent run is gone; the document is what counts.
                std::vector<tracker::Command> document = update_study_commands(study, now_ms());
                document.erase(document.begin(), document.end() - 1);
                return later.write(std::move(document), written);
            }
            if (result) {
                unsynced_studies_.erase(&study);
                notify(later, study, nullptr);
                register_best(later, study);
            } else {
                unsynced_studies_.insert(&study);
                write_again_later();
            }
            if (written) written(later, std::move(result));
        });
}

/// Shown on the parent run; derived from the trials, so a failure costs nothing but the display.
void Studies::Impl::write_best(LockedBatch& locked, Study& study) {
    std::vector<tracker::Command> commands;
    commands.push_back(best_trial_command(study, now_ms()));
    locked.write(std::move(commands), [](LockedBatch&, const Result<void>&) {});
}

void Studies::Impl::finish_trial(LockedBatch& locked, Study& study, Trial& trial, TrialEnd end) {
    study.finish(trial, std::move(end));
    write_trial(locked, study, trial, nullptr, [](LockedBatch&, const Result<void>&) {});
}

}  // namespace tune::tuner
