// Memory decides, the store follows. A write that fails because of the disk is tried again each
// second, from what memory says then, so that no order of writes has to be kept; one that the store
// will never take (the user deleted the run) detaches the trial from its run, and its document
// alone is written from then on.

#include "tuner/study/registry/bookkeeping/study_writer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

/// How long a failed write waits. A full disk or queue is given time; nobody waits for it.
constexpr std::int64_t kRetryWrites_ms = 1000;
/// A document without meaning, written to see whether the disk takes one.
constexpr const char* kProbeCollection = "tune.probe";

}  // namespace

bool is_permanent(const Error& error) {
    return error.code == Code::kResourceDoesNotExist ||
           error.code == Code::kInvalidParameterValue || error.code == Code::kInvalidState;
}

void StudyWriter::write_trial(LockedBatch& locked, Study& study, Trial& trial,
                              const FinishRequest* finish, Written written) {
    book_.retired().touch(study);
    events_.follow(study, trial);
    // Before the success that brings it: if that is lost, the failures were still excused.
    if (study.take_excused()) write_study(locked, study, {});
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

void StudyWriter::trial_written(LockedBatch& locked, Study& study, Trial& trial, bool creates,
                                Result<void> result, const Written& written) {
    TrialSync& sync = trial.sync;
    note_write(locked, result);
    if (!result && book_.is_retired(study)) {  // nobody misses it
        if (written) written(locked, std::move(result));
        return;
    }
    if (result) {
        if (creates) sync.run_confirmed = true;
        if (std::exchange(sync.unsynced, false)) unsynced_trials_.erase({&study, trial.number});
        events_.notify(locked, study, &trial);
        if (written) written(locked, std::move(result));
        return;
    }
    const bool is_lost_run = is_permanent(result.error()) && !creates && sync.run_confirmed;
    if (is_lost_run && !sync.detached) {
        log_warning("study '" + study.name() + "', trial " + std::to_string(trial.number) +
                    ": its run can no longer be changed (" + result.error().message +
                    "); the trial continues without it");
        sync.detached = true;
        detached_trials_.insert({&study, trial.number});
        return write_trial(locked, study, trial, nullptr, written);
    }
    if (creates) sync.run_requested = false;
    if (!std::exchange(sync.unsynced, true)) unsynced_trials_.insert({&study, trial.number});
    write_again_later();
    const bool is_known = study.is_experiment_deleted();
    if (creates && !is_known && is_permanent(result.error()) &&
        study.state() == StudyState::kRunning) {
        study.set_state(StudyState::kPaused,
                        "paused: a trial could not be written (" + result.error().message + ")");
        log_warning("study '" + study.name() + "' " + study.status().note);
        write_study(locked, study, {});
    }
    if (written) written(locked, std::move(result));
}

/// The first write that succeeds after failures hands out what waits. One that the store refuses
/// for good says nothing of the disk: it was refused before anything would have been written.
void StudyWriter::note_write(LockedBatch& locked, const Result<void>& result) {
    if (!result && is_permanent(result.error())) return probe_disk(locked);
    const bool was_failing = error_.has_value();
    error_.reset();
    if (!result) error_ = result.error();
    if (was_failing && !error_) events_.wake_leases(locked);
}

/// Where the only write that failed is one that is refused for good by now, nothing else would tell
/// that the disk works again.
void StudyWriter::probe_disk(LockedBatch& locked) {
    if (!error_ || std::exchange(is_probing_, true)) return;
    std::vector<tracker::Command> commands;
    commands.push_back(tracker::PutDocument{kProbeCollection, "disk", "{}"});
    locked.write(std::move(commands), [this](LockedBatch& later, const Result<void>& result) {
        is_probing_ = false;
        note_write(later, result);
    });
}

void StudyWriter::write_again_later() {
    if (retry_at_ms_ == 0) retry_at_ms_ = clock_.monotonic_ms() + kRetryWrites_ms;
    events_.wake_ticker(retry_at_ms_);
}

void StudyWriter::write_study(LockedBatch& locked, Study& study, Written written) {
    book_.retired().touch(study);
    locked.write(
        update_study_commands(study, clock_.now_ms()),
        [this, &study, written = std::move(written)](LockedBatch& later, Result<void> result) {
            note_write(later, result);
            if (!result && book_.is_retired(study)) {
                if (written) written(later, std::move(result));
                return;
            }
            if (!result && is_permanent(result.error())) {
                // The parent run is gone; the document is what counts.
                std::vector<tracker::Command> document =
                    update_study_commands(study, clock_.now_ms());
                document.erase(document.begin(), document.end() - 1);
                return later.write(std::move(document), written);
            }
            if (result) {
                unsynced_studies_.erase(&study);
                events_.study_written(later, study);
            } else {
                unsynced_studies_.insert(&study);
                write_again_later();
            }
            if (written) written(later, std::move(result));
        });
}

/// Derived from the trials, so a failure costs nothing but the display.
void StudyWriter::write_best(LockedBatch& locked, Study& study) {
    std::vector<tracker::Command> commands;
    commands.push_back(best_trial_command(study, clock_.now_ms()));
    locked.write(std::move(commands), [](LockedBatch&, const Result<void>&) {});
}

void StudyWriter::finish_trial(LockedBatch& locked, Study& study, Trial& trial, TrialEnd end) {
    study.finish(trial, std::move(end));
    write_trial(locked, study, trial, nullptr, [](LockedBatch&, const Result<void>&) {});
}

void StudyWriter::retry_due(LockedBatch& locked) {
    if (retry_at_ms_ == 0 || clock_.monotonic_ms() < retry_at_ms_) return;
    retry_at_ms_ = 0;
    write_unsynced(locked);
}

/// They stay among the unsynced until they are written, so the next ones have their turn first:
/// some may be refused for as long as their experiment is deleted.
void StudyWriter::write_unsynced(LockedBatch& locked) {
    for (Study* const study : unsynced_studies_) write_study(locked, *study, {});
    const std::size_t count = std::min(unsynced_trials_.size(), kWrittenAgainMax);
    auto next = unsynced_trials_.upper_bound(last_again_);
    for (std::size_t i = 0; i < count; ++i, ++next) {
        if (next == unsynced_trials_.end()) next = unsynced_trials_.begin();
        last_again_ = *next;
        const auto& [study, number] = *next;
        write_trial(locked, *study, *study->find(number), nullptr, {});
    }
    if (unsynced_trials_.size() > count) write_again_later();
}

void StudyWriter::write_detached(LockedBatch& locked, Study& study) {
    const auto begin = detached_trials_.lower_bound({&study, 0});
    auto end = begin;
    for (; end != detached_trials_.end() && end->first == &study; ++end) {
        Trial& trial = *study.find(end->second);
        trial.sync.detached = false;
        write_trial(locked, study, trial, nullptr, {});
    }
    detached_trials_.erase(begin, end);
}

void StudyWriter::forget(Trials& trials, Study& study) {
    const auto begin = trials.lower_bound({&study, 0});
    auto end = begin;
    while (end != trials.end() && end->first == &study) ++end;
    trials.erase(begin, end);
}

void StudyWriter::forget(Study& study) {
    unsynced_studies_.erase(&study);
    forget(unsynced_trials_, study);
    forget(detached_trials_, study);
}

}  // namespace tune::tuner
