#pragma once
// The wire format of protocol buffers, as far as TensorBoard's files need it.

#include <cstdint>
#include <string>
#include <string_view>

namespace tune::tensorboard {

/// A message being written, field by field.
class Message {
public:
    Message& integer(std::uint32_t field, std::int64_t value);
    Message& real(std::uint32_t field, double value);
    Message& real32(std::uint32_t field, float value);
    /// A text, bytes, or a message within this one.
    Message& bytes(std::uint32_t field, std::string_view value);

    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// One field as it lies in a message.
struct Field {
    enum class Kind { kInteger, kFixed64, kBytes, kFixed32 };
    std::uint32_t number = 0;
    Kind kind = Kind::kInteger;
    std::uint64_t bits = 0;         ///< of the first two kinds and the last
    std::string_view content = {};  ///< of kBytes

    [[nodiscard]] bool is(std::uint32_t wanted, Kind wanted_kind) const {
        return number == wanted && kind == wanted_kind;
    }
    [[nodiscard]] double as_double() const;  ///< of kFixed64
    [[nodiscard]] float as_float() const;    ///< of kFixed32
};

/// The fields of one message, in order; what lies within a field is not looked at, so no message
/// nests deeper than its reader asks.
class FieldReader {
public:
    explicit FieldReader(std::string_view message) : rest_(message) {}
    /// False at the end, and where the bytes are no message: is_good() tells which.
    [[nodiscard]] bool next(Field& field);
    [[nodiscard]] bool is_good() const { return is_good_; }

private:
    [[nodiscard]] bool varint(std::uint64_t& value);
    [[nodiscard]] bool fixed(std::size_t bytes, std::uint64_t& value);

    std::string_view rest_;
    bool is_good_ = true;
};

/// The first varint of `text`, which loses it; false where there is none.
[[nodiscard]] bool take_varint(std::string_view& text, std::uint64_t& value);

}  // namespace tune::tensorboard
