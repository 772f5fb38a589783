#pragma once
// Agents as steps of the allocation that `tune` runs in. Slurm lists steps that run and nothing
// else, so what waits and how one ended is kept in files beside the agents' state:
//
//   <folder>/<name>.began   made by the agent's script: from now on an exit is the agent's
//   <folder>/<name>.exit    the exit code of srun
//   <folder>/<name>.pid     the shell that waits for srun
//   <folder>/<name>.lock    held by that shell and srun as long as one of them lives
//   <folder>/<name>.log     what both printed
//
// A name is the group and eight hex digits, and the name of the step too.

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/launch/engine.h"

namespace tune::launch {

class SlurmSteps {
public:
    /// `folder`: of this allocation's steps; made when the first one starts.
    SlurmSteps(std::string allocation, std::string folder)
        : allocation_(std::move(allocation)), folder_(std::move(folder)) {}

    /// Starts srun with these words, a name and `script`, and does not wait for it.
    [[nodiscard]] Result<void> start(const Launch& launch, std::vector<std::string> words,
                                     const std::string& script) const;
    /// Of the group, or of all where it is empty.
    [[nodiscard]] Result<std::vector<AgentJob>> list(const Launch& launch) const;
    [[nodiscard]] Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) const;
    [[nodiscard]] std::string log_path(const AgentJob& job) const;
    /// Forgets those that have ended; their logs stay.
    void clear(const std::string& group) const;

private:
    [[nodiscard]] std::string path(const std::string& name, const char* ending) const {
        return folder_ + "/" + name + ending;
    }
    /// "4711.3" of a step that runs; empty: Slurm has none of this name.
    [[nodiscard]] Result<std::vector<std::vector<std::string>>> running() const;
    [[nodiscard]] AgentJob job_of(const std::string& name, const Launch& launch) const;

    std::string allocation_;
    std::string folder_;
};

}  // namespace tune::launch
