#include "tuner/sampler/uniform.h"

namespace tune::tuner {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

/// SplitMix64's finaliser: a bijection of 64 bits in which every input bit reaches every output
/// bit.
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

}  // namespace

void CounterSource::fill(std::uint64_t trial, std::uint64_t key, std::span<double> out) {
    std::uint64_t state = mixed(seed_ + kGolden);
    state = mixed(state ^ (trial * kGolden + 1));
    state = mixed(state ^ key);
    for (double& u : out) {
        state += kGolden;
        u = static_cast<double>(mixed(state) >> 11) * 0x1p-53;
    }
}

std::uint64_t stream_key(std::string_view name) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return mixed(hash);
}

}  // namespace tune::tuner
