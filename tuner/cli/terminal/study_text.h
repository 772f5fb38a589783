#pragma once
// Studies and trials, as the REST API gives them, in words and tables.

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {

/// A word of a command that can be pasted into a shell, in quotes where it needs them.
[[nodiscard]] std::string shell_word(const std::string& word);

[[nodiscard]] Tone tone_of_state(std::string_view state);

/// What the study does: its status, or from an older server its state.
[[nodiscard]] std::string status_text(const Json& study);

/// "18/30" or "18".
[[nodiscard]] std::string progress_text(const Json& study);

/// "18/30 trials", "18 trials", "1 trial".
[[nodiscard]] std::string trials_text(const Json& study);

/// Trials that have ended and count: not those that failed before the study was mended.
[[nodiscard]] std::int64_t ended_count(const Json& study);

/// "lr=0.01 batch=64"; values with 4 significant digits.
[[nodiscard]] std::string params_text(const Json& params);

/// One line for a trial that has ended: number, state, value or reason, params, time.
[[nodiscard]] std::string trial_line(const Json& trial, const Json& study);

/// All trials of a table: number, state, values of objectives and constraints, params as columns,
/// time, worker.
[[nodiscard]] std::string trial_table(const Json& trials, const Json& study);

/// The names of the objectives: "loss", "loss, latency_ms".
[[nodiscard]] std::string metrics_text(const Json& study);

/// Whether any trial is complete and feasible.
[[nodiscard]] bool has_best(const Json& study);

/// What became of the registration that the study wants, as a line; empty: nothing yet.
[[nodiscard]] std::string registration_text(const Json& study);

/// Values and parameters of the best trial, and the command that runs it again; with several
/// objectives the table of the Pareto front. REQUIRES: has_best(study).
[[nodiscard]] std::string best_text(const Json& study);

/// The best trials with their commands, for --json: an object, a list where there are several
/// objectives, null where there is none.
[[nodiscard]] Json best_json(const Json& study);

/// The argv of this trial; empty if the study has no command.
[[nodiscard]] std::vector<std::string> trial_command(const Json& study, const Json& trial);

/// argv as a shell takes it.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& command);

/// The command of this trial as one could paste it into a shell; empty if the study has none.
[[nodiscard]] std::string rerun_command(const Json& study, const Json& trial);

/// "name" of an object as text, "" when absent or null.
[[nodiscard]] std::string text_of(const Json& object, const char* name);

}  // namespace tune::cli
