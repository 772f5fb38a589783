// A room is what is left, so giving and taking are sums, and what fits is a comparison each. Which
// GPUs a trial gets depends on the room alone: two agents with the same text give the same.

#include "tuner/study/placement/room.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_map>

namespace tune::tuner {
namespace {

constexpr std::string_view kTopology = "topology=";

/// The six highest bits.
std::int64_t rounded_down(std::int64_t bytes) {
    if (bytes <= 0) return 0;
    const auto width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes)));
    const int dropped = std::max(width - 7, 0);
    return bytes >> dropped << dropped;
}

std::vector<std::string> ascending(std::vector<std::string> words) {
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
}

/// An agent with a GPU for each slot gives one to each process that asks for none.
int gpus_wanted(const Room& room, const TrialNeeds& needs, int nproc) {
    if (needs.gpus > 0) return needs.gpus * nproc;
    const int here = static_cast<int>(room.gpus.size());
    return here > 0 && here >= room.slots_all ? std::min(nproc, here) : 0;
}

bool find_whole(const Room& room, int wanted, Part& part) {
    for (const GpuRoom& gpu : room.gpus)
        if (gpu.holders == 0 && static_cast<int>(part.gpus.size()) < wanted)
            part.gpus.push_back({gpu.uuid, 0});
    return static_cast<int>(part.gpus.size()) == wanted;
}

bool find_bytes(const Room& room, int wanted, std::int64_t bytes, Part& part) {
    std::vector<const GpuRoom*> fitting;
    for (const GpuRoom& gpu : room.gpus)
        if (!gpu.is_whole && gpu.bytes > 0 && gpu.free_bytes >= bytes) fitting.push_back(&gpu);
    if (static_cast<int>(fitting.size()) < wanted) return false;
    std::stable_sort(fitting.begin(), fitting.end(), [](const GpuRoom* a, const GpuRoom* b) {
        return a->free_bytes < b->free_bytes;
    });
    fitting.resize(static_cast<std::size_t>(wanted));
    for (const GpuRoom* gpu : fitting) part.gpus.push_back({gpu->uuid, bytes});
    return true;
}

void change(Room& room, const Part& part, int sign) {
    room.slots -= sign * part.slots;
    room.cores -= sign * part.cores;
    room.memory_bytes -= sign * part.memory_bytes;
    for (const GrantedGpu& granted : part.gpus)
        for (GpuRoom& gpu : room.gpus) {
            if (gpu.uuid != granted.uuid) continue;
            gpu.holders += sign;
            if (granted.bytes > 0)
                gpu.free_bytes -= sign * granted.bytes;
            else
                gpu.is_whole = sign > 0;
        }
}

/// Of the processes of these trials the first one that has room, so that others run empty.
const Part* open_pool(const Room& room, const TrialNeeds& needs) {
    const std::string prefix = needs.pool_of + ".";
    for (auto at = room.pools.lower_bound(prefix);
         at != room.pools.end() && at->first.starts_with(prefix); ++at)
        if (at->second.trials < at->second.part.pool_size) return &at->second.part;
    return nullptr;
}

std::string new_pool_name(const Room& room, const TrialNeeds& needs) {
    for (int i = 1;; ++i) {
        std::string name = needs.pool_of + "." + std::to_string(i);
        if (!room.pools.contains(name)) return name;
    }
}

}  // namespace

std::vector<Shape> equal_shapes(int processes) {
    std::vector<Shape> shapes;
    for (int nodes = 1; nodes <= processes; ++nodes)
        if (processes % nodes == 0) shapes.push_back({nodes, processes / nodes});
    return shapes;
}

Room room_of(const RegisterRequest& facts) {
    Room room;
    room.slots = room.slots_all = facts.slots;
    room.cores = room.cores_all = facts.cpus;
    room.memory_bytes = room.memory_all = rounded_down(facts.memory_bytes);
    std::unordered_map<std::string_view, std::int64_t> bytes;
    for (const GpuFacts& known : facts.devices) bytes[known.uuid] = known.bytes;
    for (const std::string& uuid : facts.gpus) {
        GpuRoom gpu{.uuid = uuid};
        if (const auto known = bytes.find(uuid); known != bytes.end())
            gpu.bytes = gpu.free_bytes = std::max<std::int64_t>(known->second, 0);
        room.gpus.push_back(std::move(gpu));
    }
    room.labels = ascending(facts.labels);
    return room;
}

