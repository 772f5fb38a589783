#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tune::loader {

/// Element types of fixed-size columns, with numpy's meaning, little-endian. The values are the
/// codes of the `ndarray` encoding (mosaicml-streaming 0.13.0, format/mds/encodings.py).
enum class Dtype : std::uint8_t {
    kUint8 = 8,
    kInt8 = 9,
    kUint16 = 16,
    kInt16 = 17,
    kFloat16 = 18,
    kUint32 = 32,
    kInt32 = 33,
    kFloat32 = 34,
    kUint64 = 64,
    kInt64 = 65,
    kFloat64 = 66,
};

/// Bytes of one element.
[[nodiscard]] std::size_t dtype_bytes(Dtype dtype);

/// numpy's name, e.g. "uint8", "float32".
[[nodiscard]] std::string_view dtype_name(Dtype dtype);

/// The type with this name, or with this code; nothing for an unknown one.
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view name);
[[nodiscard]] std::optional<Dtype> dtype_from_code(std::uint8_t code);

}  // namespace tune::loader
