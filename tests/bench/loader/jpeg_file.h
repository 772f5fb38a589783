#pragma once
// A JPEG file for benchmarks, made rather than found: waves with noise on them, of quality 90.

#include <string>

namespace tune::loader {

/// Of 500 x 375 pixels, three colours; each number gives another one.
[[nodiscard]] std::string jpeg_file(int number);

inline constexpr int kJpegWidth = 500;
inline constexpr int kJpegHeight = 375;

}  // namespace tune::loader
