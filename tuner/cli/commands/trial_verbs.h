#pragma once

#include <functional>

#include "tuner/cli/commands/bench_command.h"
#include "tuner/cli/commands/trial_commands.h"

namespace CLI {
class App;
}

namespace tune::cli {

/// What the parser fills of these verbs.
struct TrialArguments {
    EnqueueCommand enqueue = {};
    RerunCommand rerun = {};
    ProfileCommand profile = {};
    AskCommand ask = {};
    TellCommand tell = {};
    BenchCommand bench = {};
};

/// Adds enqueue, rerun, profile, ask, tell and bench. The verb that is parsed becomes `verb`.
/// `arguments` and `verb` outlive the parser.
void add_trial_verbs(CLI::App& app, TrialArguments& arguments, std::function<int()>& verb);

}  // namespace tune::cli
