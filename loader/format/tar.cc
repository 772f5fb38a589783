// Headers follow each other in blocks of 512 bytes. Each is believed only after its checksum, its
// size is compared with what is left of the archive before it is used, and long names (pax records,
// GNU's members of type L) apply to the one member that follows them.

#include "loader/format/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tune::loader {
namespace {

constexpr std::uint64_t kBlock = 512;
/// A long name or a list of pax records; a path has 4,096 bytes at most.
constexpr std::uint64_t kExtraBytesMax = 1 << 20;

using Block = std::array<std::byte, kBlock>;

std::string_view field(const Block& block, std::size_t at, std::size_t length) {
    const std::string_view text(reinterpret_cast<const char*>(block.data()) + at, length);
    return text.substr(0, text.find('\0'));
}

/// Octal digits, or the big-endian number of GNU tar when the first bit is set.
std::optional<std::uint64_t> number(const Block& block, std::size_t at, std::size_t length) {
    if ((std::to_integer<unsigned>(block[at]) & 0x80U) != 0) {
        std::uint64_t value = std::to_integer<unsigned>(block[at]) & 0x7fU;
        for (std::size_t i = 1; i < length; ++i) {
            if (value >> 54 != 0) return std::nullopt;
            value = value << 8 | std::to_integer<unsigned>(block[at + i]);
        }
        return value;
    }
    std::uint64_t value = 0;
    bool has_digits = false;
    const std::string_view text(reinterpret_cast<const char*>(block.data()) + at, length);
    for (const char digit : text) {
        if (digit == ' ' && !has_digits) continue;
        if (digit == ' ' || digit == '\0') break;
        if (digit < '0' || digit > '7') return std::nullopt;
        value = value * 8 + static_cast<unsigned>(digit - '0');
        has_digits = true;
    }
    return value;
}

bool has_good_checksum(const Block& block) {
    std::uint64_t sum = 8 * ' ';
    for (std::size_t i = 0; i < kBlock; ++i)
        if (i < 148 || i >= 156) sum += std::to_integer<unsigned>(block[i]);
    return number(block, 148, 8) == sum;
}

/// What pax records and long names say of the member that follows them.
struct Overrides {
    std::string name = {};
    std::optional<std::uint64_t> bytes = {};
};

/// "25 path=some/file.jpg\n" and so on.
bool read_pax(std::string_view text, Overrides& overrides) {
    while (!text.empty()) {
        std::size_t length = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
        const auto digits = static_cast<std::size_t>(parsed.ptr - text.data());
        if (parsed.ec != std::errc{} || length > text.size() || length < digits + 3 ||
            text[digits] != ' ' || text[length - 1] != '\n')
            return false;
        const std::string_view record = text.substr(digits + 1, length - digits - 2);
        text.remove_prefix(length);
        const std::size_t equals = record.find('=');
        if (equals == std::string_view::npos) return false;
        const std::string_view value = record.substr(equals + 1);
        if (record.substr(0, equals) == "path") overrides.name = value;
        if (record.substr(0, equals) == "size") {
            std::uint64_t bytes = 0;
            if (std::from_chars(value.data(), value.data() + value.size(), bytes).ec != std::errc{})
                return false;
            overrides.bytes = bytes;
        }
    }
    return true;
}

bool names_a_member(const std::string& name) {
    if (name.empty() || name.front() == '/' || name.find('\0') != std::string::npos) return false;
    const std::filesystem::path path(name);
    return std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

std::string name_of(const Block& block) {
    std::string name(field(block, 0, 100));
    const bool is_posix = field(block, 257, 6) == "ustar";
    const std::string_view prefix = is_posix ? field(block, 345, 155) : std::string_view{};
    return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

class Lister {
public:
    Lister(std::uint64_t bytes, const ReadArchive& read) : bytes_(bytes), read_(read) {}

    Result<std::vector<TarMember>> run() {
        while (at_ + kBlock <= bytes_) {
            Block block;
            TUNE_TRY_VOID(read_(at_, block));
            // Blocks of zeros end an archive; what follows is padding.
            if (std::all_of(block.begin(), block.end(),
                            [](std::byte b) { return b == std::byte{0}; }))
                return std::move(members_);
            TUNE_TRY_VOID(take(block));
        }
        if (at_ < bytes_) return damaged("the archive is cut off");
        return std::move(members_);
    }

private:
    [[nodiscard]] Error damaged(std::string what) const {
        return data_loss(std::move(what) + ", at byte " + std::to_string(at_));
    }

    Result<void> take(const Block& block) {
        if (!has_good_checksum(block)) return damaged("a header whose checksum is wrong");
        std::optional<std::uint64_t> size = number(block, 124, 12);
        const auto type = std::to_integer<char>(block[156]);
        const bool is_extra = type == 'x' || type == 'g' || type == 'L' || type == 'K';
        if (!is_extra && overrides_.bytes) size = overrides_.bytes;
        const std::uint64_t begin = at_ + kBlock;
        if (!size || *size > bytes_ - begin)
            return damaged("a member that ends beyond the end of the archive");
        if (is_extra) {
            TUNE_TRY_VOID(take_extra(type, begin, *size));
        } else {
            std::string name = overrides_.name.empty() ? name_of(block) : overrides_.name;
            overrides_ = {};
            while (name.starts_with("./")) name.erase(0, 2);
            if (type == '0' || type == '\0' || type == '7') {
                if (!names_a_member(name))
                    return damaged("the name '" + name + "' leads out of the archive");
                members_.push_back({std::move(name), begin, *size});
            } else if (type != '1' && type != '2' && type != '5') {
                return damaged("a member of an unknown kind");
            }
        }
        const std::uint64_t padded = (*size + kBlock - 1) / kBlock * kBlock;
        at_ = begin + std::min(padded, bytes_ - begin);
        return {};
    }

    Result<void> take_extra(char type, std::uint64_t begin, std::uint64_t size) {
        if (type == 'g' || type == 'K') return {};
        if (size > kExtraBytesMax) return damaged("a name of impossible length");
        std::string text(static_cast<std::size_t>(size), '\0');
        TUNE_TRY_VOID(read_(begin, std::as_writable_bytes(std::span(text.data(), text.size()))));
        if (type == 'L')
            overrides_.name = text.substr(0, text.find('\0'));
        else if (!read_pax(text, overrides_))
            return damaged("damaged pax records");
        return {};
    }

    std::uint64_t bytes_;
    const ReadArchive& read_;
    std::uint64_t at_ = 0;
    Overrides overrides_;
    std::vector<TarMember> members_;
};

}  // namespace

Result<std::vector<TarMember>> list_tar(std::uint64_t bytes, const ReadArchive& read) {
    return Lister(bytes, read).run();
}

}  // namespace tune::loader
