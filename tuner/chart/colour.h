#pragma once
// The colours of charts: those of the web page (web/src/styles/tokens.css), each in a light and a
// dark form with at least 3:1 against its background; a ramp that reads on both and for people who
// see fewer colours (viridis without its darkest part).

#include <cstdint>
#include <string>

namespace tune::chart {

enum class Role {
    kSeries0,
    kSeries1,
    kSeries2,
    kSeries3,
    kSeries4,
    kSeries5,
    kSeries6,
    kComplete,
    kRunning,
    kPruned,
    kFailed,
    kCancelled,
    kQueued,
    kBest,
    kText,
    kMuted,
    kLine,
    kSurface
};
inline constexpr int kRoleCount = 18;

enum class Theme { kLight, kDark };

/// 0xRRGGBB.
[[nodiscard]] std::uint32_t rgb_of(Role role, Theme theme);
/// The ramp at 0..1 (clamped), 0xRRGGBB.
[[nodiscard]] std::uint32_t ramp_rgb(double shade);
/// "#0072b2".
[[nodiscard]] std::string hex_text(std::uint32_t rgb);
/// The nearest of the 256 colours of terminals, 16..255.
[[nodiscard]] int terminal_colour(std::uint32_t rgb);

}  // namespace tune::chart
