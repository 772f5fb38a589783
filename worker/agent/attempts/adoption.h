#pragma once
// Single attempts that an earlier agent on the same state_dir left: what can be known of them from
// their folders, and how their output is read on where that agent stopped.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/output/trial_output.h"

namespace tune::worker {

/// The folders of attempts below `state_dir`.
[[nodiscard]] std::vector<std::filesystem::path> folders_left(
    const std::filesystem::path& state_dir);

struct LeftAttempt {
    std::unique_ptr<Attempt> attempt;
    std::optional<Process> supervisor = {};  ///< runs
    bool is_of_this_boot = false;
};

/// Takes the attempt over. Empty: it was never begun, and its folder is removed; the server learns
/// from the registration that it is not here.
[[nodiscard]] std::optional<LeftAttempt> take_over(const std::filesystem::path& folder,
                                                   const CheckpointFolders& checkpoints,
                                                   const std::string& boot_id);

struct LeftOutput {
    TrialOutput output;
    ProgressRecord progress;
};
/// Its output from where the server has acknowledged it; what the log rules say of its end counts.
[[nodiscard]] LeftOutput read_on(const Attempt& attempt, const AttemptSettings& settings);

}  // namespace tune::worker
