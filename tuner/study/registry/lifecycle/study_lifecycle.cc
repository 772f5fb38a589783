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
        const std::set<std::uint64_t> running = study->trials().running();
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
        if (study->status().note.starts_with("paused: a trial could not be written"))
            study->set_state(StudyState::kRunning);
        if (!is_deleted) {
            writer_.write_detached(locked, *study);
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
    if (!study->trials().running().empty())
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
    commands.push_back(RunSweeps::note(*study, SweepKind::kRename));
    if (record) commands = record(study, std::move(commands));
    locked.write(std::move(commands), [this, study, name, new_name, done](
                                          LockedBatch& later, const Result<void>& result) {
        if (!result) {
            book_.rename(new_name, name);
            return later.after([done, error = result.error()] { done(error); });
        }
        sweeps_.begin(later, *study, SweepKind::kRename);
        events_.notify(later, *study, nullptr);
        later.after([this, id = study->identity().experiment_id, name, new_name, done] {
            rename_experiment(id, name, new_name, done);
        });
    });
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

void StudyLifecycle::erase(LockedBatch& locked, Study& study, const Recording& record,
                           Written written) {
    std::set<std::string> agents;
    for (const std::uint64_t number : study.trials().running())
        for (const Member& member : study.find(number)->progress->holder.members)
            agents.insert(member.agent_id);
    // By way of write_trial: their credentials end with them.
    const std::set<std::uint64_t> running = study.trials().running();
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
    moved.push_back(RunSweeps::note(study, SweepKind::kDelete));
    if (record) moved = record(nullptr, std::move(moved));
    locked.write(std::move(moved), [this, &study, written = std::move(written)](
                                       LockedBatch& later, const Result<void>& result) {
        if (result) sweeps_.begin(later, study, SweepKind::kDelete);
        if (written) written(later, result);
    });
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
    const auto prepare = [&erased, &experiment, &record](Study& study) {
        std::vector<tracker::Command> commands;
        if (experiment->lifecycle_stage == tracker::LifecycleStage::kDeleted)
            commands.push_back(tracker::RestoreExperiment{erased->experiment_id});
        commands.push_back(tracker::DeleteDocument{kErasedCollection, erased->id});
        commands.push_back(
            tracker::PutDocument{kStudyCollection, study.name(), erased->study_text});
        commands.push_back(RunSweeps::note(study, SweepKind::kRestore));
        study.set_experiment_deleted(false);
        return record ? record(&study, std::move(commands)) : commands;
    };
    bring_in({kStudyCollection, name, erased->study_text}, SweepKind::kRestore, done, prepare);
}

/// On a reader thread. Others go on while the study is read; it is theirs from the moment on at
/// which its commands are on their way.
void StudyLifecycle::bring_in(const tracker::Document& document, std::optional<SweepKind> sweep,
                              const Done<void>& done,
                              const std::function<std::vector<tracker::Command>(Study&)>& prepare) {
    const std::string& name = document.key;
    {
        LockedBatch locked(lock_);
        if (!brought_in_.insert(name).second)
            return locked.after([done, name] {
                done(Error{Code::kResourceConflict, "study '" + name + "' is on its way already"});
            });
    }
    if (options_.before_reading) options_.before_reading(name);
    Result<std::unique_ptr<Study>> read = loader_.read(document);
    if (read) loader_.index(**read);
    {
        LockedBatch locked(lock_);
        brought_in_.erase(name);
        if (!read) return locked.after([done, error = read.error()] { done(error); });
        if (book_.find(name) == nullptr) {
            Study& study = loader_.admit(std::move(*read));
            events_.note_obstacle(study);
            return locked.write(
                prepare(study),
                [this, &study, sweep, done](LockedBatch& later, const Result<void>& result) {
                    if (!result) {
                        book_.retire(study);
                        return later.after([done, error = result.error()] { done(error); });
                    }
                    if (sweep) sweeps_.begin(later, study, *sweep);
                    events_.notify(later, study, nullptr);
                    later.after([done] { done({}); });
                });
        }
    }
    loader_.forget_index(**read);  // another client was faster
    done(Error{Code::kResourceAlreadyExists, "there is a study '" + name + "' already"});
}

void StudyLifecycle::take_in(tracker::PutDocument document, tracker::DeleteDocument note,
                             Done<void> done) {
    LockedBatch locked(lock_);
    if (book_.find(document.key) != nullptr)
        return locked.after([done, name = document.key] {
            done(Error{Code::kResourceAlreadyExists, "there is a study '" + name + "' already"});
        });
    auto job = [this, document = std::move(document), note = std::move(note), done] {
        bring_in({document.collection, document.key, document.json_text}, {}, done,
                 [&](const Study&) {
                     return std::vector<tracker::Command>{document, note};
                 });
    };
    if (!store_.post_read(std::move(job)))
        locked.after([done] {
            done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
        });
}

void StudyLifecycle::show_attended(LockedBatch& locked, Study& study, bool is_attended) {
    study.attendance().is_shown = is_attended;
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
