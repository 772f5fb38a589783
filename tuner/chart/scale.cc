// Values on an axis: its range, its round ticks, their labels.
//
// Ticks stand at multiples of the smallest of 1, 2, 2.5, 5, 10 times a power of ten (of durations:
// of the units of a clock) that leaves about as many as are wanted; on a logarithmic axis at powers
// of ten, with 2 and 5 between them within three decades and every digit within one. Labels have as
// many decimals as the step needs, no more: neighbours differ in what is shown.
//
// Metrics can be anything, so the arithmetic must not overflow: differences are taken of halves,
// ratios of logarithms, and ranges are clamped to finite doubles. Equal values get a range around
// them, no values a range of their own, so that there is always an axis to draw.

#include "tuner/chart/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tune::chart {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// Room between the outermost value and the frame, of the range.
constexpr double kRoom = 0.04;

/// The smallest of 1, 2, 2.5, 5, 10 times a power of ten that is at least `step`.
double round_step(double step, bool is_whole) {
    const double power = std::pow(10, std::floor(std::log10(step)));
    for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
        const double rounded = factor * power;
        if (is_whole && (rounded < 1 || rounded != std::floor(rounded))) continue;
        if (rounded >= step * (1 - 1e-9)) return rounded;
    }
    return std::max(10 * power, is_whole ? 1.0 : 0.0);
}

double round_seconds(double step) {
    for (const double one : {1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0,
                             1800.0, 3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0})
        if (one >= step) return one;
    return 86400 * round_step(step / 86400, true);
}

std::string decimal_label(double value, double step) {
    const double largest = std::max(std::abs(value), std::abs(step));
    if (largest >= 1e6 || step < 1e-5) return short_number(value);
    int decimals = 0;
    for (double at = step; decimals < 8 && std::abs(at - std::round(at)) > 1e-6 * at; at *= 10)
        ++decimals;
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value == 0 ? 0.0 : value);
    return text;
}

/// Of a tick: all of an axis have the same unit and as many digits as their step needs.
std::string duration_tick(double value, double step) {
    if (value == 0 || step >= 1) return duration_label(value);
    return step >= 0.1 ? decimal_label(value, step) + " s"
                       : decimal_label(value * 1000, step * 1000) + " ms";
}

std::vector<Tick> linear_ticks_about(const Axis& axis, std::size_t count) {
    std::vector<Tick> ticks;
    const double range = axis.high / 2 - axis.low / 2;  // halves: the whole may overflow
    double step = range / static_cast<double>(std::max<std::size_t>(count, 1)) * 2;
    if (!(step > 0) || !std::isfinite(step)) return ticks;
    const bool is_duration = axis.kind == ScaleKind::kDuration && step >= 0.5;
    step = is_duration ? round_seconds(step) : round_step(step, axis.is_whole);
    if (!(step > 0) || !std::isfinite(step)) return ticks;
    const double first = std::ceil(axis.low / step - 1e-9);
    for (int i = 0; i <= 100; ++i) {
        const double value = (first + i) * step;
        if (!std::isfinite(value) || value - axis.high > step * 1e-9) break;
        ticks.push_back({value, axis.kind == ScaleKind::kDuration ? duration_tick(value, step)
                                                                  : decimal_label(value, step)});
    }
    return ticks;
}

/// One tick alone says nothing of the scale: rather more than `count` than that.
std::vector<Tick> linear_ticks(const Axis& axis, std::size_t count) {
    std::vector<Tick> ticks;
    for (std::size_t more = 0; ticks.size() < 2 && more < 5; ++more)
        ticks = linear_ticks_about(axis, count + more);
    return ticks;
}

