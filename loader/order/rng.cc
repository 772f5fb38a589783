// SeedSequence, PCG64 (XSL-RR 128/64) and the distributions of numpy, draw for draw. What a method
// returns is not enough: how many words it draws and which half of a word it keeps decide all later
// draws, so each method follows numpy's control flow, including its thresholds between algorithms.

#include "loader/order/rng.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <unordered_set>

namespace tune::loader {
namespace {

/// SeedSequence's entropy pool: four 32-bit words into which any number of seed words is mixed.
class SeedPool {
public:
    explicit SeedPool(std::span<const std::uint32_t> words) {
        for (std::size_t i = 0; i < pool_.size(); ++i)
            pool_[i] = hashed(i < words.size() ? words[i] : 0);
        for (std::size_t source = 0; source < pool_.size(); ++source)
            for (std::size_t target = 0; target < pool_.size(); ++target)
                if (source != target) pool_[target] = mixed(pool_[target], hashed(pool_[source]));
        for (std::size_t source = pool_.size(); source < words.size(); ++source)
            for (std::uint32_t& target : pool_) target = mixed(target, hashed(words[source]));
    }

    /// generate_state(4, uint64).
    [[nodiscard]] std::array<std::uint64_t, 4> state() const {
        std::array<std::uint32_t, 8> halves{};
        std::uint32_t factor = 0x8b51f9dd;
        for (std::size_t i = 0; i < halves.size(); ++i) {
            std::uint32_t value = pool_[i % pool_.size()] ^ factor;
            factor *= 0x58f38ded;
            value *= factor;
            halves[i] = value ^ (value >> 16);
        }
        std::array<std::uint64_t, 4> words{};
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = halves[2 * i] | (std::uint64_t{halves[2 * i + 1]} << 32);
        return words;
    }

private:
    std::uint32_t hashed(std::uint32_t value) {
        value ^= factor_;
        factor_ *= 0x931e8875;
        value *= factor_;
        return value ^ (value >> 16);
    }

    static std::uint32_t mixed(std::uint32_t x, std::uint32_t y) {
        const std::uint32_t value = 0xca01f9dd * x - 0x4973f715 * y;
        return value ^ (value >> 16);
    }

    std::array<std::uint32_t, 4> pool_{};
    std::uint32_t factor_ = 0x43b0d7e5;
};

}  // namespace

Rng::Rng(std::uint64_t seed) {
    const std::array<std::uint32_t, 2> words = {static_cast<std::uint32_t>(seed),
                                                static_cast<std::uint32_t>(seed >> 32)};
    seed_with(std::span(words).first(words[1] == 0 ? 1 : 2));
}

Rng::Rng(std::span<const std::uint32_t> words) {
    seed_with(words);
}

void Rng::seed_with(std::span<const std::uint32_t> words) {
    const std::array<std::uint64_t, 4> seeds = SeedPool(words).state();
    const Wide start = (Wide{seeds[0]} << 64) | seeds[1];
    increment_ = (((Wide{seeds[2]} << 64) | seeds[3]) << 1) | 1;
    state_ = 0;
    (void)next_u64();
    state_ += start;
    (void)next_u64();
}

std::uint64_t Rng::next_u64() {
    constexpr Wide kMultiplier = (Wide{2549297995355413924U} << 64) | 4865540595714422341U;
    state_ = state_ * kMultiplier + increment_;
    const auto folded =
        static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
    return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint32_t Rng::next_u32() {
    if (half_waits_) {
        half_waits_ = false;
        return waiting_half_;
    }
    const std::uint64_t value = next_u64();
    half_waits_ = true;
    waiting_half_ = static_cast<std::uint32_t>(value >> 32);
    return static_cast<std::uint32_t>(value);
}

double Rng::next_double() {
    return static_cast<double>(next_u64() >> 11) * (1.0 / 9007199254740992.0);
}

double Rng::uniform(double low, double high) {
    // Two rounded operations, as numpy's x86 builds do them; this file is compiled with
    // -ffp-contract=off, because a fused multiply-add would differ in the last bit.
    const double range = high - low;
    return low + range * next_double();
}

std::uint64_t Rng::interval(std::uint64_t max) {
    if (max == 0) return 0;
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(max);
    std::uint64_t value = 0;
    do {
        value = (max <= 0xffffffffU ? std::uint64_t{next_u32()} : next_u64()) & mask;
    } while (value > max);
    return value;
}

std::uint64_t Rng::bounded(std::uint64_t max) {
    if (max == 0) return 0;
    if (max == 0xffffffffU) return next_u32();
    if (max == ~std::uint64_t{0}) return next_u64();
    if (max < 0xffffffffU) {
        const auto count = static_cast<std::uint32_t>(max + 1);
        std::uint64_t product = std::uint64_t{next_u32()} * count;
        if (static_cast<std::uint32_t>(product) < count) {
            const std::uint32_t threshold = (0xffffffffU - static_cast<std::uint32_t>(max)) % count;
            while (static_cast<std::uint32_t>(product) < threshold)
                product = std::uint64_t{next_u32()} * count;
        }
        return product >> 32;
    }
    const std::uint64_t count = max + 1;
    Wide product = Wide{next_u64()} * count;
    if (static_cast<std::uint64_t>(product) < count) {
        const std::uint64_t threshold = (~std::uint64_t{0} - max) % count;
        while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next_u64()} * count;
    }
    return static_cast<std::uint64_t>(product >> 64);
}

std::int64_t Rng::integers(std::int64_t low, std::int64_t high) {
    const std::uint64_t max =
        static_cast<std::uint64_t>(high) - 1 - static_cast<std::uint64_t>(low);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + bounded(max));
}

std::vector<std::int64_t> Rng::permutation(std::int64_t count) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    shuffle(std::span(values));
    return values;
}

std::vector<std::int64_t> Rng::choice(std::int64_t population, std::int64_t count) {
    const auto swap_down_to = [this](std::vector<std::int64_t>& values, std::int64_t last) {
        for (auto i = static_cast<std::int64_t>(values.size()) - 1; i >= last; --i) {
            const auto j = static_cast<std::size_t>(bounded(static_cast<std::uint64_t>(i)));
            std::swap(values[static_cast<std::size_t>(i)], values[j]);
        }
    };
    std::vector<std::int64_t> values;
    // numpy's own threshold between shuffling a tail and Floyd's set of chosen values.
    if (population > 10000 && count > population / 50) {
        values.resize(static_cast<std::size_t>(population));
        std::iota(values.begin(), values.end(), 0);
        swap_down_to(values, std::max<std::int64_t>(population - count, 1));
        values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(count));
        return values;
    }
    values.reserve(static_cast<std::size_t>(count));
    std::unordered_set<std::int64_t> chosen;
    for (std::int64_t j = population - count; j < population; ++j) {
        auto value = static_cast<std::int64_t>(bounded(static_cast<std::uint64_t>(j)));
        if (!chosen.insert(value).second) {
            value = j;
            chosen.insert(value);
        }
        values.push_back(value);
    }
    swap_down_to(values, 1);
    return values;
}

}  // namespace tune::loader
