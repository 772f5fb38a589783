#pragma once
// The model that a trial leaves, logged as MLflow's client would log it: a logged model of the
// trial's run, with its files, params and metrics (docs/logged_models.md).

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/client/client.h"

namespace tune::worker {

/// The folder below an attempt's where its program may leave a model.
inline constexpr const char* kModelFolder = "model";

struct ModelOrder {
    std::filesystem::path folder;  ///< with a file MLmodel
    std::string run_id = {};
    std::string experiment_id = {};
};

/// Whether a program left a model there.
[[nodiscard]] bool holds_model(const std::filesystem::path& folder);

/// MLmodel with the ids that only the server gives: `mlmodel` without its own artifact_path,
/// model_id and run_id, and these. Errors: kInvalidParameterValue for a text that is not a mapping
/// of YAML in block style, as MLflow writes it.
[[nodiscard]] Result<std::string> with_ids(std::string_view mlmodel, const std::string& model_id,
                                           const std::string& run_id, const std::string& location);

/// Makes the logged model, or goes on with the one that an earlier call for this run began, and
/// returns its id. Only a model whose files are all there becomes READY, and a run gets one,
/// however often this is called: a READY one stays as it is. Errors: those of the calls; passing
/// ones may be tried again, by another process, too.
[[nodiscard]] Result<std::string> log_model(tracker::Client& client, const ModelOrder& order);

}  // namespace tune::worker
