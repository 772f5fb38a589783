#pragma once
// Which engine starts the agents, with which settings: from engines.yaml, the study file and flags.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/result.h"
#include "tuner/cli/options.h"

namespace tune::cli {

struct EngineChoice {
    std::string name;  ///< as the user calls it
    Json settings;     ///< {"type": "slurm", ...}, for launch::make_engine
    std::string path;  ///< where they stand, for errors
};

/// The later wins: engines.yaml, `engine` of the study file, `--on NAME,key=value`, `--agents`.
/// `words`: those of the command line, among which the study file may be. Nothing: the study names
/// no engine. The file of engines is the one that is named, else ./engines.yaml, else
/// ~/.config/tune/engines.yaml. Errors: kInvalidParameterValue with file and key.
[[nodiscard]] Result<std::optional<EngineChoice>> choose_engine(
    const EngineFlags& flags, const std::vector<std::string>& words);

/// All of the file of engines, by name; empty without a file. Errors: as above.
[[nodiscard]] Result<std::vector<EngineChoice>> known_engines(const EngineFlags& flags);

}  // namespace tune::cli
