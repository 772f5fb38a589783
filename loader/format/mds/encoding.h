#pragma once
// Column encodings of MDS (mosaicml-streaming 0.13.0, format/mds/encodings.py): how one value of
// one column becomes bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loader/format/dtype.h"

namespace tune::loader {

enum class EncodingKind {
    kScalar,    ///< int (as int64), uint8..uint64, int8..int64, float16/32/64
    kNdarray,   ///< ndarray[:dtype[:d0,d1,...]]
    kBytes,     ///< bytes
    kStr,       ///< str
    kStrInt,    ///< decimal digits, any length
    kStrFloat,  ///< Python's repr(float)
    kStrDecimal,
    kJson,
    kPil,     ///< u32 width, height, mode length; mode; pixels
    kOpaque,  ///< jpeg, png, jpegarray, list[...], pkl: bytes that are passed on as they are
};

struct Encoding {
    EncodingKind kind = EncodingKind::kBytes;
    /// As written in the index, e.g. "ndarray:uint8:8,8".
    std::string name = "bytes";
    /// Scalars, and arrays of a stated element type.
    std::optional<Dtype> dtype = {};
    /// Arrays of a stated shape.
    std::optional<std::vector<std::int64_t>> shape = {};
    /// Bytes of every value; nothing when they vary.
    std::optional<std::uint32_t> size = {};
};

/// Errors: kInvalidParameterValue for an unknown encoding, an element type that has no code (bool,
/// bfloat16), a dimension below 1, or an array of 4 GiB or more.
[[nodiscard]] Result<Encoding> parse_encoding(std::string_view text);

/// An array in C order, little-endian. REQUIRES: bytes.size() == product of shape * element size.
struct ArrayView {
    Dtype dtype = Dtype::kUint8;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;
};

/// What can be encoded. Bytes are stored as they are, whatever the encoding (so JPEG files go
/// straight in); a fixed-size column still checks their number.
using Value = std::variant<std::int64_t, std::uint64_t, double, std::string_view, ArrayView,
                           std::span<const std::byte>>;

/// Appends the encoded value to `out`; leaves `out` alone on error. Text is read as a number for
/// numeric columns. Errors: kInvalidParameterValue, in a sentence that names the value, when it
/// does not fit (out of range, no number, wrong element type, shape or size, not UTF-8).
[[nodiscard]] Result<void> encode(const Encoding& encoding, const Value& value, std::string& out);

/// The array in a payload of `encoding` (kNdarray); the view points into `payload`. Errors:
/// kDataLoss when header, shape and size do not agree.
[[nodiscard]] Result<ArrayView> decode_array(const Encoding& encoding,
                                             std::span<const std::byte> payload);

/// Whether `payload` can be a value of `encoding`: sizes, headers, UTF-8, JSON, digits, the first
/// bytes of JPEG and PNG files. Errors: kDataLoss saying what is wrong.
[[nodiscard]] Result<void> check_payload(const Encoding& encoding,
                                         std::span<const std::byte> payload);

/// For people: numbers, text and small arrays as JSON, other payloads as "<1,234 bytes>". Arrays
/// and texts longer than `elements_max` are cut and end in "...". Errors: as check_payload.
[[nodiscard]] Result<Json> describe_payload(const Encoding& encoding,
                                            std::span<const std::byte> payload,
                                            std::size_t elements_max);

/// IEEE 754 binary16, round to nearest even.
[[nodiscard]] std::uint16_t half_from_double(double value);
[[nodiscard]] double double_from_half(std::uint16_t bits);

/// One element at `bytes`, as JSON. REQUIRES: dtype_bytes(dtype) readable bytes.
[[nodiscard]] Json element_to_json(Dtype dtype, const std::byte* bytes);

/// Appends one element given as a number or as text. Errors: as encode.
[[nodiscard]] Result<void> append_element(Dtype dtype, const Value& value, std::string& out);

}  // namespace tune::loader
