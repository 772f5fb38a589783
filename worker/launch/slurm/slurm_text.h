#pragma once
// What Slurm's commands print, as structs. No commands are run here.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worker/launch/engine.h"

namespace tune::launch {

/// What `squeue -o` is asked for: one job of an array a line. The comment is last, as it may hold
/// anything.
inline constexpr const char* kSqueueFormat = "%i|%T|%r|%N|%P|%D|%j|%k";
/// What `sinfo -N -o` is asked for: one node a line, and once for each partition that it is in.
inline constexpr const char* kSinfoFormat = "%n|%c|%T|%G|%N";

/// Errors: kDataLoss with the line that is no job.
[[nodiscard]] Result<std::vector<AgentJob>> parse_squeue(const std::string& text);

/// Why a job waits, in words: "partition gpu is full (Resources)".
[[nodiscard]] std::string pending_text(const std::string& reason, const std::string& partition);

struct SlurmNode {
    std::string host = {};  ///< several nodes of a test cluster share one
    int cpus = 0;
    std::string state = {};  ///< "idle", "down*", ...
    int gpus = 0;

    [[nodiscard]] bool is_usable() const;
};
/// Each node once.
[[nodiscard]] std::vector<SlurmNode> parse_sinfo(const std::string& text);

/// GPUs in a list of generic resources: "gpu:a100:4(S:0-1),mps:100" has 4; of one type, if given.
[[nodiscard]] int gpus_of_gres(std::string_view gres, std::string_view type);

/// "slurm-wlm 22.05.8" is (22, 5); nothing for another text.
struct SlurmVersion {
    int major = 0;
    int minor = 0;
};
[[nodiscard]] std::optional<SlurmVersion> parse_slurm_version(std::string_view text);

/// The number behind `name =` in what `scontrol show config` prints.
[[nodiscard]] std::optional<long> config_number(std::string_view text, std::string_view name);

/// "tune:<group>:<study>", with which a job's comment begins: what accounting shows of it.
[[nodiscard]] std::string comment_of(const Launch& launch);

/// A duration as sbatch takes it: "1-02:03:04".
[[nodiscard]] std::string slurm_time(std::int64_t duration_ms);

}  // namespace tune::launch
