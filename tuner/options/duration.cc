#include "tuner/options/duration.h"

#include <array>
#include <charconv>
#include <cmath>

#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t ms;
};

constexpr std::array<Unit, 5> kUnits = {
    Unit{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};

Error bad_duration(std::string_view text) {
    return invalid_parameter("expected a duration such as 90s, 1h30m, 250ms or 2d, found " +
                             in_quotes(text));
}

}  // namespace

Result<std::int64_t> parse_duration_ms(std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    double total_ms = 0;
    bool bare = false;
    if (at == end) return bad_duration(text);
    while (at != end) {
        double amount = 0;
        const auto [stop, ec] = std::from_chars(at, end, amount, std::chars_format::fixed);
        if (ec != std::errc() || !(amount >= 0) || bare) return bad_duration(text);
        const char* unit_end = stop;
        while (unit_end != end && *unit_end >= 'a' && *unit_end <= 'z') ++unit_end;
        const std::string_view unit(stop, static_cast<std::size_t>(unit_end - stop));
        double unit_ms = 0;
        for (const Unit& known : kUnits)
            if (known.name == unit) unit_ms = static_cast<double>(known.ms);
        if (unit.empty()) {
            bare = true;
            unit_ms = 1000;
        }
        if (unit_ms == 0 || (bare && total_ms > 0)) return bad_duration(text);
        total_ms += amount * unit_ms;
        at = unit_end;
    }
    if (total_ms > static_cast<double>(kDurationMax_ms))
        return invalid_parameter("a duration is at most 3650 days");
    return static_cast<std::int64_t>(std::llround(total_ms));
}

std::string duration_text(std::int64_t duration_ms) {
    if (duration_ms == 0) return "0s";
    std::string text;
    for (const Unit& unit : kUnits) {
        if (const std::int64_t amount = duration_ms / unit.ms; amount > 0) {
            text += std::to_string(amount) + std::string(unit.name);
            duration_ms -= amount * unit.ms;
        }
    }
    return text;
}

}  // namespace tune::tuner
