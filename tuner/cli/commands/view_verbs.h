#pragma once
// The commands that look at a study: their options, for the parser.

#include <functional>

#include "tuner/cli/commands/study_view_commands.h"

namespace CLI {
class App;
}

namespace tune::cli {

/// What the parser fills.
struct ViewArguments {
    PlotCommand plot = {};
    ImportanceCommand importance = {};
    PrunersCommand pruners = {};
    TopCommand top = {};
};

/// Adds plot, importance, pruners and top. Once one is parsed, `verb` runs it; both references are
/// kept.
void add_view_verbs(CLI::App& app, ViewArguments& arguments, std::function<int()>& verb);

}  // namespace tune::cli
