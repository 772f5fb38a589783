#pragma once
// numpy's Generator(PCG64(SeedSequence(seed))), draw for draw: the source of every random decision
// in an order. numpy does not promise this stream for ever; ours is pinned to it as of numpy 2.1.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tune::loader {

/// numpy.random.default_rng(seed). Not thread-safe; copyable. Sources: numpy random/bit_generator
/// (SeedSequence), src/pcg64 (PCG XSL-RR 128/64), src/distributions (bounded integers).
class Rng {
public:
    explicit Rng(std::uint64_t seed);
    /// A seed of more than 64 bits, as 32-bit words, lowest first.
    explicit Rng(std::span<const std::uint32_t> words);

    [[nodiscard]] std::uint64_t next_u64();
    /// The low half of a u64 draw, then its high half; other draws leave the half that waits alone.
    [[nodiscard]] std::uint32_t next_u32();
    /// Generator.random(): uniform in [0, 1), 53 bits.
    [[nodiscard]] double next_double();
    /// Generator.uniform(low, high).
    [[nodiscard]] double uniform(double low, double high);
    /// Generator.integers(low, high): uniform in [low, high). REQUIRES: low < high.
    [[nodiscard]] std::int64_t integers(std::int64_t low, std::int64_t high);
    /// Uniform in [0, max] by masked rejection, as Generator.shuffle draws.
    [[nodiscard]] std::uint64_t interval(std::uint64_t max);
    /// Uniform in [0, max] by Lemire's method, as Generator.integers and choice draw.
    [[nodiscard]] std::uint64_t bounded(std::uint64_t max);

    /// Generator.shuffle, O(n).
    template <class T>
    void shuffle(std::span<T> values) {
        for (std::size_t i = values.size(); i-- > 1;)
            std::swap(values[i], values[static_cast<std::size_t>(interval(i))]);
    }
    /// Generator.permutation(count).
    [[nodiscard]] std::vector<std::int64_t> permutation(std::int64_t count);
    /// Generator.choice(population, count, replace=False). REQUIRES: 0 <= count <= population.
    [[nodiscard]] std::vector<std::int64_t> choice(std::int64_t population, std::int64_t count);

private:
    __extension__ using Wide = unsigned __int128;

    void seed_with(std::span<const std::uint32_t> words);

    Wide state_ = 0;
    Wide increment_ = 0;
    std::uint32_t waiting_half_ = 0;
    bool half_waits_ = false;
};

}  // namespace tune::loader
