#pragma once
// Stored images as pixels. Internal to the loader.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// More pixels than this are refused before any is decoded: a small hostile file can claim them.
inline constexpr std::int64_t kImagePixelsMax = std::int64_t{1} << 27;

/// Interleaved pixels of one byte a channel, rows one after the other.
struct PixelView {
    const std::uint8_t* data = nullptr;
    int width = 0;
    int height = 0;
    int channels = 3;
    /// Bytes from one pixel to the next, and from one row to the next.
    int pixel_stride = 3;
    std::ptrdiff_t row_stride = 0;
};

/// A part of an image, in pixels of the stored one; fractions are parts of pixels.
struct ImageBox {
    double left = 0;
    double top = 0;
    double width = 0;
    double height = 0;
};

struct ImageSize {
    int width = 0;
    int height = 0;
};

/// Width and height from the header. Errors: kDataLoss for what is no JPEG or PNG, or damaged, or
/// larger than kImagePixelsMax.
[[nodiscard]] Result<ImageSize> image_file_size(std::span<const std::byte> file);

/// What is to be decoded.
struct ImagePart {
    ImageBox box = {};
    /// How far around `box` pixels count, too.
    double x_reach = 0;
    double y_reach = 0;
    /// > 0: a JPEG may come out smaller, though `box` still has at least so many pixels.
    ImageSize wanted = {};
    /// 1 or 3: what is preferred. A PNG has what it has.
    int channels = 3;
};

/// What decode_image_file gives. The upper left corner of the part's box lies at (left,
/// top) of `pixels`, which are x_scale and y_scale as many as those stored.
struct DecodedImage {
    PixelView pixels = {};
    double left = 0;
    double top = 0;
    double x_scale = 1;
    double y_scale = 1;
};

/// Decodes at least `part` of a JPEG or PNG into `memory` (reused; grows). Errors: kDataLoss saying
/// what is wrong and at which byte.
[[nodiscard]] Result<DecodedImage> decode_image_file(std::span<const std::byte> file,
                                                     const ImagePart& part,
                                                     std::vector<std::uint8_t>& memory);

// For image_file.cc: one a format.
[[nodiscard]] Result<ImageSize> jpeg_size(std::span<const std::byte> file);
[[nodiscard]] Result<DecodedImage> decode_jpeg(std::span<const std::byte> file,
                                               const ImagePart& part,
                                               std::vector<std::uint8_t>& memory);
[[nodiscard]] Result<ImageSize> png_size(std::span<const std::byte> file);
[[nodiscard]] Result<DecodedImage> decode_png(std::span<const std::byte> file,
                                              std::vector<std::uint8_t>& memory);

/// Errors: kDataLoss for more than kImagePixelsMax.
[[nodiscard]] Result<ImageSize> checked_size(std::int64_t width, std::int64_t height);

}  // namespace tune::loader
