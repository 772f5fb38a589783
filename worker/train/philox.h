#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A number depends on (seed, stream, place) and on nothing that came before, so
// resuming at a step needs no generator state but the step itself.

#include <array>
#include <cstddef>
#include <cstdint>

namespace tune::train {

/// Four 32-bit numbers from a 128-bit counter and a 64-bit key.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

/// What random numbers are for. Numbers of two streams are independent.
struct Stream {
    std::uint64_t seed = 0;
    std::uint32_t purpose = 0;  ///< e.g. which layer
    std::uint32_t moment = 0;   ///< e.g. which step; 0 for what happens once
};

/// out[i] uniform in [low, high); cost about 3 ns a number.
void fill_uniform(float* out, std::size_t count, Stream stream, float low, float high);

/// out[i] normal with mean 0 and this deviation (Box and Muller 1958); cost about 20 ns a number.
void fill_normal(float* out, std::size_t count, Stream stream, float deviation);

/// out[i] is 0 with probability `drop`, else 1 / (1 - drop); drop in [0, 1), to 1/65536.
/// Cost about 1.5 ns a number. `first` is the place of out[0] in the stream: a part of a mask is
/// what the whole one holds there.
void fill_dropout_mask(float* out, std::size_t count, Stream stream, double drop,
                       std::size_t first = 0);

}  // namespace tune::train
