#include "tuner/chart/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tune::chart {
namespace {

struct Pair {
    std::uint32_t light;
    std::uint32_t dark;
};

// In the order of Role.
constexpr std::array<Pair, kRoleCount> kColours = {{{0x0072B2, 0x3D9FE0},
                                                    {0xD55E00, 0xF07C2C},
                                                    {0x009E73, 0x1FC196},
                                                    {0xB8588C, 0xDD8FB9},
                                                    {0xC98500, 0xF0B029},
                                                    {0x3A9BD4, 0x7CCCF7},
                                                    {0x4A4F55, 0xE8DD4C},
                                                    {0x0072B2, 0x3D9FE0},
                                                    {0x2F9BD8, 0x7CCCF7},
                                                    {0xD08700, 0xF0B029},
                                                    {0xD55E00, 0xF07C2C},
                                                    {0x7C8793, 0x7B8896},
                                                    {0xB4BDC7, 0x4A5866},
                                                    {0x008A64, 0x1FC196},
                                                    {0x16202B, 0xE8EDF3},
                                                    {0x4F5D6B, 0xA7B4C1},
                                                    {0xE2E7EC, 0x242E39},
                                                    {0xFFFFFF, 0x141A21}}};

/// Viridis at 0.12, 0.25, ... 0.95 of its length.
constexpr std::array<std::uint32_t, 7> kRamp = {0x472D7B, 0x3B528B, 0x2C728E, 0x21918C,
                                                0x28AE80, 0x7AD151, 0xD2C21F};

int channel(std::uint32_t rgb, int index) {
    return static_cast<int>((rgb >> (16 - 8 * index)) & 0xFF);
}

}  // namespace

std::uint32_t rgb_of(Role role, Theme theme) {
    const Pair pair = kColours[static_cast<std::size_t>(role)];
    return theme == Theme::kLight ? pair.light : pair.dark;
}

std::uint32_t ramp_rgb(double shade) {
    const double at = std::clamp(std::isfinite(shade) ? shade : 0.0, 0.0, 1.0) *
                      static_cast<double>(kRamp.size() - 1);
    const auto first = std::min(static_cast<std::size_t>(at), kRamp.size() - 2);
    const double part = at - static_cast<double>(first);
    std::uint32_t rgb = 0;
    for (int i = 0; i < 3; ++i) {
        const double mixed =
            channel(kRamp[first], i) * (1 - part) + channel(kRamp[first + 1], i) * part;
        rgb = (rgb << 8) | static_cast<std::uint32_t>(std::lround(mixed));
    }
    return rgb;
}

std::string hex_text(std::uint32_t rgb) {
    char text[8];
    std::snprintf(text, sizeof text, "#%06x", rgb & 0xFFFFFF);
    return text;
}

int terminal_colour(std::uint32_t rgb) {
    // The cube's six levels are 0, 95, 135, 175, 215, 255.
    int index = 16;
    int weight = 36;
    for (int i = 0; i < 3; ++i, weight /= 6) {
        const int value = channel(rgb, i);
        index += weight * (value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40);
    }
    return index;
}

}  // namespace tune::chart
