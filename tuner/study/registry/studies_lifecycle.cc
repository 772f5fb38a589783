// What becomes of a study as a whole: another name, removed and brought back, its experiment
// deleted by an MLflow client; and whether somebody still works on it.
//
// An erased study lies in a collection of its own, under its id, so that its name is free; its
// trials' documents stay where they are. Its Study stays in memory (Retired) while writes that are
// under way name it.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "tuner/study/journal/erased_studies.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// Runs that one write changes: a transaction stays small.
constexpr std::size_t kRunsAtOnce = 1000;

struct Erased {
    std::string id;  // the key
    std::string name;
    std::int64_t erased_ms = 0;
    std::int64_t experiment_id = 0;
    std::string run_id;
    std::string study_text;  // as in kStudyCollection
};

std::optional<Erased> erased_from(const tracker::Document& document) {
    const Result<Json> json = parse_json(document.json_text);
    if (!json || !json->is_object() || !json->contains("study")) return std::nullopt;
    const Json& study = (*json)["study"];
    try {
        return Erased{.id = document.key,
                      .name = study.at("name").get<std::string>(),
                      .erased_ms = json->at("erased_ms").get<std::int64_t>(),
                      .experiment_id = study.at("experiment_id").get<std::int64_t>(),
                      .run_id = study.at("run_id").get<std::string>(),
                      .study_text = to_text(study)};
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

/// The one of this name that was erased last.
Result<Erased> find_erased(const tracker::Store& store, const std::string& name) {
    TUNE_TRY(documents, store.list_documents(kErasedCollection));
    std::optional<Erased> found;
    std::string names;
    for (const tracker::Document& document : documents) {
        const std::optional<Erased> erased = erased_from(document);
        if (!erased) continue;
        names += (names.empty() ? "'" : ", '") + erased->name + "'";
        if (erased->name == name && (!found || erased->erased_ms >= found->erased_ms))
            found = erased;
    }
    if (found) return *found;
    return Error{Code::kResourceDoesNotExist,
                 "there is no study '" + name + "' that was removed" +
                     (names.empty() ? "" : "; those that can be restored: " + names)};
}

}  // namespace

Result<void> check_study_name(const std::string& name) {
    constexpr std::size_t kNameBytesMax = 200;
    const auto is_bad = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/' || c == '\\';
    };
    if (name.empty())
        return Error{Code::kInvalidParameterValue,
                     "the study needs a name ('study' in a file, 'name' over REST)"};
    if (name.size() > kNameBytesMax || std::any_of(name.begin(), name.end(), is_bad) ||
        name == "." || name == "..")
        return Error{Code::kInvalidParameterValue,
                     "'" + name.substr(0, kNameBytesMax) +
                         "' cannot name a study: at most 200 bytes, no '/', no '\\' and no "
                         "control characters"};
    return {};
}

// --- the experiment ------------------------------------------------------------------------------

Result<void> Studies::Impl::check_usable(const Study& study) {
    if (!study.is_experiment_deleted()) return {};
    const std::string& name = study.name();
    return Error{Code::kResourceConflict,
                 "the experiment of study '" + name +
                     "' was deleted by an MLflow client. `tune restore --study " + name +
                     "` brings both back, `tune rm " + name +
                     "` removes the study for good; or "
                     "choose another name (--study NEW)"};
}

/// No trial starts. Those that run go on in their documents alone, as those whose runs the user
/// deletes, and are written once the experiment is back.
void Studies::Impl::take_experiment(LockedBatch& locked, const tracker::Experiment& experiment) {
    const bool is_deleted = experiment.lifecycle_stage == tracker::LifecycleStage::kDeleted;
    for (const auto& [name, study] : studies_) {
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
                write_trial(locked, *study, trial, nullptr, {});
            }
            write_study(locked, *study, {});
        }
        notify(locked, *study, nullptr);
        after_change(locked, *study);
    }
}

// --- rename --------------------------------------------------------------------------------------

