// An erased study lies in a collection of its own, under its id, so that its name is free; its
// trials' documents stay where they are. Its Study stays in memory (Retired) while writes that are
// under way name it.

#include "tuner/study/registry/lifecycle/study_lifecycle.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "tuner/study/journal/erased_studies.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

/// Runs that one write changes: a transaction stays small.
constexpr std::size_t kRunsAtOnce = 1000;

}  // namespace

void StudyLifecycle::change(const std::string& name, Change change, Done<void> done) {
    LockedBatch locked(lock_);
    Study* study = book_.find(name);
    if (study == nullptr)
        return locked.after([done, error = book_.no_such_study(name)] { done(error); });
    if (study->is_experiment_deleted() && commits_.is_behind())  // it may have been restored by now
        return commits_.after_observed(
            locked, [this, name, change, done] { this->change(name, change, done); });
    if (const auto usable = check_usable(*study); !usable)
        return locked.after([done, error = usable.error()] { done(error); });
    const bool is_completed = study->state() == StudyState::kCompleted;
    std::vector<Trial*> again;
    if (change == Change::kResume) {
        again = run_again(*study);
        loader_.prepare(locked, *study);
        study->complete_if_done(clock_.now_ms());
    } else if (is_completed) {
        return locked.after([done, name] {
            done(Error{Code::kResourceConflict, "study '" + name + "' is completed already"});
        });
    } else {
        study->set_state(change == Change::kPause ? StudyState::kPaused : StudyState::kStopped);
    }
    writer_.write_study(locked, *study, [done](LockedBatch& later, Result<void> result) {
        later.after([done, result = std::move(result)] { done(result); });
    });
    for (Trial* trial : again) writer_.write_trial(locked, *study, *trial, nullptr, {});
    if (study->state() == StudyState::kStopped) {
        const std::set<std::uint64_t> running = study->running();
        for (const std::uint64_t number : running)
            events_.direct(locked, *study, *study->find(number), Action::kStop,
                           "the study was stopped");
    }
    events_.after_change(locked, *study);
}

void StudyLifecycle::set_priority(const std::string& name, int priority, Done<void> done) {
    LockedBatch locked(lock_);
    const auto refuse = [&](const Error& error) { locked.after([done, error] { done(error); }); };
    Study* study = book_.find(name);
    if (study == nullptr) return refuse(book_.no_such_study(name));
    if (priority < -kPriorityMax || priority > kPriorityMax)
        return refuse({Code::kInvalidParameterValue,
                       "a priority lies in -1000..1000, not at " + std::to_string(priority)});
    if (const auto usable = check_usable(*study); !usable) return refuse(usable.error());
    study->set_priority(priority);
    writer_.write_study(locked, *study, [done](LockedBatch& later, Result<void> result) {
        later.after([done, result = std::move(result)] { done(result); });
    });
    events_.after_change(locked, *study);
}

std::vector<Trial*> StudyLifecycle::run_again(Study& study) {
    const bool has_rested = study.state() != StudyState::kRunning;
    study.set_state(StudyState::kRunning);
    events_.note_obstacle(study);
    // One whose client died before a success had no chance to rest.
    if (!has_rested && events_.is_held(study)) return {};
    std::vector<Trial*> again = study.excuse_failures(clock_.now_ms());
    for (Trial* trial : again) book_.admit(study, *trial);
    return again;
}

/// No trial starts. Those that run go on in their documents alone, as those whose runs the user
/// deletes, and are written once the experiment is back.
void StudyLifecycle::take_experiment(LockedBatch& locked, const tracker::Experiment& experiment) {
    const bool is_deleted = experiment.lifecycle_stage == tracker::LifecycleStage::kDeleted;
    for (const auto& [name, study] : book_.all()) {
        if (study->identity().experiment_id != experiment.experiment_id) continue;
        if (study->is_experiment_deleted() == is_deleted) continue;
        study->set_experiment_deleted(is_deleted);
        // What was decided before it was known why trials could not be written.
        if (study->note().starts_with("paused: a trial could not be written"))
            study->set_state(StudyState::kRunning);
        if (!is_deleted) {
            for (std::uint64_t number = 0; number < study->trials().size(); ++number) {
                Trial& trial = *study->find(number);
                if (!std::exchange(trial.sync.detached, false)) continue;
                writer_.write_trial(locked, *study, trial, nullptr, {});
            }
            writer_.write_study(locked, *study, {});
        }
        events_.notify(locked, *study, nullptr);
        events_.after_change(locked, *study);
    }
}

