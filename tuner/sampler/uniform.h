#pragma once
// Random numbers by counter: each is a hash of (seed, trial, stream, position) and of nothing else,
// so a draw does not depend on which draws came before it, on threads, or on resuming. Private to
// tuner/sampler (and its tests).

#include <cstdint>
#include <span>
#include <string_view>

namespace tune::tuner {

/// Where samplers get uniform numbers from. The tests have one that replays numpy's generator.
class UniformSource {
public:
    virtual ~UniformSource() = default;

    /// Fills `out` with numbers in [0, 1) of the stream `key` of one trial. A stream is asked for
    /// once a trial.
    virtual void fill(std::uint64_t trial, std::uint64_t key, std::span<double> out) = 0;
};

/// SplitMix64 (Steele, Lea, Flood 2014) started at a hash of (seed, trial, key). Stateless.
class CounterSource final : public UniformSource {
public:
    explicit CounterSource(std::uint64_t seed) : seed_(seed) {}
    void fill(std::uint64_t trial, std::uint64_t key, std::span<double> out) override;

private:
    std::uint64_t seed_;
};

/// The key of a named stream (FNV-1a, mixed).
[[nodiscard]] std::uint64_t stream_key(std::string_view name);

}  // namespace tune::tuner
