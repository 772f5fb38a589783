// Philox4x32-10 (philox.cc) over whole tensors. int64 holds each 32-bit number; a product of two
// wraps modulo 2^64, as an unsigned one would, and what a shift drags in from the sign is masked.
// The counter's words 0 and 2 are multiplied, 1 and 3 are not, so each pair is one tensor [2, n].

#include "worker/train/models/drawn_mask.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>

#include <cmath>

namespace tune::train {
namespace {

constexpr std::int64_t kWord = 0xFFFFFFFF;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
/// Numbers of 16 bits in one block.
constexpr std::int64_t kOfBlock = 8;

/// A column [2, 1] of constants, made by kernels alone, which a capture allows.
at::Tensor column(std::int64_t first, std::int64_t second, const at::TensorOptions& options) {
    return at::cat({at::full({1, 1}, first, options), at::full({1, 1}, second, options)});
}

/// The blocks' four words [n, 4]; `index` [n] int64 is each one's place in the stream.
at::Tensor words(const at::Tensor& index, std::uint64_t seed, std::uint32_t purpose,
                 const at::Tensor& moment) {
    const at::TensorOptions options = index.options();
    const at::Tensor multipliers = column(0xD2511F53, 0xCD9E8D57, options);
    at::Tensor multiplied =
        at::stack({at::bitwise_and(index, kWord), at::full_like(index, std::int64_t{purpose})});
    at::Tensor others =
        at::stack({at::bitwise_right_shift(index, std::int64_t{32}), moment.expand_as(index)});
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const at::Tensor products = at::mul(multiplied, multipliers);
        const at::Tensor high = at::bitwise_and(at::bitwise_right_shift(products, 32), kWord);
        multiplied = at::bitwise_xor(at::bitwise_xor(at::flip(high, {0}), others),
                                     column(key0, key1, options));
        others = at::flip(at::bitwise_and(products, kWord), {0});
        key0 += kWeyl0;
        key1 += kWeyl1;
    }
    return at::stack({multiplied[0], others[0], multiplied[1], others[1]}, 1);
}

}  // namespace

at::Tensor drawn_mask(at::IntArrayRef sizes, at::Device device, double drop, const Pass& pass,
                      std::uint32_t purpose) {
    const at::TensorOptions options = at::TensorOptions(device).dtype(at::kLong);
    const std::int64_t rows = sizes[0];
    std::int64_t row = 1;
    for (const std::int64_t size : sizes.slice(1)) row *= size;
    const auto step = static_cast<std::int64_t>(static_cast<std::uint32_t>(pass.step));
    const at::Tensor moment =
        pass.step_on_device.defined() ? pass.step_on_device : at::full({}, step, options);

    // Where each row begins in the stream, and the blocks that hold it.
    const at::Tensor begin =
        at::arange(rows, options).mul_(pass.row_stride).add_(pass.first_row).mul_(row);
    const bool is_aligned = row % kOfBlock == 0;
    const std::int64_t blocks = row / kOfBlock + (is_aligned ? 0 : 2);
    const at::Tensor index =
        at::bitwise_right_shift(begin, 3).unsqueeze(1) + at::arange(blocks, options).unsqueeze(0);
    const at::Tensor numbers = words(index.reshape({-1}), pass.seed, purpose, moment);
    const at::Tensor halves = at::stack(
        {at::bitwise_and(numbers, 0xFFFF), at::bitwise_right_shift(numbers, std::int64_t{16})}, 2);
    at::Tensor draws = halves.reshape({rows, blocks * kOfBlock});
    if (!is_aligned) {
        const at::Tensor places = at::bitwise_and(begin, kOfBlock - 1).unsqueeze(1) +
                                  at::arange(row, options).unsqueeze(0);
        draws = draws.gather(1, places);
    }
    const std::int64_t threshold = std::lround(drop * 65536.0);
    const auto keep = static_cast<float>(1.0 / (1.0 - drop));
    return at::ge(draws, threshold).to(at::kFloat).mul_(keep).reshape(sizes);
}

}  // namespace tune::train
