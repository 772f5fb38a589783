// Numbers in base 128, and texts with their length: a message is read front to back in one pass,
// and what does not fit within it ends the reading.

#include "tracker/tensorboard/wire.h"

#include <bit>
#include <cstring>

namespace tune::tensorboard {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64Bits = 1;
constexpr std::uint64_t kLength = 2;
constexpr std::uint64_t kFixed32Bits = 5;

void add_varint(std::string& text, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
    text.push_back(static_cast<char>(value));
}

void add_key(std::string& text, std::uint32_t field, std::uint64_t type) {
    add_varint(text, (std::uint64_t{field} << 3) | type);
}

}  // namespace

Message& Message::integer(std::uint32_t field, std::int64_t value) {
    add_key(text_, field, kVarint);
    add_varint(text_, static_cast<std::uint64_t>(value));
    return *this;
}

Message& Message::real(std::uint32_t field, double value) {
    add_key(text_, field, kFixed64Bits);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text_.append(raw, sizeof raw);
    return *this;
}

Message& Message::real32(std::uint32_t field, float value) {
    add_key(text_, field, kFixed32Bits);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text_.append(raw, sizeof raw);
    return *this;
}

Message& Message::bytes(std::uint32_t field, std::string_view value) {
    add_key(text_, field, kLength);
    add_varint(text_, value.size());
    text_ += value;
    return *this;
}

double Field::as_double() const {
    return std::bit_cast<double>(bits);
}

float Field::as_float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

bool take_varint(std::string_view& text, std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (text.empty()) return false;
        const auto byte = static_cast<unsigned char>(text.front());
        text.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

bool FieldReader::varint(std::uint64_t& value) {
    return take_varint(rest_, value);
}

bool FieldReader::fixed(std::size_t bytes, std::uint64_t& value) {
    if (rest_.size() < bytes) return false;
    value = 0;
    std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return true;
}

bool FieldReader::next(Field& field) {
    if (!is_good_ || rest_.empty()) return false;
    std::uint64_t key = 0;
    is_good_ = false;
    if (!varint(key) || (key >> 3) == 0 || (key >> 3) > 0x1fffffff) return false;
    field = {.number = static_cast<std::uint32_t>(key >> 3)};
    switch (key & 7) {
        case kVarint:
            field.kind = Field::Kind::kInteger;
            is_good_ = varint(field.bits);
            break;
        case kFixed64Bits:
            field.kind = Field::Kind::kFixed64;
            is_good_ = fixed(8, field.bits);
            break;
        case kFixed32Bits:
            field.kind = Field::Kind::kFixed32;
            is_good_ = fixed(4, field.bits);
            break;
        case kLength: {
            field.kind = Field::Kind::kBytes;
            std::uint64_t size = 0;
            if (!varint(size) || size > rest_.size()) return false;
            field.content = rest_.substr(0, static_cast<std::size_t>(size));
            rest_.remove_prefix(static_cast<std::size_t>(size));
            is_good_ = true;
            break;
        }
        default: break;  // groups, which these files never had
    }
    return is_good_;
}

}  // namespace tune::tensorboard
