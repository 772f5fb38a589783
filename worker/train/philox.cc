#include "worker/train/philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tune::train {
namespace {

/// Numbers first..first+3 of a stream. 2^34 numbers fit into one.
std::array<std::uint32_t, 4> block(const Stream& stream, std::size_t index) {
    return philox4x32(
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream.purpose,
         stream.moment},
        {static_cast<std::uint32_t>(stream.seed), static_cast<std::uint32_t>(stream.seed >> 32)});
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
    constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
    constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
    constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
    constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = kMultiplier0 * counter[0];
        const std::uint64_t product1 = kMultiplier1 * counter[2];
        counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
                   static_cast<std::uint32_t>(product1),
                   static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
                   static_cast<std::uint32_t>(product0)};
        key = {key[0] + kWeyl0, key[1] + kWeyl1};
    }
    return counter;
}

void fill_uniform(float* out, std::size_t count, Stream stream, float low, float high) {
    constexpr float kScale = 1.0f / 16777216.0f;  // 24 bits: what a float holds below 1
    for (std::size_t i = 0; i < count; i += 4) {
        const auto numbers = block(stream, i / 4);
        for (std::size_t j = 0; j < std::min<std::size_t>(4, count - i); ++j)
            out[i + j] = low + (high - low) * (static_cast<float>(numbers[j] >> 8) * kScale);
    }
}

void fill_normal(float* out, std::size_t count, Stream stream, float deviation) {
    for (std::size_t i = 0; i < count; i += 4) {
        const auto numbers = block(stream, i / 4);
        double values[4];
        for (std::size_t j = 0; j < 4; j += 2) {
            // In (0, 1], so that its logarithm is finite.
            const double u = (static_cast<double>(numbers[j]) + 1.0) / 4294967296.0;
            const double angle =
                2.0 * std::numbers::pi * (static_cast<double>(numbers[j + 1]) / 4294967296.0);
            const double radius = std::sqrt(-2.0 * std::log(u));
            values[j] = radius * std::cos(angle);
            values[j + 1] = radius * std::sin(angle);
        }
        for (std::size_t j = 0; j < std::min<std::size_t>(4, count - i); ++j)
            out[i + j] = static_cast<float>(values[j]) * deviation;
    }
}

void fill_dropout_mask(float* out, std::size_t count, Stream stream, double drop,
                       std::size_t first) {
    const auto threshold = static_cast<std::uint32_t>(std::lround(drop * 65536.0));
    const auto keep = static_cast<float>(1.0 / (1.0 - drop));
    std::size_t skipped = first % 8;
    for (std::size_t i = 0; i < count;) {
        const auto numbers = block(stream, (first + i) / 8);
        float masks[8];
        for (std::size_t j = 0; j < 4; ++j) {
            masks[2 * j] = (numbers[j] & 0xFFFFu) < threshold ? 0.0f : keep;
            masks[2 * j + 1] = (numbers[j] >> 16) < threshold ? 0.0f : keep;
        }
        const std::size_t here = std::min<std::size_t>(8 - skipped, count - i);
        std::copy_n(masks + skipped, here, out + i);
        i += here;
        skipped = 0;
    }
}

}  // namespace tune::train
