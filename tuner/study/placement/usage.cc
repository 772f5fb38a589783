#include "tuner/study/placement/usage.h"

#include <algorithm>

namespace tune::tuner {
namespace {

std::int64_t micros_of(const GrantedGpu& granted, const Room& room) {
    if (granted.bytes <= 0) return kGpuMicros;
    for (const GpuRoom& gpu : room.gpus)
        if (gpu.uuid == granted.uuid && gpu.bytes > 0)
            return static_cast<std::int64_t>(static_cast<double>(granted.bytes) /
                                             static_cast<double>(gpu.bytes) *
                                             static_cast<double>(kGpuMicros));
    return kGpuMicros;
}

double fraction(std::int64_t held, std::int64_t all) {
    return all > 0 ? static_cast<double>(held) / static_cast<double>(all) : 0;
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
    slots += other.slots;
    cores += other.cores;
    memory_bytes += other.memory_bytes;
    gpu_micros += other.gpu_micros;
    return *this;
}

Usage& Usage::operator-=(const Usage& other) {
    slots -= other.slots;
    cores -= other.cores;
    memory_bytes -= other.memory_bytes;
    gpu_micros -= other.gpu_micros;
    return *this;
}

Usage usage_of(const Part& part, const Room& room) {
    Usage usage{.slots = part.slots, .cores = part.cores, .memory_bytes = part.memory_bytes};
    for (const GrantedGpu& gpu : part.gpus) usage.gpu_micros += micros_of(gpu, room);
    return usage;
}

Usage capacity_of(const Room& room) {
    if (room.slots_all <= 0) return {};  // it takes no trials
    return {.slots = room.slots_all,
            .cores = room.cores_all,
            .memory_bytes = room.memory_all,
            .gpu_micros = static_cast<std::int64_t>(room.gpus.size()) * kGpuMicros};
}

double dominant_share(const Usage& held, const Usage& all) {
    return std::max({fraction(held.slots, all.slots), fraction(held.cores, all.cores),
                     fraction(held.memory_bytes, all.memory_bytes),
                     fraction(held.gpu_micros, all.gpu_micros)});
}

}  // namespace tune::tuner
