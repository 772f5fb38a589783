// Each part is taken off the front of the text or the whole is refused; a date is checked by the
// calendar of <chrono>, so there is no 30 February.

#include "loader/rows/time_value.h"

#include <charconv>
#include <chrono>

#include "base/text/text.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

/// Reads one number of at most `digits_max` digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits_max) {
    int number = 0;
    const std::size_t length = std::min(digits_max, text.size());
    const auto parsed = std::from_chars(text.data(), text.data() + length, number);
    if (parsed.ec != std::errc{} || text.front() == '-') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    return number;
}

bool take(std::string_view& text, char expected) {
    if (text.empty() || text.front() != expected) return false;
    text.remove_prefix(1);
    return true;
}

std::optional<std::int64_t> take_date(std::string_view& text) {
    const auto year = take_number(text, 4);
    if (!year || !take(text, '-')) return std::nullopt;
    const auto month = take_number(text, 2);
    if (!month || !take(text, '-')) return std::nullopt;
    const auto day = take_number(text, 2);
    if (!day) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days(date).time_since_epoch().count();
}

/// ".123456" as nanoseconds.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
    if (!take(text, '.')) return 0;
    std::int64_t value = 0;
    std::int64_t unit = kSecond_ns;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9' && unit > 1) {
        unit /= 10;
        value += unit * (text.front() - '0');
        text.remove_prefix(1);
    }
    if (unit == kSecond_ns) return std::nullopt;
    return value;
}

/// Seconds east of UTC.
std::optional<std::int64_t> take_zone(std::string_view& text) {
    if (text.empty() || take(text, 'Z')) return 0;
    const int sign = text.front() == '-' ? -1 : 1;
    if (!take(text, '+') && !take(text, '-')) return std::nullopt;
    const auto hours = take_number(text, 2);
    if (!hours) return std::nullopt;
    take(text, ':');
    std::int64_t minutes = 0;
    if (!text.empty()) {
        const auto stated = take_number(text, 2);
        if (!stated) return std::nullopt;
        minutes = *stated;
    }
    return sign * (*hours * 3600 + minutes * 60);
}

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text) {
    text = trimmed(text);
    if (text.empty()) return std::nullopt;
    const auto days = take_date(text);
    return text.empty() ? days : std::nullopt;
}

std::optional<std::int64_t> parse_time_ns(std::string_view text) {
    text = trimmed(text);
    if (text.empty()) return std::nullopt;
    const auto days = take_date(text);
    if (!days) return std::nullopt;
    std::int64_t seconds = 0;
    std::int64_t fraction = 0;
    if (take(text, 'T') || take(text, ' ')) {
        if (text.empty()) return std::nullopt;
        const auto hours = take_number(text, 2);
        if (!hours || !take(text, ':') || text.empty()) return std::nullopt;
        const auto minutes = take_number(text, 2);
        if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
        seconds = *hours * 3600 + *minutes * 60;
        if (take(text, ':')) {
            if (text.empty()) return std::nullopt;
            const auto rest = take_number(text, 2);
            if (!rest || *rest > 60) return std::nullopt;
            seconds += *rest;
            const auto parts = take_fraction(text);
            if (!parts) return std::nullopt;
            fraction = *parts;
        }
    }
    const auto zone = take_zone(text);
    if (!zone || !text.empty()) return std::nullopt;
    std::int64_t time_ns = 0;
    if (__builtin_mul_overflow(*days * 86'400 + seconds - *zone, kSecond_ns, &time_ns) ||
        __builtin_add_overflow(time_ns, fraction, &time_ns))
        return std::nullopt;
    return time_ns;
}

}  // namespace tune::loader
