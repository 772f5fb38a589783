#pragma once
// The cores and GPUs of this machine that the agent may hand out, and who has which.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::worker {

/// A name that this machine gives to one process at a time, see lock_on_machine.
using MachineLock = std::shared_ptr<const UniqueFd>;

/// What one attempt holds.
struct Assignment {
    std::vector<int> cores;         // its own cores; empty: shares all
    std::vector<std::string> gpus;  // UUIDs
    double gpu_share = 1;           // of each of `gpus`; below 1 it has neighbours there
    /// Of its cores and GPUs, to be held until the process tree is gone.
    std::vector<MachineLock> locks = {};
};

/// Assignment::gpu_share of GPUs that were given by bytes, whose sums the server keeps: here it
/// only tells whole ones from shared ones.
inline constexpr double kPartOfGpu = 1.0 / 1024;

/// Not thread-safe.
class Devices {
public:
    /// Locks a name against other agents; null: another one holds it. Errors as lock_on_machine.
    using Locker = std::function<Result<MachineLock>(const std::string& name)>;

    /// Without a `locker` nothing is locked: there is no other agent.
    Devices(std::vector<int> cores, std::vector<std::string> gpus, Locker locker = nullptr);

    [[nodiscard]] const std::vector<int>& cores() const { return cores_; }
    /// Those that may be handed out: not the excluded ones.
    [[nodiscard]] std::vector<std::string> gpus() const;

    /// What is known of a GPU: the cores near it, which its trials get first, and the lock by which
    /// this agent has it (null: an earlier one had it, whose trial still runs there).
    void describe(const std::string& uuid, std::vector<int> near_cores, MachineLock lock);
    /// Not handed out any more. Who has it keeps it.
    void exclude(const std::string& uuid);
    /// Not handed out while somebody else uses it.
    void set_occupied(const std::string& uuid, bool occupied);

    /// Takes floor(cpus) cores (none below 1: such trials share) and `gpus` GPUs (a fraction below
    /// 1 is a share of the GPU with the least left that has room). Empty: not free now, ask again
    /// after a release. Errors: kInvalidParameterValue if the machine never had that much,
    /// kResourceExhausted if it has not any more.
    [[nodiscard]] Result<std::optional<Assignment>> take(double cpus, double gpus);
    /// The same with GPUs that somebody else chose; of `is_part` ones others may use the rest.
    /// Errors: also kResourceDoesNotExist for a GPU that is not (or not any more) this agent's.
    [[nodiscard]] Result<std::optional<Assignment>> take_these(double cpus,
                                                               const std::vector<std::string>& gpus,
                                                               bool is_part);
    /// After these found too few cores: the lock of one that another agent has; else empty.
    [[nodiscard]] const std::string& held_elsewhere() const { return held_elsewhere_; }
    /// Marks what an adopted attempt holds; names this machine no longer has are ignored.
    void take_again(const Assignment& assignment);
    void release(const Assignment& assignment);

private:
    struct Gpu {
        std::string uuid = {};
        double free = 1;
        std::vector<int> near_cores = {};
        MachineLock lock = {};
        bool is_excluded = false;
        bool is_occupied = false;

        [[nodiscard]] bool is_usable() const { return !is_excluded && !is_occupied; }
    };
    [[nodiscard]] Gpu* find(const std::string& uuid);
    [[nodiscard]] std::optional<std::vector<std::string>> find_gpus(double gpus) const;
    [[nodiscard]] Result<void> check_cores(double cpus) const;
    [[nodiscard]] Result<std::optional<Assignment>> complete(double cpus, Assignment assignment);
    [[nodiscard]] Result<bool> take_cores(std::size_t wanted, Assignment& assignment);
    [[nodiscard]] std::vector<std::size_t> cores_in_order(const Assignment& assignment);
    void change_gpus(const Assignment& assignment, double by);

    std::vector<int> cores_;
    std::vector<bool> core_taken_;
    std::vector<Gpu> gpus_;
    Locker locker_;
    std::string held_elsewhere_;
};

/// The cores in this process's affinity mask, ascending.
[[nodiscard]] std::vector<int> allowed_cores();

}  // namespace tune::worker
