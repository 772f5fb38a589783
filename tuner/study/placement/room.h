#pragma once
// What a trial needs, what an agent has left, and what fits where. Pure: no clock, no I/O, and the
// same answer for equal rooms, so that agents with equal rooms need to be looked at once only.
//
// GPUs are given whole, or by bytes of their memory; a GPU that is given by bytes is never given
// whole meanwhile, nor the other way round. The GPUs of one trial are different ones. Bytes go to
// the GPU with the least left that has room (best fit), which keeps others free for those who need
// them whole.
//
// Trials of one pool share a part: the first one takes it, the last one gives it back.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/protocol.h"

namespace tune::tuner {

/// `nodes` machines with `nproc` processes each.
struct Shape {
    int nodes = 1;
    int nproc = 1;

    friend bool operator==(const Shape&, const Shape&) = default;
};

/// What a trial takes while it runs: so much for each of its processes.
struct TrialNeeds {
    int cpus = 0;                   ///< cores of its own; 0: it shares what there is
    std::int64_t memory_bytes = 0;  ///< 0: not counted
    int gpus = 0;
    std::int64_t gpu_bytes = 0;  ///< of each GPU; 0: whole GPUs
    /// Both amounts of memory are estimates: where nothing is as large, all there is will do.
    bool is_learned = false;
    /// > 0: it runs in a process with so many trials, which has all of this; those of `pool_of`
    /// share such.
    int pool = 0;
    std::string pool_of = {};
    std::vector<std::string> labels = {};   ///< of the agent, ascending
    std::vector<Shape> shapes = {Shape()};  ///< the first that can be had is taken

    /// Whether some shape needs several machines.
    [[nodiscard]] bool is_gang() const { return shapes.back().nodes > 1; }
};

/// `processes` in equal parts on as few machines as possible: 1 x 4, 2 x 2, 4 x 1.
[[nodiscard]] std::vector<Shape> equal_shapes(int processes);

/// What a trial takes of one agent.
struct Part {
    int nproc = 1;
    int slots = 1;
    int cores = 0;
    std::int64_t memory_bytes = 0;
    std::vector<GrantedGpu> gpus = {};
    /// The process that has it, with `pool_size` trials at once; empty: one of the trial's own.
    std::string pool = {};
    int pool_size = 0;

    friend bool operator==(const Part&, const Part&) = default;
};

struct GpuRoom {
    std::string uuid = {};
    std::int64_t bytes = 0;       ///< of its memory; 0: unknown, so it is given whole only
    std::int64_t free_bytes = 0;  ///< the same, less what is given
    int holders = 0;              ///< trials on it
    bool is_whole = false;        ///< one trial has all of it
};

/// A process of several trials.
struct PoolRoom {
    Part part = {};
    int trials = 0;  ///< in it
};

/// What an agent has, and what of it is left.
struct Room {
    int slots = 0;
    int slots_all = 0;
    int cores = 0;
    int cores_all = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t memory_all = 0;  ///< 0: unknown
    std::vector<GpuRoom> gpus = {};
    std::vector<std::string> labels = {};        ///< ascending
    std::map<std::string, PoolRoom> pools = {};  ///< by Part::pool
};

/// All that an agent has. Memory is rounded down to 1/64 of its size, so that machines of one make
/// are alike.
[[nodiscard]] Room room_of(const RegisterRequest& facts);

/// What `nproc` processes of the trial would take of this room now; nothing: it does not fit.
[[nodiscard]] std::optional<Part> part_in(const Room& room, const TrialNeeds& needs, int nproc);

/// How much would have to become free before so many processes fit: places, GPUs and cores
/// together, 0 if they fit now; nothing: they never do.
[[nodiscard]] std::optional<int> lacking_in(const Room& room, const TrialNeeds& needs, int nproc);

/// REQUIRES: the part fits, or was taken. GPUs that the room does not have are ignored.
void take(Room& room, const Part& part);
void give_back(Room& room, const Part& part);

/// Two rooms with the same text take the same parts, but for the names of their GPUs.
[[nodiscard]] std::string room_text(const Room& room);

/// The value of the label "topology=..." (a switch, a fast link), or empty: machines with the same
/// one are preferred for a trial on several.
[[nodiscard]] std::string topology_of(const Room& room);

}  // namespace tune::tuner