void Studies::Impl::rename(const std::string& name, const std::string& new_name, Done<void> done,
                           const Recording& record) {
    LockedBatch locked(*this);
    const auto refuse = [&](const Error& error) { locked.after([done, error] { done(error); }); };
    Study* study = find_study(name);
    if (study == nullptr) return refuse(no_such_study(name));
    if (const auto named = check_study_name(new_name); !named) return refuse(named.error());
    if (const auto usable = check_usable(*study); !usable) return refuse(usable.error());
    if (name == new_name) return locked.after([done] { done({}); });
    if (find_study(new_name) != nullptr || unreadable_.contains(new_name))
        return refuse({Code::kResourceAlreadyExists,
                       "there is a study '" + new_name + "' already; choose another name"});
    if (!study->running().empty())
        return refuse({Code::kResourceConflict, "trials of study '" + name +
                                                    "' are running, and who runs them knows it by "
                                                    "this name. `tune pause " +
                                                    name +
                                                    "` starts no more; rename it when they "
                                                    "have ended"});
    const auto move = [this](const std::string& from, const std::string& to) {
        auto node = studies_.extract(from);
        node.key() = to;
        node.mapped()->rename(to);
        studies_.insert(std::move(node));
    };
    move(name, new_name);
    std::vector<tracker::Command> commands = update_study_commands(*study, now_ms());
    commands.insert(commands.begin(), tracker::DeleteDocument{kStudyCollection, name});
    commands.push_back(
        tracker::UpdateRun{.run_id = study->identity().run_id, .run_name = new_name});
    if (record) commands = record(study, std::move(commands));
    locked.write(std::move(commands), [this, study, name, new_name, move, done](
                                          LockedBatch& later, const Result<void>& result) {
        if (!result) {
            move(new_name, name);
            return later.after([done, error = result.error()] { done(error); });
        }
        notify(later, *study, nullptr);
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
void Studies::Impl::rename_experiment(std::int64_t experiment_id, const std::string& name,
                                      const std::string& new_name, const Done<void>& done) {
    const auto answer = [this, done] { completions_.post([done] { done({}); }); };
    const bool is_asked = store_.post_read([this, experiment_id, name, new_name, answer] {
        const auto experiment = store_.get_experiment(experiment_id);
        if (!experiment || experiment->name != name) return answer();
        store_.submit(tracker::RenameExperiment{experiment_id, new_name},
                      [answer](const Result<tracker::Outcome>&) { answer(); });
    });
    if (!is_asked) answer();
}

// --- erase and restore ---------------------------------------------------------------------------

/// The runs of the study and its trials, as MLflow deletes and restores them. A write that a single
/// run refuses (`tune gc` took it) is repeated run by run.
void Studies::Impl::change_runs(LockedBatch& locked, const Study& study, bool deletes) {
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

void Studies::Impl::erase_study(LockedBatch& locked, Study& study, const Recording& record,
                                Written written) {
    std::set<std::string> agents;
    for (const std::uint64_t number : study.running())
        for (const Member& member : study.find(number)->progress->holder.members)
            agents.insert(member.agent_id);
    // By way of write_trial: their credentials end with them.
    const std::set<std::uint64_t> running = study.running();
    for (const std::uint64_t number : running)
        finish_trial(locked, study, *study.find(number),
                     {.state = TrialState::kCancelled,
                      .reason = "the study was removed",
                      .now_ms = now_ms()});
    if (study.state() == StudyState::kRunning) study.set_state(StudyState::kPaused);
    std::vector<tracker::Command> commands = update_study_commands(study, now_ms());
    const auto& document = std::get<tracker::PutDocument>(commands.back());
    const Json erased = {{"erased_ms", now_ms()}, {"study", *parse_json(document.json_text)}};
    std::vector<tracker::Command> moved;
    moved.push_back(tracker::DeleteDocument{kStudyCollection, study.name()});
    moved.push_back(tracker::PutDocument{kErasedCollection, study.identity().id, to_text(erased)});
    if (record) moved = record(nullptr, std::move(moved));
    locked.write(std::move(moved), std::move(written));
    change_runs(locked, study, true);

    study_polls_.remove_if([&](StudyPoll& poll) {
        if (poll.study != &study) return false;
        locked.after(
            [done = std::move(poll.done), error = no_such_study(study.name())] { done(error); });
        return true;
    });
    unsynced_studies_.erase(&study);
    for (std::uint64_t number = 0; number < study.trials().size(); ++number)
        if (std::exchange(study.find(number)->sync.unsynced, false)) --unsynced_trials_;
    auto node = studies_.extract(study.name());
    retire(std::move(node.mapped()));
    for (const std::string& agent_id : agents) wake_heartbeat(locked, agent_id);
}

/// Whether something that is no task names the study: one that waits for a suggestion, an answer
/// or a place.
bool Studies::Impl::is_named(const Study& study) const {
    const auto line = std::find_if(lines_.begin(), lines_.end(),
                                   [&](const auto& one) { return one.first == &study; });
    if (line != lines_.end() && (line->second.is_served || !line->second.waiting.empty()))
        return true;
    for (const auto& [key, asking] : asking_)
        if (key.first == &study) return true;
    for (const auto& [agent_id, granting] : granting_)
        for (const auto& [ref, attempt] : granting->started)
            if (ref.study == &study) return true;
    for (const StudyPoll& poll : study_polls_)
        if (poll.study == &study) return true;
    if (registering_.contains(&study)) return true;
    return holds_.count_of(study) > 0 || !(agents_.held_of(study) == Usage());
}

void Studies::Impl::free_retired(LockedBatch& locked) {
    if (retired_.size() == 0) return;
    const auto freed = std::make_shared<std::vector<std::unique_ptr<Study>>>(
        retired_.take_free([this](const Study& study) { return is_named(study); }));
    for (const auto& study : *freed) {
        for (const Trial& trial : study->trials()) {
            const auto found = by_run_.find(trial.run_id);
            if (found != by_run_.end() && found->second.study == study.get()) by_run_.erase(found);
        }
        lines_.erase(study.get());
        hold_rests_.erase(study.get());
        gangs_wanted_.erase(study.get());
        unsynced_studies_.erase(study.get());
    }
    locked.after([freed] { freed->clear(); });  // a large one takes a while
}

std::size_t Studies::Impl::retired_count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return retired_.size();
}

std::optional<std::int64_t> Studies::Impl::experiment_of(const std::string& name,
                                                         bool or_erased) const {
    std::optional<std::int64_t> found;
    const Result<void> is_there =
        read(name, [&found](const Study& study) { found = study.identity().experiment_id; });
    if (is_there || !or_erased) return found;
    const Result<Erased> erased = find_erased(store_, name);
    if (erased) found = erased->experiment_id;
    return found;
}

void Studies::Impl::erase(const std::string& name, Done<void> done, const Recording& record) {
    LockedBatch locked(*this);
    Study* study = find_study(name);
    if (study == nullptr) return locked.after([done, error = no_such_study(name)] { done(error); });
    erase_study(locked, *study, record, [done](LockedBatch& later, Result<void> result) {
        later.after([done, result = std::move(result)] { done(result); });
    });
}

void Studies::Impl::restore(const std::string& name, Done<void> done, const Recording& record) {
    LockedBatch locked(*this);
    Study* study = find_study(name);
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
                after_observed(later, [done] { done({}); });
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
void Studies::Impl::restore_erased(const std::string& name, Done<void> done,
                                   const Recording& record) {
    const Result<Erased> erased = find_erased(store_, name);
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
        LockedBatch locked(*this);
        if (find_study(name) != nullptr)  // another client was faster
            return locked.after([done, name] {
                done(Error{Code::kResourceAlreadyExists, "there is a study '" + name + "' again"});
            });
        // Agents find the old ones of this process, which are gone.
        retired_.each([&](const Study& old) {
            if (old.identity().id != erased->id) return;
            for (const Trial& trial : old.trials()) by_run_.erase(trial.run_id);
        });
        const auto with_experiment = [this, &name, &record](const Study* study,
                                                            std::vector<tracker::Command> all) {
            find_study(name)->set_experiment_deleted(false);
            return record ? record(study, std::move(all)) : all;
        };
        bring_in(locked, {kStudyCollection, name, erased->study_text}, std::move(commands), done,
                 with_experiment);
        if (Study* const study = find_study(name)) change_runs(locked, *study, false);
    }
}

void Studies::Impl::bring_in(LockedBatch& locked, const tracker::Document& document,
                             std::vector<tracker::Command> commands, Done<void> done,
                             const Recording& record) {
    const Result<void> loaded = load_study(document);
    if (!loaded) return locked.after([done, error = loaded.error()] { done(error); });
    Study& study = *find_study(document.key);
    note_obstacle(study);
    if (record) commands = record(&study, std::move(commands));
    locked.write(std::move(commands),
                 [this, &study, done](LockedBatch& later, const Result<void>& result) {
                     if (!result) {
                         if (!retired_.contains(study))
                             retire(std::move(studies_.extract(study.name()).mapped()));
                         return later.after([done, error = result.error()] { done(error); });
                     }
                     notify(later, study, nullptr);
                     later.after([done] { done({}); });
                 });
}

void Studies::Impl::take_in(tracker::PutDocument document, tracker::DeleteDocument note,
                            Done<void> done) {
    LockedBatch locked(*this);
    if (find_study(document.key) != nullptr)
        return locked.after([done, name = document.key] {
            done(Error{Code::kResourceAlreadyExists, "there is a study '" + name + "' already"});
        });
    const tracker::Document read{document.collection, document.key, document.json_text};
    std::vector<tracker::Command> commands;
    commands.push_back(std::move(document));
    commands.push_back(std::move(note));
    bring_in(locked, read, std::move(commands), std::move(done));
}

// --- who works on it -----------------------------------------------------------------------------

void Studies::Impl::show_interrupted(LockedBatch& locked, bool is_interrupted) {
    const tracker::RunStatus shown =
        is_interrupted ? tracker::RunStatus::kScheduled : tracker::RunStatus::kRunning;
    for (const auto& [name, study] : studies_) {
        if (study->state() != StudyState::kRunning) continue;
        const auto run = store_.get_run_info(study->identity().run_id);
        if (!run || run->status == shown) continue;
        std::vector<tracker::Command> commands;
        commands.push_back(tracker::UpdateRun{.run_id = run->run_id, .status = shown});
        locked.write(std::move(commands), {});
    }
}

/// Whether a running trial is in the hands of somebody who is there.
bool Studies::Impl::is_held(const Study& study) const {
    return std::any_of(study.running().begin(), study.running().end(), [&](std::uint64_t number) {
        const Holder& holder = study.find(number)->progress->holder;
        if (holder.agent_id.empty()) return holder.ttl_ms == 0 || serves_;
        return agents_.contains(holder.agent_id);
    });
}

bool Studies::Impl::is_attended(const Study& study) const {
    if (is_held(study)) return true;
    if (!serves_) return false;
    // An agent waits for work that this study may give; agents come back soon after a restart.
    if (!study.config().command.empty() && !lease_polls_.empty()) return true;
    const std::int64_t since_ms = std::max(study.last_activity_ms(), opened_ms_);
    return now_ms() - since_ms <= options_.lease_ttl_ms;
}

}  // namespace tune::tuner
