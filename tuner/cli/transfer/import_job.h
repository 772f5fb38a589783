#pragma once
// `tune import` into a data folder that a server holds: the server does it, as a job that is
// followed from here. What to import lies as a file in <data>/imports, so that only who may write
// to the folder can make the server read other files of the machine.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "tracker/api/http/router.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/maintenance/maintenance.h"
#include "tracker/store/store.h"
#include "tracker/transfer/importer.h"
#include "tracker/transfer/source/source.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/study/registry/studies.h"

namespace tune::cli {

/// What an import is told about: how far it is, and whether it should end.
struct ImportWatch {
    std::function<void(const tracker::TransferProgress&)> on_progress = {};
    std::function<bool()> is_cancelled = {};
};

/// What `options.source` means. Errors: those of open_source.
[[nodiscard]] Result<std::unique_ptr<tracker::Source>> open_import_source(
    const ImportCommand& options);

/// Imports all of `source` into the store of `options.data`. Errors: those of import_all. Blocks.
[[nodiscard]] Result<tracker::TransferReport> import_into(const ImportCommand& options,
                                                          tracker::Source& source,
                                                          tracker::Store& store,
                                                          const tracker::ArtifactStore& artifacts,
                                                          const ImportWatch& watch);

/// A study of Optuna's into the store; `studies` as for store_imported. Gives {study, trials,
/// notes}. Errors: those of read_optuna_db, from_optuna and store_imported. Blocks.
[[nodiscard]] Result<Json> import_optuna_into(const ImportCommand& options, tracker::Store& store,
                                              tuner::Studies* studies,
                                              const std::function<bool()>& is_cancelled);

/// POST tune/imports {request}: starts the import that <data>/imports/REQUEST.json describes, which
/// is deleted. The job's result: {report, text, is_whole}, or that of import_optuna_into. All
/// outlive the router's use.
void add_import_route(tracker::Router& router, tracker::Maintenance& maintenance,
                      tracker::Store& store, tuner::Studies& studies,
                      const tracker::ArtifactStore& artifacts, const std::filesystem::path& data);

/// The server that holds `options.data`, after Store::open failed with `error`; any other error as
/// it is. Errors: that of say_holder where no server answers.
[[nodiscard]] Result<std::string> holder_for_import(const Error& error, const std::string& data);

/// The result of the job at the server at `url`, which holds `options.data`. Errors: those of the
/// job; kCancelled when it goes on without being followed. Blocks.
[[nodiscard]] Result<Json> import_by_server(const ImportCommand& options, const std::string& url,
                                            const std::function<bool()>& is_cancelled);

}  // namespace tune::cli
