#pragma once

#include "base/result.h"
#include "tuner/config/study_config.h"

namespace tune::cli {

/// Whether an agent on this machine would find the command's program: in the folder of `tune`, then
/// in PATH, or at its path; and whether the script exists that an interpreter is to run ("python
/// train.py"). Saves a study of trials that all fail. Errors: kInvalidParameterValue naming the
/// program or the script. What is a placeholder is not checked.
[[nodiscard]] Result<void> check_program(const tuner::StudyConfig& config);

}  // namespace tune::cli
