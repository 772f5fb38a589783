// Two passes of weighted sums. The weights of an output pixel are the same in every row (or
// column), so they are worked out once a pass.

#include "loader/decode/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// The same code for processors with AVX2 and for all others; which one runs is chosen at the start.
// Sanitizers cannot follow that choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)
#define TUNE_CLONED __attribute__((target_clones("avx2", "default")))
#else
#define TUNE_CLONED
#endif

namespace tune::loader {
namespace {

constexpr int kWeightBits = 32 - 8 - 2;  // a sum of weighted bytes stays within 31 bits

std::uint8_t rounded(std::int32_t sum) {
    return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

/// Weights of one pass: output pixel i is the sum over k of weights[i * taps + k] * in[firsts[i] +
/// k].
struct Taps {
    int count = 0;
    const std::int32_t* weights = nullptr;
    const int* firsts = nullptr;
};

/// Of the output pixels first_out .. first_out + count_out of `out`.
Taps taps_of(int in, double begin, double extent, int out, int first_out, int count_out,
             ResampleMemory& memory) {
    const double scale = extent / out;
    const double width = std::max(scale, 1.0);  // of the filter, in pixels of `in`
    const int count = static_cast<int>(std::ceil(width)) * 2 + 1;
    memory.weights.assign(static_cast<std::size_t>(count_out) * static_cast<std::size_t>(count), 0);
    memory.firsts.resize(static_cast<std::size_t>(count_out));
    std::vector<double> exact(static_cast<std::size_t>(count));
    for (int i = 0; i < count_out; ++i) {
        const double centre = begin + (first_out + i + 0.5) * scale;
        const int first = std::clamp(static_cast<int>(centre - width + 0.5), 0, in - 1);
        const int end = std::clamp(static_cast<int>(centre + width + 0.5), first + 1, in);
        double sum = 0.0;
        for (int x = first; x < end; ++x) {
            const double weight = std::max(0.0, 1.0 - std::abs((x - centre + 0.5) * (1.0 / width)));
            exact[static_cast<std::size_t>(x - first)] = weight;
            sum += weight;
        }
        if (sum == 0.0) sum = exact[0] = 1.0;  // a box beyond the last pixel by rounding
        std::int32_t* weights = memory.weights.data() + static_cast<std::ptrdiff_t>(i) * count;
        for (int k = 0; k < end - first; ++k)
            weights[k] = static_cast<std::int32_t>(0.5 + exact[static_cast<std::size_t>(k)] / sum *
                                                             (1 << kWeightBits));
        memory.firsts[static_cast<std::size_t>(i)] = first;
    }
    return {count, memory.weights.data(), memory.firsts.data()};
}

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

/// Three channels and one of nothing.
using Bytes4 = std::uint8_t __attribute__((vector_size(4)));
using Ints4 = std::int32_t __attribute__((vector_size(16)));

template <std::size_t kSize>
Ints4 pixel_at(const std::uint8_t* bytes) {
    Bytes4 pixel = {};
    std::memcpy(&pixel, bytes, kSize);
    return __builtin_convertvector(pixel, Ints4);
}

TUNE_CLONED void resize_colours(const std::uint8_t* from, int in, int pixel_stride,
                                const Taps& taps, int out, std::uint8_t* to) {
    for (int i = 0; i < out; ++i, to += 3) {
        const std::int32_t* weights = taps.weights + static_cast<std::ptrdiff_t>(i) * taps.count;
        const int first = taps.firsts[i];
        const int last = std::min(taps.count, in - first) - 1;
        const std::uint8_t* pixel = from + static_cast<std::ptrdiff_t>(first) * pixel_stride;
        Ints4 sums = {kHalf, kHalf, kHalf, 0};
        // Four bytes are loaded at once, but never beyond the last pixel.
        for (int k = 0; k < last; ++k, pixel += pixel_stride)
            sums += weights[k] * pixel_at<4>(pixel);
        sums += weights[last] * pixel_at<3>(pixel);
        for (int c = 0; c < 3; ++c) to[c] = rounded(sums[c]);
    }
}

TUNE_CLONED void resize_grey(const std::uint8_t* from, int in, int pixel_stride, const Taps& taps,
                             int out, std::uint8_t* to) {
    for (int i = 0; i < out; ++i) {
        const std::int32_t* weights = taps.weights + static_cast<std::ptrdiff_t>(i) * taps.count;
        const int first = taps.firsts[i];
        const int count = std::min(taps.count, in - first);
        const std::uint8_t* pixel = from + static_cast<std::ptrdiff_t>(first) * pixel_stride;
        std::int32_t sum = kHalf;
        for (int k = 0; k < count; ++k, pixel += pixel_stride) sum += weights[k] * *pixel;
        to[i] = rounded(sum);
    }
}

/// Row i of the result from rows of `row_bytes` bytes, `stride` apart.
TUNE_CLONED void resize_column(const std::uint8_t* from, std::ptrdiff_t stride,
                               std::size_t row_bytes, int rows, const Taps& taps, int i,
                               std::uint8_t* to) {
    const std::int32_t* weights = taps.weights + static_cast<std::ptrdiff_t>(i) * taps.count;
    const int first = taps.firsts[i];
    const int count = std::min(taps.count, rows - first);
    constexpr std::size_t kChunk = 256;
    std::int32_t sums[kChunk];
    for (std::size_t begin = 0; begin < row_bytes; begin += kChunk) {
        const std::size_t size = std::min(kChunk, row_bytes - begin);
        std::fill_n(sums, size, kHalf);
        const std::uint8_t* row = from + first * stride + begin;
        for (int k = 0; k < count; ++k, row += stride)
            for (std::size_t x = 0; x < size; ++x) sums[x] += weights[k] * row[x];
        for (std::size_t x = 0; x < size; ++x) to[begin + x] = rounded(sums[x]);
    }
}

void resize_row(const PixelView& pixels, const std::uint8_t* row, int columns, const Taps& taps,
                int out, std::uint8_t* to) {
    if (pixels.channels == 1)
        resize_grey(row, columns, pixels.pixel_stride, taps, out, to);
    else
        resize_colours(row, columns, pixels.pixel_stride, taps, out, to);
}

/// A run of rows or columns.
struct Range {
    int begin = 0;
    int end = 0;
};

/// What the window of one direction is made from; a little more does no harm.
Range needed_of(int in, double begin, double extent, int out, int window_begin, int window) {
    const double scale = extent / out;
    const double reach = std::max(scale, 1.0) + 1.0;
    const double first = begin + window_begin * scale;
    Range needed;
    needed.begin = std::clamp(static_cast<int>(first - reach), 0, in - 1);
    needed.end = std::clamp(static_cast<int>(std::ceil(first + window * scale + reach)),
                            needed.begin + 1, in);
    return needed;
}

void rows_first(const PixelView& from, const Resampling& wanted, std::uint8_t* to,
                ResampleMemory& memory) {
    const std::size_t row_bytes =
        static_cast<std::size_t>(wanted.window_width) * static_cast<std::size_t>(from.channels);
    const Range needed = needed_of(from.height, wanted.box.top, wanted.box.height, wanted.height,
                                   wanted.window_top, wanted.window_height);
    const int rows = needed.end - needed.begin;
    memory.rows.resize(row_bytes * static_cast<std::size_t>(rows));
    Taps taps = taps_of(from.width, wanted.box.left, wanted.box.width, wanted.width,
                        wanted.window_left, wanted.window_width, memory);
    for (int y = 0; y < rows; ++y)
        resize_row(from, from.data + (needed.begin + y) * from.row_stride, from.width, taps,
                   wanted.window_width,
                   memory.rows.data() + static_cast<std::size_t>(y) * row_bytes);
    taps = taps_of(from.height, wanted.box.top, wanted.box.height, wanted.height, wanted.window_top,
                   wanted.window_height, memory);
    for (int& first : memory.firsts) first -= needed.begin;
    for (int y = 0; y < wanted.window_height; ++y)
        resize_column(memory.rows.data(), static_cast<std::ptrdiff_t>(row_bytes), row_bytes, rows,
                      taps, y, to + static_cast<std::size_t>(y) * row_bytes);
}

void columns_first(const PixelView& from, const Resampling& wanted, std::uint8_t* to,
                   ResampleMemory& memory) {
    const Range needed = needed_of(from.width, wanted.box.left, wanted.box.width, wanted.width,
                                   wanted.window_left, wanted.window_width);
    const int columns = needed.end - needed.begin;
    // Bytes between the channels of one pixel and the next are carried along.
    const std::size_t row_bytes =
        static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(from.pixel_stride) +
        static_cast<std::size_t>(from.channels);
    const std::size_t out_bytes =
        static_cast<std::size_t>(wanted.window_width) * static_cast<std::size_t>(from.channels);
    memory.rows.resize(row_bytes * static_cast<std::size_t>(wanted.window_height));
    Taps taps = taps_of(from.height, wanted.box.top, wanted.box.height, wanted.height,
                        wanted.window_top, wanted.window_height, memory);
    for (int y = 0; y < wanted.window_height; ++y)
        resize_column(from.data + std::ptrdiff_t{needed.begin} * from.pixel_stride, from.row_stride,
                      row_bytes, from.height, taps, y,
                      memory.rows.data() + static_cast<std::size_t>(y) * row_bytes);
    taps = taps_of(from.width, wanted.box.left, wanted.box.width, wanted.width, wanted.window_left,
                   wanted.window_width, memory);
    for (int& first : memory.firsts) first -= needed.begin;
    for (int y = 0; y < wanted.window_height; ++y)
        resize_row(from, memory.rows.data() + static_cast<std::size_t>(y) * row_bytes, columns,
                   taps, wanted.window_width, to + static_cast<std::size_t>(y) * out_bytes);
}

/// Whether each output pixel is one stored pixel.
bool is_plain_copy(const PixelView& from, const Resampling& wanted) {
    const ImageBox& box = wanted.box;
    const double left = box.left + wanted.window_left;
    const double top = box.top + wanted.window_top;
    return box.width == wanted.width && box.height == wanted.height && left == std::floor(left) &&
           top == std::floor(top) && left >= 0 && top >= 0 &&
           left + wanted.window_width <= from.width && top + wanted.window_height <= from.height;
}

void copy_window(const PixelView& from, const Resampling& wanted, std::uint8_t* to) {
    const auto left = static_cast<int>(wanted.box.left) + wanted.window_left;
    const auto top = static_cast<int>(wanted.box.top) + wanted.window_top;
    const auto row_bytes =
        static_cast<std::size_t>(wanted.window_width) * static_cast<std::size_t>(from.channels);
    for (int y = 0; y < wanted.window_height; ++y, to += row_bytes) {
        const std::uint8_t* pixel =
            from.data + (top + y) * from.row_stride + std::ptrdiff_t{left} * from.pixel_stride;
        if (from.pixel_stride == from.channels) {
            std::memcpy(to, pixel, row_bytes);
            continue;
        }
        for (int x = 0; x < wanted.window_width; ++x, pixel += from.pixel_stride)
            std::memcpy(to + std::ptrdiff_t{x} * from.channels, pixel,
                        static_cast<std::size_t>(from.channels));
    }
}

}  // namespace

void resize(const PixelView& from, const Resampling& wanted, std::uint8_t* to,
            ResampleMemory& memory) {
    if (is_plain_copy(from, wanted)) return copy_window(from, wanted, to);
    const double rows_less = wanted.box.height - wanted.height;
    const double columns_less = wanted.box.width - wanted.width;
    if (rows_less > 0 && rows_less > 2 * columns_less)
        columns_first(from, wanted, to, memory);
    else
        rows_first(from, wanted, to, memory);
}

}  // namespace tune::loader