void StudyLifecycle::rename(const std::string& name, const std::string& new_name, Done<void> done,
                            const Recording& record) {
    LockedBatch locked(lock_);
    const auto refuse = [&](const Error& error) { locked.after([done, error] { done(error); }); };
    Study* study = book_.find(name);
    if (study == nullptr) return refuse(book_.no_such_study(name));
    if (const auto named = check_study_name(new_name); !named) return refuse(named.error());
    if (const auto usable = check_usable(*study); !usable) return refuse(usable.error());
    if (name == new_name) return locked.after([done] { done({}); });
    if (book_.find(new_name) != nullptr || book_.is_unreadable(new_name))
        return refuse({Code::kResourceAlreadyExists,
                       "there is a study '" + new_name + "' already; choose another name"});
    if (!study->running().empty())
        return refuse({Code::kResourceConflict, "trials of study '" + name +
                                                    "' are running, and who runs them knows it by "
                                                    "this name. `tune pause " +
                                                    name +
                                                    "` starts no more; rename it when they "
                                                    "have ended"});
    book_.rename(name, new_name);
    std::vector<tracker::Command> commands = update_study_commands(*study, clock_.now_ms());
    commands.insert(commands.begin(), tracker::DeleteDocument{kStudyCollection, name});
    commands.push_back(
        tracker::UpdateRun{.run_id = study->identity().run_id, .run_name = new_name});
    if (record) commands = record(study, std::move(commands));
    locked.write(std::move(commands), [this, study, name, new_name, done](
                                          LockedBatch& later, const Result<void>& result) {
        if (!result) {
            book_.rename(new_name, name);
            return later.after([done, error = result.error()] { done(error); });
        }
        events_.notify(later, *study, nullptr);
        later.after([this, id = study->identity().experiment_id, name, new_name, done] {
            rename_experiment(id, name, new_name, done);
        });
    });
    for (const Trial& trial : study->trials()) {
        if (!trial.sync.run_confirmed || trial.sync.detached) continue;
        std::vector<tracker::Command> tag;
        tag.push_back(tracker::SetTag{trial.run_id, {"tune.study", new_name}});
        locked.write(std::move(tag), {});
    }
}

/// The experiment's name is only shown: one that bears another name than the study, or whose new
/// name another experiment has, keeps its own.
void StudyLifecycle::rename_experiment(std::int64_t experiment_id, const std::string& name,
                                       const std::string& new_name, const Done<void>& done) {
    const auto answer = [this, done] { lock_.post([done] { done({}); }); };
    const bool is_asked = store_.post_read([this, experiment_id, name, new_name, answer] {
        const auto experiment = store_.get_experiment(experiment_id);
        if (!experiment || experiment->name != name) return answer();
        store_.submit(tracker::RenameExperiment{experiment_id, new_name},
                      [answer](const Result<tracker::Outcome>&) { answer(); });
    });
    if (!is_asked) answer();
}

/// The runs of the study and its trials, as MLflow deletes and restores them. A write that a single
/// run refuses (`tune gc` took it) is repeated run by run.
void StudyLifecycle::change_runs(LockedBatch& locked, const Study& study, bool deletes) {
    std::vector<std::string> runs = {study.identity().run_id};
    for (const Trial& trial : study.trials())
        if (trial.sync.run_requested) runs.push_back(trial.run_id);
    const auto command = [deletes](const std::string& run_id) {
        return deletes ? tracker::Command(tracker::DeleteRun{run_id})
                       : tracker::Command(tracker::RestoreRun{run_id});
    };
    for (std::size_t at = 0; at < runs.size(); at += kRunsAtOnce) {
        const auto begin = runs.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = std::min(kRunsAtOnce, runs.size() - at);
        std::vector<std::string> some(begin, begin + static_cast<std::ptrdiff_t>(count));
        std::vector<tracker::Command> commands;
        for (const std::string& run_id : some) commands.push_back(command(run_id));
        locked.write(std::move(commands), [some = std::move(some), command](
                                              LockedBatch& later, const Result<void>& result) {
            if (result) return;
            for (const std::string& run_id : some) {
                std::vector<tracker::Command> one;
                one.push_back(command(run_id));
                later.write(std::move(one), {});
            }
        });
    }
}

