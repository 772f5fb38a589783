#pragma once
// Resizing of 8-bit pixels. Internal to the loader.

#include <cstdint>
#include <vector>

#include "loader/decode/image_file.h"

namespace tune::loader {

/// Memory that resize() uses again.
struct ResampleMemory {
    std::vector<std::uint8_t> rows;
    std::vector<std::int32_t> weights;
    std::vector<int> firsts;
};

/// What resize() makes: `box` of the image becomes width x height pixels, of which the window is
/// written.
struct Resampling {
    ImageBox box;
    int width = 0;
    int height = 0;
    int window_left = 0;
    int window_top = 0;
    int window_width = 0;
    int window_height = 0;
};

/// The window, interleaved, into `to` (window_width * window_height * channels bytes). Triangle
/// filter, widened when the image shrinks, so that no pixel is left out, 22-bit weights, rounded
/// after each direction; rows first, but columns where the height shrinks by more than twice what
/// the width does: the pixels of BILINEAR in Pillow 13.0 (src/libImaging/Resample.c), bit for bit
/// (Pillow 12 has rows first always). REQUIRES: the window's part of `box` lies within
/// `from`, apart from rounding.
void resize(const PixelView& from, const Resampling& wanted, std::uint8_t* to,
            ResampleMemory& memory);

}  // namespace tune::loader
