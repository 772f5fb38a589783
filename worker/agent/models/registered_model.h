#pragma once
// Models that a command starts from by their names in the registry:
// `--init-from=models:/digits@champion`. The trainer has no network, so they are brought to this
// machine before it starts, and it gets a path in their place.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/client/client.h"

namespace tune::worker {

/// "models:/..." of each --init-from of the command, in order, each once.
[[nodiscard]] std::vector<std::string> wanted_models(const std::vector<std::string>& command);

/// The command with the path in the place of the name.
void put_model_path(std::vector<std::string>& command, const std::string& uri,
                    const std::filesystem::path& path);

struct FetchedModel {
    std::string uri = {};
    std::filesystem::path folder = {};
    std::string note = {};  ///< what it is, as a sentence for the user
};

/// Brings the files of "models:/NAME/VERSION", "models:/NAME@ALIAS" or "models:/m-..." into a
/// folder of their own below `root`, unless they are there: what a version holds does not change.
/// All of them are there, or no folder. Errors, with the name: kInvalidParameterValue (no such
/// name, or one of another form; a model that the server does not serve), and those of the calls.
[[nodiscard]] Result<FetchedModel> fetch_registered_model(tracker::Client& client,
                                                          const std::string& uri,
                                                          const std::filesystem::path& root);

}  // namespace tune::worker