void StudyLifecycle::erase(LockedBatch& locked, Study& study, const Recording& record,
                           Written written) {
    std::set<std::string> agents;
    for (const std::uint64_t number : study.running())
        for (const Member& member : study.find(number)->progress->holder.members)
            agents.insert(member.agent_id);
    // By way of write_trial: their credentials end with them.
    const std::set<std::uint64_t> running = study.running();
    for (const std::uint64_t number : running)
        writer_.finish_trial(locked, study, *study.find(number),
                             {.state = TrialState::kCancelled,
                              .reason = "the study was removed",
                              .now_ms = clock_.now_ms()});
    if (study.state() == StudyState::kRunning) study.set_state(StudyState::kPaused);
    std::vector<tracker::Command> commands = update_study_commands(study, clock_.now_ms());
    const auto& document = std::get<tracker::PutDocument>(commands.back());
    const Json erased = {{"erased_ms", clock_.now_ms()},
                         {"study", *parse_json(document.json_text)}};
    std::vector<tracker::Command> moved;
    moved.push_back(tracker::DeleteDocument{kStudyCollection, study.name()});
    moved.push_back(tracker::PutDocument{kErasedCollection, study.identity().id, to_text(erased)});
    if (record) moved = record(nullptr, std::move(moved));
    locked.write(std::move(moved), std::move(written));
    change_runs(locked, study, true);

    waits_.refuse(locked, study, book_.no_such_study(study.name()));
    writer_.forget(study);
    book_.retire(study);
    for (const std::string& agent_id : agents) events_.wake_heartbeat(locked, agent_id);
}

void StudyLifecycle::erase(const std::string& name, Done<void> done, const Recording& record) {
    LockedBatch locked(lock_);
    Study* study = book_.find(name);
    if (study == nullptr)
        return locked.after([done, error = book_.no_such_study(name)] { done(error); });
    erase(locked, *study, record, [done](LockedBatch& later, Result<void> result) {
        later.after([done, result = std::move(result)] { done(result); });
    });
}

void StudyLifecycle::restore(const std::string& name, Done<void> done, const Recording& record) {
    LockedBatch locked(lock_);
    Study* study = book_.find(name);
    if (study != nullptr && study->is_experiment_deleted()) {
        std::vector<tracker::Command> commands;
        commands.push_back(tracker::RestoreExperiment{study->identity().experiment_id});
        if (record) {  // the observer of the commit says so later
            study->set_experiment_deleted(false);
            commands = record(study, std::move(commands));
            study->set_experiment_deleted(true);
        }
        return locked.write(
            std::move(commands), [this, done](LockedBatch& later, Result<void> result) {
                if (!result) return later.after([done, error = result.error()] { done(error); });
                commits_.after_observed(later, [done] { done({}); });
            });
    }
    if (study != nullptr)
        return locked.after([done, name] {
            done(Error{Code::kResourceAlreadyExists,
                       "there is a study '" + name + "', so none of this name can be restored; " +
                           "`tune rename " + name + " NEW` frees the name"});
        });
    if (!store_.post_read([this, name, done, record] { restore_erased(name, done, record); }))
        locked.after([done] {
            done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
        });
}

