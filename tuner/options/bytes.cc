#include "tuner/options/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

struct ByteUnit {
    std::string_view name;
    std::int64_t bytes;
};

constexpr std::int64_t kKibi = 1024;

// The binary ones first, the largest before the others: those in which sizes are written.
constexpr std::array<ByteUnit, 4> kBinary = {ByteUnit{"TiB", kKibi* kKibi* kKibi* kKibi},
                                             {"GiB", kKibi* kKibi* kKibi},
                                             {"MiB", kKibi* kKibi},
                                             {"KiB", kKibi}};
constexpr std::array<ByteUnit, 10> kOther = {ByteUnit{"T", kBinary[0].bytes},
                                             {"G", kBinary[1].bytes},
                                             {"M", kBinary[2].bytes},
                                             {"K", kBinary[3].bytes},
                                             {"TB", 1'000'000'000'000},
                                             {"GB", 1'000'000'000},
                                             {"MB", 1'000'000},
                                             {"kB", 1'000},
                                             {"B", 1},
                                             {"", 1}};

Error bad_bytes(std::string_view text) {
    return invalid_parameter("expected an amount of memory such as 8GiB, 512M or 80GB, found " +
                             in_quotes(text));
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
    double amount = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, ec] = std::from_chars(text.data(), end, amount, std::chars_format::fixed);
    if (ec != std::errc() || !(amount >= 0)) return bad_bytes(text);
    std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    std::int64_t factor = 0;
    for (const ByteUnit& known : kBinary)
        if (known.name == unit) factor = known.bytes;
    for (const ByteUnit& known : kOther)
        if (known.name == unit) factor = known.bytes;
    if (factor == 0) return bad_bytes(text);
    const double bytes = amount * static_cast<double>(factor);
    if (bytes > static_cast<double>(kBytesMax))
        return invalid_parameter("an amount of memory is at most 1024TiB");
    return static_cast<std::int64_t>(std::llround(bytes));
}

std::string bytes_text(std::int64_t bytes) {
    for (const ByteUnit& unit : kBinary)
        if (bytes != 0 && bytes % unit.bytes == 0)
            return std::to_string(bytes / unit.bytes) + std::string(unit.name);
    return std::to_string(bytes) + "B";
}

std::string rounded_bytes_text(std::int64_t bytes) {
    for (const ByteUnit& unit : kBinary) {
        if (bytes < unit.bytes) continue;
        char text[32];
        std::snprintf(text, sizeof text, "%.3g",
                      static_cast<double>(bytes) / static_cast<double>(unit.bytes));
        return std::string(text) + " " + std::string(unit.name);
    }
    return std::to_string(bytes) + " B";
}

}  // namespace tune::tuner
