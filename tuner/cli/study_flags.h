#pragma once
// From the words and flags of `run` and `plan` to a checked study.

#include <string>

#include "base/result.h"
#include "tuner/cli/options.h"
#include "tuner/config/study_config.h"

namespace tune::cli {

/// File, then NAME=SPEC words, then flags, the later ones win. A study without a name takes that of
/// its script ("python train.py" -> "train"). Errors: kInvalidParameterValue with what is wrong
/// and where; kResourceDoesNotExist for a missing file.
[[nodiscard]] Result<tuner::StudyConfig> study_from_flags(const StudyFlags& flags,
                                                          bool needs_command);

/// Which word of the command is the script that its interpreter runs ("python train.py": 1); 0: the
/// program is no interpreter, or what it runs is unknown.
[[nodiscard]] std::size_t script_index(const std::vector<std::string>& command);

/// A name for a study that has none: the stem of the script or program its command runs.
[[nodiscard]] std::string name_from_command(const std::vector<std::string>& command);

/// "asha,min=1,max=90,eta=3" as --pruner takes it. Errors: kInvalidParameterValue.
[[nodiscard]] Result<tuner::PrunerConfig> pruner_from_flag(const std::string& text);

}  // namespace tune::cli
