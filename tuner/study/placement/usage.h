#pragma once
// How much of the machines somebody holds, and how that compares: fair shares and quotas count in
// this. Pure, and exact: what is added and taken away again leaves nothing.

#include <cstdint>

#include "tuner/study/placement/room.h"

namespace tune::tuner {

/// A whole GPU in the unit that parts of one are counted in.
inline constexpr std::int64_t kGpuMicros = 1'000'000;

/// So much of each resource. Of a part of a GPU its share of the device's memory counts.
struct Usage {
    std::int64_t slots = 0;
    std::int64_t cores = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t gpu_micros = 0;

    Usage& operator+=(const Usage& other);
    Usage& operator-=(const Usage& other);
    friend bool operator==(const Usage&, const Usage&) = default;
};

/// What the part is of an agent with these GPUs. A part of a GPU that is not there, or whose
/// memory is unknown, counts as a whole one.
[[nodiscard]] Usage usage_of(const Part& part, const Room& room);

/// All that an agent has; nothing for one without places.
[[nodiscard]] Usage capacity_of(const Room& room);

/// The largest of the fractions that `held` is of `all`, 0..1 (dominant resource share, Ghodsi et
/// al. 2011). Of what nobody has it is 0. Places count like the others, so that a trial that names
/// no resource has a share too.
[[nodiscard]] double dominant_share(const Usage& held, const Usage& all);

}  // namespace tune::tuner