std::vector<Tick> log_ticks(const Axis& axis, std::size_t count) {
    std::vector<Tick> ticks;
    const double low = std::log10(axis.low);
    const double high = std::log10(axis.high);
    const double decades = high - low;
    const auto wanted = static_cast<double>(std::max<std::size_t>(count, 2));
    const double every = std::max(1.0, std::ceil(decades / wanted));
    // Within few decades also at 2 and 5, within less than one at every digit.
    const std::vector<double> within = decades < 1 ? std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9}
                                       : decades < 3 ? std::vector<double>{1, 2, 5}
                                                     : std::vector<double>{1};
    const double first = within.size() > 1 ? std::floor(low) : std::ceil(low - 1e-9);
    for (double power = first; power <= high + 1e-9; power += every)
        for (const double digit : within) {
            const double value = digit * std::pow(10, power);
            if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9))
                ticks.push_back({value, short_number(value)});
        }
    if (ticks.size() < 2) {
        Axis plain = axis;
        plain.kind = ScaleKind::kLinear;
        return linear_ticks(plain, count);
    }
    return ticks;
}

std::vector<Tick> category_ticks(const Axis& axis, std::size_t count) {
    std::vector<Tick> ticks;
    const std::size_t size = axis.categories.size();
    const std::size_t every = count == 0 ? size + 1 : (size + count - 1) / count;
    for (std::size_t i = 0; i < size; i += std::max<std::size_t>(every, 1))
        ticks.push_back({static_cast<double>(i), axis.categories[i]});
    return ticks;
}

}  // namespace

Axis axis_for(std::string title, const std::vector<double>& values, ScaleKind kind) {
    Axis axis{.title = std::move(title), .kind = kind};
    const bool is_log = kind == ScaleKind::kLog;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const double value : values) {
        if (!std::isfinite(value) || (is_log && value <= 0)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    if (low > high) {
        axis.low = is_log ? 0.1 : 0;
        axis.high = is_log ? 10 : 1;
        return axis;
    }
    if (is_log) {
        // By logarithms: the ratio itself may overflow.
        const double logs = std::log(high) - std::log(low);
        const double room = logs < 1e-9 ? 2 : std::exp(logs * kRoom);
        axis.low = std::max(low / room, std::numeric_limits<double>::denorm_min());
        axis.high = std::min(high * room, std::numeric_limits<double>::max());
        return axis;
    }
    constexpr double kEnd = std::numeric_limits<double>::max();
    double room = (high / 2 - low / 2) * 2 * kRoom;
    if (low == high) room = low == 0 ? 0.5 : std::abs(low) * 0.05;
    axis.low = std::max(low - room, -kEnd);
    axis.high = std::min(high + room, kEnd);
    return axis;
}

Axis category_axis(std::string title, std::vector<std::string> categories) {
    const double count = static_cast<double>(std::max<std::size_t>(categories.size(), 1));
    return {.title = std::move(title),
            .kind = ScaleKind::kCategory,
            .low = -0.5,
            .high = count - 0.5,
            .categories = std::move(categories)};
}

double unit_of(const Axis& axis, double value) {
    if (!std::isfinite(value)) return kNaN;
    if (axis.kind == ScaleKind::kLog) {
        if (value <= 0) return kNaN;
        return (std::log(value) - std::log(axis.low)) / (std::log(axis.high) - std::log(axis.low));
    }
    return (value / 2 - axis.low / 2) / (axis.high / 2 - axis.low / 2);
}

std::vector<Tick> ticks_of(const Axis& axis, std::size_t count) {
    if (axis.kind == ScaleKind::kCategory) return category_ticks(axis, count);
    if (axis.kind == ScaleKind::kLog) return log_ticks(axis, count);
    return linear_ticks(axis, count);
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

std::string duration_label(double seconds) {
    char text[48];
    const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e15)));
    if (seconds > 0 && seconds < 0.0995)
        std::snprintf(text, sizeof text, "%.3g ms", seconds * 1000);
    else if (seconds < 10 && seconds != static_cast<double>(whole))
        std::snprintf(text, sizeof text, "%.1f s", seconds);
    else if (whole < 60)
        std::snprintf(text, sizeof text, "%lld s", whole);
    else if (whole < 3600)
        std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
    else
        std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                      whole % 60);
    return text;
}

}  // namespace tune::chart
