#pragma once
// Moving in and out: `tune import` and `tune export`.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::cli {

struct ImportCommand {
    std::string source = {};  ///< mlflow.db, a folder mlruns, or http[s]://...
    std::string data = "./tune-data";
    std::string server = {};  ///< instead of data: a server of this machine, into whose folder
    std::string artifacts = "copy";
    std::vector<std::string> artifact_roots = {};
    bool optuna = false;     ///< the source is a SQLite file of Optuna's
    std::string study = {};  ///< of several of them; empty: the only one
    std::string as = {};     ///< its name here; empty: the same
    bool quiet = false;
    bool json = false;
};

struct ExportCommand {
    std::string target = {};  ///< FILE.db or a folder
    std::string data = "./tune-data";
    std::string artifacts = "copy";
    bool local_uris = false;       ///< artifact addresses as paths instead of mlflow-artifacts:/
    std::string optuna = {};       ///< a study, which becomes a SQLite file of Optuna's
    std::string tensorboard = {};  ///< a run or study, which becomes files of events
    std::optional<std::string> server = {};  ///< of that study
    bool quiet = false;
    bool json = false;
};

[[nodiscard]] int run_import(const ImportCommand& options);
[[nodiscard]] int run_export(const ExportCommand& options);
/// `tune import --optuna` and `tune export --optuna STUDY`.
[[nodiscard]] int run_import_optuna(const ImportCommand& options);
[[nodiscard]] int run_export_optuna(const ExportCommand& options);
/// The error for a data folder that a server holds: which one, and what to do about it.
[[nodiscard]] Error say_holder(Error error, const std::string& data);

}  // namespace tune::cli