std::optional<Part> part_in(const Room& room, const TrialNeeds& needs, int nproc) {
    if (needs.pool > 0)
        if (const Part* open = open_pool(room, needs)) return *open;
    Part part{.nproc = nproc,
              // More processes than the agent has places take all of them.
              .slots = std::clamp(room.slots_all, 1, std::max(nproc, 1)),
              .cores = needs.cpus * nproc,
              .memory_bytes = needs.memory_bytes * nproc};
    if (part.slots > room.slots || part.cores > std::max(room.cores, 0)) return std::nullopt;
    if (needs.is_learned && room.memory_all > 0)
        part.memory_bytes = std::min(part.memory_bytes, room.memory_all);
    if (part.memory_bytes > room.memory_bytes && part.memory_bytes > 0) return std::nullopt;
    if (!std::includes(room.labels.begin(), room.labels.end(), needs.labels.begin(),
                       needs.labels.end()))
        return std::nullopt;
    const int wanted = gpus_wanted(room, needs, nproc);
    const bool is_too_much =
        needs.is_learned && std::none_of(room.gpus.begin(), room.gpus.end(), [&](const auto& gpu) {
            return gpu.bytes >= needs.gpu_bytes;
        });
    const bool is_part = needs.gpus > 0 && needs.gpu_bytes > 0 && !is_too_much;
    const bool is_found =
        is_part ? find_bytes(room, wanted, needs.gpu_bytes, part) : find_whole(room, wanted, part);
    if (!is_found) return std::nullopt;
    if (needs.pool > 0) {
        part.pool = new_pool_name(room, needs);
        part.pool_size = needs.pool;
    }
    return part;
}

std::optional<int> lacking_in(const Room& room, const TrialNeeds& needs, int nproc) {
    if (part_in(room, needs, nproc)) return 0;
    Room empty = room;
    empty.slots = room.slots_all;
    empty.cores = room.cores_all;
    empty.memory_bytes = room.memory_all;
    for (GpuRoom& gpu : empty.gpus)
        gpu = {.uuid = gpu.uuid, .bytes = gpu.bytes, .free_bytes = gpu.bytes};
    const std::optional<Part> part = part_in(empty, needs, nproc);
    if (!part) return std::nullopt;
    const auto free_gpus = std::count_if(room.gpus.begin(), room.gpus.end(),
                                         [](const GpuRoom& gpu) { return gpu.holders == 0; });
    const int lacking =
        std::max(part->slots - room.slots, 0) + std::max(part->cores - room.cores, 0) +
        std::max(static_cast<int>(part->gpus.size()) - static_cast<int>(free_gpus), 0);
    return std::max(lacking, 1);
}

void take(Room& room, const Part& part) {
    if (!part.pool.empty()) {
        PoolRoom& pool = room.pools[part.pool];
        if (++pool.trials > 1) return;
        pool.part = part;
    }
    change(room, part, 1);
}

void give_back(Room& room, const Part& part) {
    if (!part.pool.empty()) {
        const auto pool = room.pools.find(part.pool);
        if (pool == room.pools.end() || --pool->second.trials > 0) return;
        room.pools.erase(pool);
    }
    change(room, part, -1);
}

std::string room_text(const Room& room) {
    std::string text = std::to_string(room.slots) + "/" + std::to_string(room.slots_all) + " " +
                       std::to_string(room.cores) + " " + std::to_string(room.memory_bytes);
    std::vector<std::string> gpus;
    for (const GpuRoom& gpu : room.gpus)
        gpus.push_back(" " + std::to_string(gpu.bytes) + ":" + std::to_string(gpu.free_bytes) +
                       (gpu.is_whole      ? "w"
                        : gpu.holders > 0 ? "p"
                                          : "f"));
    std::sort(gpus.begin(), gpus.end());
    for (const std::string& gpu : gpus) text += gpu;
    for (const std::string& label : room.labels) text += "," + label;
    for (const auto& [name, pool] : room.pools)
        if (pool.trials < pool.part.pool_size) text += ";" + name;
    return text;
}

std::string topology_of(const Room& room) {
    for (const std::string& label : room.labels)
        if (label.starts_with(kTopology)) return label.substr(kTopology.size());
    return {};
}

}  // namespace tune::tuner
