#pragma once
// A definition, a log and a table of trials, by hand: what the parts of a study refer to.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/tuner/study/world.h"
#include "tuner/study/study_definition.h"
#include "tuner/study/study_log.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

struct Table {
    explicit Table(const std::string& fields = "")
        : definition({.name = "s", .id = "0123456789abcdef", .run_id = "r", .seed = 1},
                     World::config(fields)) {}

    [[nodiscard]] const StudyConfig& config() const { return definition.config(); }

    /// A queued trial at this point of the one parameter.
    Trial& add(double x = 0.5) {
        Trial trial;
        trial.number = trials.size();
        trial.point = {x};
        trial.asked_at = log.next();
        trial.progress = std::make_unique<TrialProgress>(config());
        return trials.add(std::move(trial));
    }
    Trial& start(double x = 0.5) {
        Trial& trial = add(x);
        trials.move(trial, TrialState::kRunning);
        trial.attempt = 1;
        trial.attempt_start_ms = trial.start_ms = 1000;
        return trial;
    }
    Trial& end(Trial& trial, TrialState state, std::optional<double> value = {}) {
        trials.end(trial, state, 2000);
        trial.value = value;
        trial.ended_at = log.next();
        return trial;
    }
    Trial& complete(double value) { return end(start(), TrialState::kComplete, value); }
    Trial& fail(const std::string& reason) {
        Trial& trial = end(start(), TrialState::kFailed);
        trial.reason = reason;
        return trial;
    }

    StudyDefinition definition;
    StudyLog log;
    TrialTable trials;
};

}  // namespace tune::tuner
