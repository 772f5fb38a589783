// A new study on its way through the store: its experiment is found or made, its first trials are
// chosen from an earlier study where it wants that, and it is written. Whoever asks for a name that
// is taken goes on with the study that is there, changes it as far as that may be changed, or
// replaces one whose command never worked.

#include "tuner/study/registry/lifecycle/study_creation.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "base/system/user_name.h"
#include "base/text/counted.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/journal/warm_start.h"
#include "tuner/study/registry/registration/registration.h"

namespace tune::tuner {
namespace {

std::uint64_t draw_seed() {
    return std::stoull(random_hex(8), nullptr, 16) & kSeedMax;
}

std::string list_of(const std::vector<std::string>& differences) {
    std::string text;
    for (const std::string& difference : differences)
        text += (text.empty() ? "" : "; ") + difference;
    return text;
}

/// Of what StudyDefinition::differences says.
bool are_of_space(const std::vector<std::string>& differences) {
    return std::all_of(differences.begin(), differences.end(), [](const std::string& difference) {
        return difference.starts_with("space.");
    });
}

bool has_finite_values(const Trial& trial) {
    const auto is_finite = [](double value) { return std::isfinite(value); };
    return trial.value && is_finite(*trial.value) &&
           std::all_of(trial.more_values.begin(), trial.more_values.end(), is_finite);
}

std::string counted_objectives(const StudyConfig& config) {
    return counted(static_cast<std::int64_t>(1 + config.more_metrics.size()), "objective");
}

/// Values can be compared when there are as many, with the same goals; another name is noted.
Result<void> compare_objectives(const StudyConfig& from, StudyConfig& to) {
    const std::string& name = to.warm_start->from;
    if (from.more_metrics.size() != to.more_metrics.size())
        return Error{Code::kInvalidParameterValue, "warm_start.from: study '" + name + "' has " +
                                                       counted_objectives(from) + " and this one " +
                                                       counted_objectives(to) +
                                                       "; give its points as `initial` instead"};
    for (std::size_t i = 0; i <= from.more_metrics.size(); ++i) {
        const MetricConfig& theirs = i == 0 ? from.metric : from.more_metrics[i - 1];
        const MetricConfig& ours = i == 0 ? to.metric : to.more_metrics[i - 1];
        if (theirs.goal != ours.goal)
            return Error{Code::kInvalidParameterValue, "warm_start.from: '" + theirs.name +
                                                           "' of study '" + name + "' is to be " +
                                                           std::string(goal_name(theirs.goal)) +
                                                           ", and '" + ours.name + "' is not"};
        if (theirs.name != ours.name)
            to.warm_start->notes.push_back("its metric is '" + theirs.name + "', not '" +
                                           ours.name + "'");
    }
    return {};
}

Error taken_meanwhile(const std::string& name) {
    return {Code::kResourceConflict, "somebody made '" + name + "' a moment ago; ask again"};
}

}  // namespace

void StudyCreation::create(StudyConfig config, CreateOptions options, Done<Created> done) {
    Result<void> checked = check_study_name(config.study);
    if (checked) checked = check_study(config, false);
    if (checked) checked = check_sampler(config.space, config.sampler);
    if (!checked) return done(checked.error());
    if (book_.is_unreadable(config.study)) return done(book_.no_such_study(config.study));
    auto shared = std::make_shared<Wanted>(Wanted{std::move(config), options, std::move(done)});
    LockedBatch locked(lock_);
    Study* const study = book_.find(shared->config.study);
    const bool is_extended = study != nullptr && options.extend && !options.only_new &&
                             study->config().space != shared->config.space &&
                             are_of_space(study->definition().differences(shared->config));
    if (study != nullptr && !is_extended) return resume(locked, *study, std::move(*shared));
    const auto job = [this, shared, is_extended] {
        if (is_extended) return extend(std::move(*shared));
        find_experiment(std::move(*shared));
    };
    if (store_.post_read(job)) return;
    locked.after([shared] {
        shared->done(
            Error{Code::kRequestLimitExceeded, "the server is busy or stopping; try again"});
    });
}

/// On a reader thread: the points of its trials are brought into the new space, a part of them
/// copied under the lock at a time, before they change there.
void StudyCreation::extend(Wanted wanted) {
    const std::string name = wanted.config.study;
    if (options_.before_reading) options_.before_reading(name);
    Result<void> fits;
    while (fits) {
        std::vector<std::pair<Point, Point>> some;
        {
            LockedBatch locked(lock_);
            Study* const study = book_.find(name);
            if (study == nullptr) break;  // it was removed meanwhile
            Extension& begun = wanted.extension;
            const Space& from = study->config().space;
            if (!begun.leads(from, wanted.config.space))
                begun = Extension(from, wanted.config.space);
            const TrialTable& trials = study->trials();
            const std::size_t end = std::min(trials.size(), begun.count() + kLoadSlice);
            for (std::size_t at = begun.count(); at < end; ++at)
                some.emplace_back(trials[at].point, trials[at].fixed);
            if (some.empty()) return resume(locked, *study, std::move(wanted));
        }
        for (const auto& [point, fixed] : some) {
            fits = wanted.extension.add(point, fixed);
            if (!fits) break;
        }
    }
    if (!fits) return wanted.done(fits.error());
    find_experiment(std::move(wanted));
}

/// On a reader thread: the experiment of the study's name is used, or made where there is none or
/// only a deleted one, which does not keep its name.
void StudyCreation::find_experiment(Wanted wanted) {
    const std::string name = wanted.config.study;
    if (const std::string& model = wanted.config.register_as; !model.empty()) {
        // Said before the trials run; asked again when the best of them is known.
        const auto rights =
            registry_rights(store_, model, wanted.options.user, options_.default_permission);
        if (!rights) return wanted.done(rights.error());
    }
    const auto experiment = store_.get_experiment_by_name(name);
    if (experiment && experiment->lifecycle_stage == tracker::LifecycleStage::kActive) {
        if (wanted.options.only_new) return wanted.done(taken_meanwhile(name));
        return create_in_experiment(std::move(wanted), experiment->experiment_id);
    }
    if (!experiment && experiment.error().code != Code::kResourceDoesNotExist)
        return wanted.done(experiment.error());
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    store_.submit(tracker::CreateExperiment{.name = name, .owner_id = shared->options.owner_id},
                  [this, shared](const Result<tracker::Outcome>& outcome) {
                      lock_.post([this, shared, outcome] { experiment_made(*shared, outcome); });
                  });
}

/// Goes on on a reader thread: what an earlier study taught may take its time.
void StudyCreation::experiment_made(Wanted& wanted, const Result<tracker::Outcome>& outcome) {
    if (!outcome && outcome.error().code != Code::kResourceAlreadyExists)
        return wanted.done(outcome.error());
    std::optional<tracker::ExperimentId> made;
    if (outcome) made = std::get<tracker::ExperimentId>(*outcome);
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    const auto go_on = [this, shared, made] {
        if (made) return create_in_experiment(std::move(*shared), *made);
        find_experiment(std::move(*shared));
    };
    if (!store_.post_read(go_on))
        shared->done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
}

void StudyCreation::create_in_experiment(Wanted wanted, std::int64_t experiment_id) {
    StudyConfig& config = wanted.config;
    {
        LockedBatch locked(lock_);
        if (Study* study = book_.find(config.study))  // another client was faster
            return resume(locked, *study, std::move(wanted));
    }
    if (Result<void> filled = fill_warm_start(config); !filled) return wanted.done(filled.error());
    StudyIdentity identity{.name = config.study,
                           .id = random_hex(8),
                           .run_id = random_hex(16),
                           .experiment_id = experiment_id,
                           .seed = config.sampler.seed ? *config.sampler.seed : draw_seed(),
                           .created_ms = clock_.now_ms(),
                           .user = user_name(),
                           .owner = wanted.options.user};
    const StudyConfig as_wanted = config;
    config.sampler.seed = identity.seed;
    auto made = std::make_unique<Study>(std::move(identity), std::move(config));
    // A model of the earlier study's trials may take its time: nobody else knows this study yet.
    const std::vector<Trial*> first = begin_warm(*made);
    made->suggestions().suggest_elsewhere();
    LockedBatch locked(lock_);
    if (Study* faster = book_.find(as_wanted.study)) {
        wanted.config = as_wanted;
        return resume(locked, *faster, std::move(wanted));
    }
    add_study(locked, std::move(made), first, std::move(wanted.done), std::move(wanted.replaced));
}

void StudyCreation::add_study(LockedBatch& locked, std::unique_ptr<Study> made,
                              const std::vector<Trial*>& first, Done<Created> done,
                              std::string replaced) {
    Study& study = *made;
    if (const std::string outlook = sampler_outlook(study.config()); !outlook.empty())
        log_info("study '" + study.name() + "': sampler " +
                 std::string(study.config().sampler.name()) + ": " + outlook);
    book_.add(std::move(made));
    study.attendance().last_activity_ms = clock_.now_ms();
    events_.note_obstacle(study);
    for (Trial* trial : first) book_.admit(study, *trial);
    locked.write(create_study_commands(study), [this, &study, done = std::move(done),
                                                replaced = std::move(replaced)](
                                                   LockedBatch& later, Result<void> result) {
        if (!result) {
            book_.retire(study);
            return later.after([done, error = result.error()] { done(error); });
        }
        events_.notify(later, study, nullptr);
        events_.wake_leases(later);
        later.after([done, name = study.name(), replaced] { done(Created{name, true, replaced}); });
    });
    for (Trial* trial : first) writer_.write_trial(locked, study, *trial, nullptr, {});
}

/// The best points of an earlier study wait as the first trials, as far as the budget goes.
std::vector<Trial*> StudyCreation::begin_warm(Study& study) const {
    std::vector<Trial*> first;
    if (!study.config().warm_start) return first;
    for (const Point& point : plan_warm_start(study.config()).first) {
        const Result<Trial*> added = study.enqueue(point, {}, clock_.now_ms());
        // A point that this study's rules forbid is no first trial; without budget there is none.
        if (!added && added.error().code == Code::kInvalidParameterValue) continue;
        if (!added) break;
        first.push_back(*added);
    }
    return first;
}

/// From the study that a warm start names: the trials travel in the new study's configuration from
/// here on, so that neither a deletion nor a change of the other matters.
Result<void> StudyCreation::fill_warm_start(StudyConfig& config) const {
    if (!config.warm_start) return {};
    WarmStartConfig& warm_start = *config.warm_start;
    if (warm_start.trials.empty()) {
        TUNE_TRY(results, take_results(warm_start.from));
        TUNE_TRY_VOID(compare_objectives(*results.config, config));
        const Space& space = results.config->space;
        for (const Finished& trial : results.trials)
            if (violation_of(results.config->constraints, trial.constraint_values) <= 0)
                warm_start.trials.push_back(
                    {to_text(space.to_json(trial.point)), trial.value, trial.more_values});
        if (warm_start.trials.empty())
            return Error{Code::kInvalidParameterValue, "warm_start.from: no trial of study '" +
                                                           warm_start.from + "' is complete"};
    }
    rank_earlier(warm_start, config);
    for (std::string& sentence : plan_warm_start(config).notes)
        warm_start.notes.push_back(std::move(sentence));
    return {};
}

/// Copied in slices between which others get their turn. A study that gets another space meanwhile
/// is copied anew: its points were moved into that.
Result<StudyCreation::Results> StudyCreation::take_results(const std::string& name) const {
    if (options_.before_reading) options_.before_reading(name);
    for (;;) {
        Results results;
        const Study* study = nullptr;
        Retired::Hold hold;
        {
            const auto lock = lock_.take();
            study = book_.find(name);
            if (study == nullptr)
                return Error{Code::kResourceDoesNotExist,
                             "warm_start.from: " + book_.no_such_study(name).message};
            hold = book_.retired().hold();
            results.config = study->definition().shared_config();
        }
        bool is_whole = false;
        while (!is_whole) {
            const auto lock = lock_.take();
            if (study->config().space != results.config->space) break;
            is_whole = take_slice(*study, results);
        }
        if (is_whole) return results;
    }
}

/// True once there are no more.
bool StudyCreation::take_slice(const Study& study, Results& results) {
    const auto& trials = study.trials();
    const std::size_t end = std::min(trials.size(), results.seen + kLoadSlice);
    for (; results.seen < end; ++results.seen) {
        const Trial& trial = trials[results.seen];
        if (trial.state == TrialState::kComplete && has_finite_values(trial))
            results.trials.push_back(
                {trial.point, *trial.value, trial.more_values, trial.constraint_values});
    }
    return end == trials.size();
}

Result<void> StudyCreation::take_other_config(Study& study, StudyConfig config,
                                              const CreateOptions& options, Extension begun) {
    const std::vector<std::string> differences = study.definition().differences(config);
    const bool is_space_alone = are_of_space(differences);
    if (differences.empty()) {
        study.reconfigure(std::move(config));
        return {};
    }
    if (options.extend && is_space_alone) return study.extend(std::move(config), std::move(begun));
    const std::string& name = study.name();
    std::string ways = "Undo the change to continue it";
    if (is_space_alone)
        ways +=
            ", extend it (--extend, \"extend\": true; its trials then count with the init of "
            "parameters that are new)";
    if (study.trials().count(TrialState::kComplete) == 0)
        ways += options.replace
                    ? ", wait until nobody runs its trials any more, when it is replaced"
                    : ", replace it, as none of its trials is complete (\"replace\": true)";
    ways +=
        ", give the new study a name of its own (--study NEW), or remove this one first (`tune "
        "rm " +
        name + "`, study.delete() in Python).";
    return Error{Code::kResourceConflict, "study '" + name + "' exists with different settings: " +
                                              list_of(differences) + ". " + ways};
}

void StudyCreation::resume(LockedBatch& locked, Study& study, Wanted wanted) {
    if (wanted.options.only_new)
        return locked.after([done = std::move(wanted.done), error = taken_meanwhile(study.name())] {
            done(error);
        });
    if (is_replaced(study, wanted)) return replace(locked, study, std::move(wanted));
    Result<void> taken = check_usable(study);
    if (taken)
        taken = take_other_config(study, std::move(wanted.config), wanted.options,
                                  std::move(wanted.extension));
    if (!taken)
        return locked.after(
            [done = std::move(wanted.done), error = taken.error()] { done(error); });
    study.attendance().last_activity_ms = clock_.now_ms();
    study.registration().forget_failed();
    const std::vector<Trial*> again = lifecycle_.run_again(study);
    loader_.prepare(locked, study);
    study.complete_if_done(clock_.now_ms());
    writer_.write_study(locked, study,
                        [done = std::move(wanted.done), name = study.name()](LockedBatch& later,
                                                                             Result<void> result) {
                            later.after([done, name, result = std::move(result)] {
                                if (!result) return done(result.error());
                                done(Created{name, false});
                            });
                        });
    for (Trial* trial : again) writer_.write_trial(locked, study, *trial, nullptr, {});
    events_.after_change(locked, study);
}

bool StudyCreation::is_replaced(const Study& study, const Wanted& wanted) const {
    if (!wanted.options.replace || study.trials().count(TrialState::kComplete) > 0 ||
        events_.is_held(study))
        return false;
    const std::vector<std::string> differences = study.definition().differences(wanted.config);
    const bool is_extended = wanted.options.extend && are_of_space(differences);
    return !differences.empty() && !is_extended;
}

/// The other one can be restored, so nothing is lost but the name.
void StudyCreation::replace(LockedBatch& locked, Study& study, Wanted wanted) {
    wanted.replaced = list_of(study.definition().differences(wanted.config));
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    lifecycle_.erase(
        locked, study, {}, [this, shared](LockedBatch& later, const Result<void>& result) {
            if (!result)
                return later.after([shared, error = result.error()] { shared->done(error); });
            if (store_.post_read([this, shared] { find_experiment(std::move(*shared)); })) return;
            later.after([shared] {
                shared->done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
            });
        });
}

}  // namespace tune::tuner
