#include "loader/tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace tune::loader {

Progress::Progress()
    : next_(Clock::now() + std::chrono::seconds(1)), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
    if (has_shown_ && is_terminal_) std::fputs("\r\x1b[K", stderr);
}

bool Progress::is_due() {
    return Clock::now() >= next_;
}

void Progress::show(std::string_view text) {
    next_ = Clock::now() + std::chrono::milliseconds(is_terminal_ ? 200 : 10'000);
    std::fprintf(stderr, is_terminal_ ? "\r\x1b[K%.*s" : "%.*s\n", static_cast<int>(text.size()),
                 text.data());
    std::fflush(stderr);
    has_shown_ = true;
}

std::string grouped(std::int64_t number) {
    std::string text = std::to_string(number);
    const std::size_t first = number < 0 ? 1 : 0;
    for (std::size_t at = text.size(); at > first + 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

std::string grouped(std::int64_t number, std::string_view one) {
    return grouped(number) + " " + std::string(one) + (number == 1 ? "" : "s");
}

std::string readable_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1000 && unit + 1 < kUnits.size()) {
        value /= 1000;
        ++unit;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
    return text.data();
}

std::string progress_bar(double fraction) {
    constexpr std::size_t kWidth = 20;
    const auto filled = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * kWidth);
    return "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] " +
           percent(fraction);
}

std::string percent(double fraction) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.0f %%", 100 * fraction);
    return text.data();
}

}  // namespace tune::loader
