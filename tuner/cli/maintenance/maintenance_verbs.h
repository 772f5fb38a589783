#pragma once
// The commands that keep a data folder: their options, for the parser.

#include <functional>

#include "tuner/cli/maintenance/maintenance_commands.h"

namespace CLI {
class App;
}

namespace tune::cli {

/// What the parser fills.
struct MaintenanceArguments {
    GcCommand gc = {};
    BackupCommand backup = {};
    RestoreCommand restore = {};
};

/// Adds gc, backup and restore. Once one is parsed, `verb` runs it; both references are kept.
void add_maintenance_verbs(CLI::App& app, MaintenanceArguments& arguments,
                           std::function<int()>& verb);

}  // namespace tune::cli