/// On a reader thread.
void StudyLifecycle::restore_erased(const std::string& name, Done<void> done,
                                    const Recording& record) {
    const Result<ErasedStudy> erased = find_erased_study(store_, name);
    if (!erased) return done(erased.error());
    const auto experiment = store_.get_experiment(erased->experiment_id);
    if (!experiment || !store_.get_run_info(erased->run_id))
        return done(Error{Code::kDataLoss, "the runs of study '" + name +
                                               "' were removed for good (tune gc); it cannot be "
                                               "restored"});
    std::vector<tracker::Command> commands;
    if (experiment->lifecycle_stage == tracker::LifecycleStage::kDeleted)
        commands.push_back(tracker::RestoreExperiment{erased->experiment_id});
    commands.push_back(tracker::DeleteDocument{kErasedCollection, erased->id});
    commands.push_back(tracker::PutDocument{kStudyCollection, name, erased->study_text});
    {
        LockedBatch locked(lock_);
        if (book_.find(name) != nullptr)  // another client was faster
            return locked.after([done, name] {
                done(Error{Code::kResourceAlreadyExists, "there is a study '" + name + "' again"});
            });
        // Agents find the old ones of this process, which are gone.
        book_.retired().each([&](const Study& old) {
            if (old.identity().id == erased->id) book_.forget_runs(old);
        });
        const auto with_experiment = [this, &name, &record](const Study* study,
                                                            std::vector<tracker::Command> all) {
            book_.find(name)->set_experiment_deleted(false);
            return record ? record(study, std::move(all)) : all;
        };
        bring_in(locked, {kStudyCollection, name, erased->study_text}, std::move(commands), done,
                 with_experiment);
        if (Study* const study = book_.find(name)) change_runs(locked, *study, false);
    }
}

void StudyLifecycle::bring_in(LockedBatch& locked, const tracker::Document& document,
                              std::vector<tracker::Command> commands, Done<void> done,
                              const Recording& record) {
    const Result<Study*> loaded = loader_.load(document);
    if (!loaded) return locked.after([done, error = loaded.error()] { done(error); });
    Study& study = **loaded;
    events_.note_obstacle(study);
    if (record) commands = record(&study, std::move(commands));
    locked.write(std::move(commands),
                 [this, &study, done](LockedBatch& later, const Result<void>& result) {
                     if (!result) {
                         book_.retire(study);
                         return later.after([done, error = result.error()] { done(error); });
                     }
                     events_.notify(later, study, nullptr);
                     later.after([done] { done({}); });
                 });
}

void StudyLifecycle::take_in(tracker::PutDocument document, tracker::DeleteDocument note,
                             Done<void> done) {
    LockedBatch locked(lock_);
    if (book_.find(document.key) != nullptr)
        return locked.after([done, name = document.key] {
            done(Error{Code::kResourceAlreadyExists, "there is a study '" + name + "' already"});
        });
    const tracker::Document read{document.collection, document.key, document.json_text};
    std::vector<tracker::Command> commands;
    commands.push_back(std::move(document));
    commands.push_back(std::move(note));
    bring_in(locked, read, std::move(commands), std::move(done));
}

void StudyLifecycle::show_attended(LockedBatch& locked, Study& study, bool is_attended) {
    study.set_shown_attended(is_attended);
    if (study.state() != StudyState::kRunning) return;
    std::vector<tracker::Command> commands;
    commands.push_back(tracker::UpdateRun{
        .run_id = study.identity().run_id,
        .status = is_attended ? tracker::RunStatus::kRunning : tracker::RunStatus::kScheduled});
    locked.write(std::move(commands), {});
}

void StudyLifecycle::show_interrupted(LockedBatch& locked, bool is_interrupted) {
    const tracker::RunStatus shown =
        is_interrupted ? tracker::RunStatus::kScheduled : tracker::RunStatus::kRunning;
    for (const auto& [name, study] : book_.all()) {
        if (study->state() != StudyState::kRunning) continue;
        const auto run = store_.get_run_info(study->identity().run_id);
        if (!run || run->status == shown) continue;
        std::vector<tracker::Command> commands;
        commands.push_back(tracker::UpdateRun{.run_id = run->run_id, .status = shown});
        locked.write(std::move(commands), {});
    }
}

}  // namespace tune::tuner
