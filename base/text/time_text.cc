#include "base/text/time_text.h"

#include <array>
#include <ctime>

namespace tune {
namespace {

constexpr std::int64_t kMsPerSecond = 1000;

/// Also right before 1970, where division rounds the other way.
std::int64_t ms_of_second(std::int64_t time_ms) {
    return (time_ms % kMsPerSecond + kMsPerSecond) % kMsPerSecond;
}

std::time_t second_of(std::int64_t time_ms) {
    return static_cast<std::time_t>((time_ms - ms_of_second(time_ms)) / kMsPerSecond);
}

std::string formatted(const std::tm& parts, const char* format) {
    std::array<char, 64> text{};
    return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace

std::string utc_text(std::int64_t time_ms, const char* format) {
    const std::time_t second = second_of(time_ms);
    std::tm parts{};
    gmtime_r(&second, &parts);
    return formatted(parts, format);
}

std::string local_text(std::int64_t time_ms, const char* format) {
    const std::time_t second = second_of(time_ms);
    std::tm parts{};
    localtime_r(&second, &parts);
    return formatted(parts, format);
}

std::string iso_time(std::int64_t time_ms) {
    return utc_text(time_ms, "%Y-%m-%dT%H:%M:%S.") + microseconds_text(time_ms) + "+00:00";
}

std::string http_date(std::int64_t time_ms) {
    return utc_text(time_ms, "%a, %d %b %Y %H:%M:%S GMT");
}

std::string microseconds_text(std::int64_t time_ms) {
    const std::string ms = std::to_string(ms_of_second(time_ms));
    return std::string(3 - ms.size(), '0') + ms + "000";
}

}  // namespace tune
