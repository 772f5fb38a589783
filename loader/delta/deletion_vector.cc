// The portable Roaring format (RoaringFormatSpec): a bitmap of 64 bits is a number of bitmaps of 32
// bits, each with the upper half of its values; a bitmap of 32 bits is a list of containers of up
// to 65,536 values, which are runs, arrays or plain bits. Nothing in it is trusted: every length is
// compared with the bytes left, values must ascend, and their number may not exceed the one stated.

#include "loader/delta/deletion_vector.h"

#include <zlib.h>

#include <array>
#include <cstring>

#include "base/text/hex.h"

namespace tune::loader {
namespace {

constexpr std::uint32_t kMagic = 1681511377;
constexpr std::uint32_t kCookieWithRuns = 12347;
constexpr std::uint32_t kCookie = 12346;
constexpr std::uint32_t kOffsetsFrom = 4;  // containers from which on runs' bitmaps have offsets
constexpr std::size_t kBitsetBytes = 8192;
constexpr std::uint32_t kArrayMax = 4096;
/// 8 bytes each: 1.6 GB. A file has far fewer rows.
constexpr std::int64_t kValuesMax = 200'000'000;

constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::size_t kUuidChars = 20;

class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] std::size_t position() const { return at_; }
    [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

    template <class Number>
    bool take(Number& number) {
        if (left() < sizeof number) return false;
        std::memcpy(&number, bytes_.data() + at_, sizeof number);
        at_ += sizeof number;
        return true;
    }

    bool take(std::size_t count, std::span<const std::byte>& part) {
        if (left() < count) return false;
        part = bytes_.subspan(at_, count);
        at_ += count;
        return true;
    }

private:
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
};

std::uint16_t u16_at(std::span<const std::byte> bytes, std::size_t index) {
    std::uint16_t value = 0;
    std::memcpy(&value, bytes.data() + 2 * index, sizeof value);
    return value;
}

/// Collects ascending values; false when one is out of order or there are too many.
class Values {
public:
    explicit Values(std::int64_t count_max) : count_max_(static_cast<std::size_t>(count_max)) {}

    bool add(std::uint64_t value) {
        if (values_.size() >= count_max_ || (!values_.empty() && value <= values_.back()))
            return false;
        values_.push_back(value);
        return true;
    }
    [[nodiscard]] std::size_t size() const { return values_.size(); }
    std::vector<std::uint64_t> take() { return std::move(values_); }

private:
    std::size_t count_max_;
    std::vector<std::uint64_t> values_;
};

struct Container {
    std::uint64_t base = 0;
    std::uint32_t cardinality = 0;
    bool is_run = false;
};

bool read_runs(Reader& reader, std::uint64_t base, Values& values) {
    std::uint16_t count = 0;
    std::span<const std::byte> runs;
    if (!reader.take(count) || !reader.take(std::size_t{count} * 4, runs)) return false;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t begin = u16_at(runs, 2 * i);
        const std::uint32_t length = u16_at(runs, 2 * i + 1);
        if (begin + length > 0xffff) return false;
        for (std::uint32_t k = 0; k <= length; ++k)
            if (!values.add(base + begin + k)) return false;
    }
    return true;
}

bool read_array(Reader& reader, const Container& container, Values& values) {
    std::span<const std::byte> array;
    if (!reader.take(std::size_t{container.cardinality} * 2, array)) return false;
    for (std::size_t i = 0; i < container.cardinality; ++i)
        if (!values.add(container.base + u16_at(array, i))) return false;
    return true;
}

bool read_bits(Reader& reader, std::uint64_t base, Values& values) {
    std::span<const std::byte> bits;
    if (!reader.take(kBitsetBytes, bits)) return false;
    for (std::size_t byte = 0; byte < kBitsetBytes; ++byte) {
        const auto set = static_cast<unsigned>(bits[byte]);
        for (unsigned bit = 0; set >> bit != 0; ++bit)
            if (((set >> bit) & 1U) != 0 && !values.add(base + 8 * byte + bit)) return false;
    }
    return true;
}

/// One bitmap of 32 bits, its values above `base`.
bool read_bitmap(Reader& reader, std::uint64_t base, Values& values) {
    std::uint32_t cookie = 0;
    if (!reader.take(cookie)) return false;
    const bool has_runs = (cookie & 0xffff) == kCookieWithRuns;
    std::uint32_t count = (cookie >> 16) + 1;
    if (!has_runs && (cookie != kCookie || !reader.take(count))) return false;
    if (count > 65536) return false;
    std::span<const std::byte> run_flags;
    if (has_runs && !reader.take((std::size_t{count} + 7) / 8, run_flags)) return false;
    std::span<const std::byte> headers;
    std::span<const std::byte> offsets;
    if (!reader.take(std::size_t{count} * 4, headers)) return false;
    if ((!has_runs || count >= kOffsetsFrom) && !reader.take(std::size_t{count} * 4, offsets))
        return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        Container container;
        container.base = base + (std::uint64_t{u16_at(headers, 2 * std::size_t{i})} << 16);
        container.cardinality = std::uint32_t{u16_at(headers, 2 * std::size_t{i} + 1)} + 1;
        container.is_run =
            has_runs && ((static_cast<unsigned>(run_flags[i / 8]) >> (i % 8)) & 1U) != 0;
        const std::size_t before = values.size();
        const bool is_good = container.is_run ? read_runs(reader, container.base, values)
                             : container.cardinality <= kArrayMax
                                 ? read_array(reader, container, values)
                                 : read_bits(reader, container.base, values);
        if (!is_good || values.size() - before != container.cardinality) return false;
    }
    return true;
}

