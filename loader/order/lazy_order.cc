// A permutation that can be asked for one place: a Feistel network over the smallest power of two
// that holds the set, walked until it lands inside the set (fewer than two steps on average). The
// round function is SplitMix64's finaliser, keyed by seed, epoch and block. A Feistel network is a
// bijection whatever its round function, and a walk along a bijection's cycle is one on the subset.

#include "loader/order/lazy_order.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace tune::loader {
namespace {

constexpr int kRounds = 6;

std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

/// The place of `value` in a keyed permutation of 0 .. count - 1.
std::int64_t permuted(std::int64_t value, std::int64_t count, std::uint64_t key) {
    if (count <= 1) return 0;
    const int bits =
        std::max(2, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1))));
    const int low_bits = bits / 2;
    const int high_bits = bits - low_bits;
    const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
    const std::uint64_t high_mask = (std::uint64_t{1} << high_bits) - 1;
    auto walked = static_cast<std::uint64_t>(value);
    do {
        std::uint64_t low = walked & low_mask;
        std::uint64_t high = walked >> low_bits;
        for (int round = 0; round < kRounds; round += 2) {
            high ^= mixed(low ^ key ^ (static_cast<std::uint64_t>(round) << 56)) & high_mask;
            low ^= mixed(high ^ key ^ (static_cast<std::uint64_t>(round + 1) << 56)) & low_mask;
        }
        walked = high << low_bits | low;
    } while (walked >= static_cast<std::uint64_t>(count));
    return static_cast<std::int64_t>(walked);
}

}  // namespace

Result<LazyOrder> LazyOrder::make(const LazyOrderOptions& options) {
    if (options.sample_count <= 0 || options.sample_count > (std::int64_t{1} << 62))
        return invalid_parameter("an order needs 1 to 2^62 samples, there are " +
                                 std::to_string(options.sample_count));
    if (options.block_size <= 0 || options.epoch < 0)
        return invalid_parameter("the shuffle block must hold a sample and epochs count from 0");
    LazyOrder order;
    order.options_ = options;
    order.key_ = mixed(mixed(options.seed) + static_cast<std::uint64_t>(options.epoch));
    order.block_ = std::max<std::int64_t>(options.block_size / kRunSamples, 1) * kRunSamples;
    order.in_runs_ = options.sample_count / kRunSamples * kRunSamples;
    order.rotation_ = static_cast<std::int64_t>(mixed(order.key_ + 1) %
                                                static_cast<std::uint64_t>(options.sample_count));
    return order;
}

std::int64_t LazyOrder::at(std::int64_t position) const {
    if (!options_.shuffle) return position;
    const std::int64_t count = options_.sample_count;
    if (count <= block_) return permuted(position, count, key_);
    const bool in_runs = position < in_runs_;
    const std::int64_t part_begin = in_runs ? position / block_ * block_ : in_runs_;
    const std::int64_t part_end = in_runs ? std::min(part_begin + block_, in_runs_) : count;
    const std::uint64_t part_key = mixed(key_ ^ static_cast<std::uint64_t>(part_begin));
    std::int64_t id = part_begin + permuted(position - part_begin, part_end - part_begin, part_key);
    if (in_runs)
        id = permuted(id / kRunSamples, in_runs_ / kRunSamples, key_) * kRunSamples +
             id % kRunSamples;
    return id < count - rotation_ ? id + rotation_ : id - (count - rotation_);
}

LazyRank::LazyRank(LazyOrder order, Place place) : order_(std::move(order)), place_(place) {
    const std::int64_t left = std::max<std::int64_t>(order_.sample_count() - place_.drop_first, 0);
    const std::int64_t global_batch = place_.batch_size * place_.ranks;
    full_batches_ = left / global_batch;
    last_size_ = (left % global_batch + place_.ranks - 1) / place_.ranks;
    samples_ = full_batches_ * place_.batch_size + last_size_;
}

LazyRank LazyRank::of_worker(std::int64_t worker, std::int64_t workers) const {
    LazyRank part = *this;
    part.first_batch_ = worker;
    part.stride_ = workers;
    const std::int64_t batches = full_batches_ + (last_size_ > 0 ? 1 : 0);
    const std::int64_t taken =
        std::max<std::int64_t>((batches - worker + workers - 1) / workers, 0);
    const bool has_last =
        last_size_ > 0 && taken > 0 && worker + (taken - 1) * workers == batches - 1;
    part.samples_ = taken * place_.batch_size - (has_last ? place_.batch_size - last_size_ : 0);
    return part;
}

std::int64_t LazyRank::at(std::int64_t i) const {
    const std::int64_t batch = first_batch_ + i / place_.batch_size * stride_;
    const std::int64_t size = batch < full_batches_ ? place_.batch_size : last_size_;
    const std::int64_t position = place_.drop_first + batch * place_.batch_size * place_.ranks +
                                  place_.rank * size + i % place_.batch_size;
    return order_.at(position % order_.sample_count());
}

}  // namespace tune::loader
