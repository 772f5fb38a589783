#pragma once
// What becomes of a column's stored values on their way into a batch: images are decoded, cropped,
// resized and normalised; values of varying length are padded.

#include <cstdint>
#include <optional>
#include <vector>

#include "loader/format/dtype.h"

namespace tune::loader {

/// From a stored image to pixels of one size. Random choices are a function of (seed of the order,
/// epoch, sample id, name of the column) and nothing else: neither threads, nor ranks, nor resuming
/// change them. Stored may be: JPEG and PNG files, mosaicml-streaming's pil (modes L, RGB, RGBA),
/// and arrays of uint8 [height, width] or [height, width, 1, 3 or 4].
struct ImageOptions {
    enum class Fit {
        kStretch,           ///< the whole image, whatever its shape
        kCentreCrop,        ///< the shorter side becomes `shorter_side`; the middle is cut out
        kRandomCrop,        ///< `border` black pixels all around (0: none), then a random place
        kRandomResizedCrop  ///< a random part of area and aspect ratio as below
    };
    enum class Layout { kHwc, kChw };

    /// Pixels of the result; both > 0.
    std::int64_t height = 0;
    std::int64_t width = 0;
    /// 3: red, green, blue; 1: luminance (ITU-R 601). Transparency is dropped.
    int channels = 3;
    Fit fit = Fit::kStretch;
    /// kCentreCrop; 0: the smaller of height and width. kRandomCrop: 0: the size as stored.
    std::int64_t shorter_side = 0;
    std::int64_t border = 0;
    /// kRandomResizedCrop: parts of the area, and ratios of width to height.
    double area_min = 0.08;
    double area_max = 1.0;
    double ratio_min = 3.0 / 4.0;
    double ratio_max = 4.0 / 3.0;
    /// Probability of a mirror image, left for right.
    double flip = 0.0;
    /// kUint8, kFloat32 or kFloat16. As a float, x / 255, then minus mean, divided by deviation.
    Dtype dtype = Dtype::kUint8;
    /// Of each channel, or empty. Floats only.
    std::vector<double> mean = {};
    std::vector<double> deviation = {};
    Layout layout = Layout::kHwc;
    /// JPEG is decoded at 1/2, 1/4 or 1/8 where that is still larger than the result: up to four
    /// times as fast, and very slightly different pixels.
    bool decodes_scaled = true;
};

/// From values of varying length to rows of one: cut off or filled up to `length`. Stored may be
/// lists of a table, arrays of varying shape in MDS (their elements in C order), bytes and texts
/// (as uint8). The column becomes [length], and another one, "NAME_mask" (uint8, [length]), holds 1
/// for each element that was stored.
struct PadOptions {
    std::int64_t length = 0;  ///< > 0
    double value = 0.0;
    /// Fills up, and cuts off, at the beginning.
    bool at_start = false;
    /// A value longer than `length` is cut; false: it is an error that names the sample.
    bool cuts = true;
    /// Bytes are elements of this type.
    std::optional<Dtype> bytes_as = {};
};

}  // namespace tune::loader