std::uint32_t big_endian(std::span<const std::byte> bytes) {
    std::uint32_t value = 0;
    for (const std::byte byte : bytes.first(4)) value = value << 8 | std::uint32_t(byte);
    return value;
}

Result<std::vector<std::uint64_t>> checked_rows(const DeletionVector& vector,
                                                std::span<const std::byte> data) {
    if (vector.cardinality < 0 || vector.cardinality > kValuesMax)
        return data_loss("a deletion vector of " + std::to_string(vector.cardinality) + " rows");
    TUNE_TRY(rows, parse_roaring(data, vector.cardinality));
    if (rows.size() != static_cast<std::size_t>(vector.cardinality))
        return data_loss("the deletion vector holds " + std::to_string(rows.size()) +
                         " rows, the log states " + std::to_string(vector.cardinality));
    return rows;
}

}  // namespace

std::string DeletionVector::unique_id() const {
    std::string id = std::string(1, storage) + path_or_inline;
    if (offset) id += "@" + std::to_string(*offset);
    return id;
}

Result<std::string> decode_z85(std::string_view text) {
    if (text.size() % 5 != 0)
        return data_loss("a Z85 text of " + std::to_string(text.size()) + " characters");
    std::string bytes;
    bytes.reserve(text.size() / 5 * 4);
    for (std::size_t at = 0; at < text.size(); at += 5) {
        std::uint64_t value = 0;
        for (const char character : text.substr(at, 5)) {
            const std::size_t digit = kZ85.find(character);
            if (digit == std::string_view::npos) return data_loss("a character that Z85 has not");
            value = value * 85 + digit;
        }
        if (value > 0xffffffffU) return data_loss("a Z85 group beyond 32 bits");
        for (int shift = 24; shift >= 0; shift -= 8)
            bytes.push_back(static_cast<char>((value >> shift) & 0xff));
    }
    return bytes;
}

Result<std::string> deletion_file(const DeletionVector& vector) {
    if (vector.storage != 'u')
        return Error{Code::kNotImplemented, "a deletion vector stored as '" +
                                                std::string(1, vector.storage) +
                                                "' lies outside of the table"};
    const std::string_view text = vector.path_or_inline;
    if (text.size() < kUuidChars) return data_loss("a deletion vector without its UUID");
    const std::string_view prefix = text.substr(0, text.size() - kUuidChars);
    if (prefix.find("..") != std::string_view::npos || prefix.starts_with('/'))
        return data_loss("a deletion vector that lies outside of the table");
    TUNE_TRY(uuid, decode_z85(text.substr(text.size() - kUuidChars)));
    std::string name;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) name.push_back('-');
        append_hex(name, uuid[i]);
    }
    return (prefix.empty() ? "" : std::string(prefix) + "/") + "deletion_vector_" + name + ".bin";
}

BlockRange deletion_block(const DeletionVector& vector) {
    const std::int64_t offset = vector.offset.value_or(1);
    return {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(vector.bytes) + 8};
}

Result<std::vector<std::uint64_t>> rows_of_block(const DeletionVector& vector,
                                                 std::span<const std::byte> block) {
    if (vector.bytes < 0 || block.size() != static_cast<std::uint64_t>(vector.bytes) + 8)
        return data_loss("a deletion vector that is cut off");
    const std::span<const std::byte> data = block.subspan(4, block.size() - 8);
    if (big_endian(block) != data.size())
        return data_loss("the deletion vector's file states " + std::to_string(big_endian(block)) +
                         " bytes, the log " + std::to_string(data.size()));
    const auto checksum = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
    if (checksum != big_endian(block.last(4)))
        return data_loss("the deletion vector's checksum is not that of its bytes");
    return checked_rows(vector, data);
}

Result<std::vector<std::uint64_t>> rows_inline(const DeletionVector& vector) {
    TUNE_TRY(bytes, decode_z85(vector.path_or_inline));
    if (vector.bytes < 0 || static_cast<std::uint64_t>(vector.bytes) > bytes.size())
        return data_loss("an inline deletion vector that is cut off");
    const auto size = static_cast<std::size_t>(vector.bytes);
    return checked_rows(vector, std::as_bytes(std::span(bytes.data(), size)));
}

Result<std::vector<std::uint64_t>> parse_roaring(std::span<const std::byte> bytes,
                                                 std::int64_t values_max) {
    Reader reader(bytes);
    const auto damaged = [&](const char* what) {
        return data_loss(std::string("a deletion vector ") + what + ", at its byte " +
                         std::to_string(reader.position()));
    };
    std::uint32_t magic = 0;
    std::uint64_t count = 0;
    if (!reader.take(magic) || magic != kMagic) return damaged("without its magic number");
    // A bitmap takes 8 bytes at least.
    if (!reader.take(count) || count > reader.left() / 8) return damaged("of impossible length");
    Values values(values_max);
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint32_t key = 0;
        if (!reader.take(key) || key > 0x7fffffff) return damaged("with a damaged key");
        if (!read_bitmap(reader, std::uint64_t{key} << 32, values))
            return damaged("with a damaged bitmap");
    }
    if (reader.left() != 0) return damaged("with bytes behind its end");
    return values.take();
}

}  // namespace tune::loader
