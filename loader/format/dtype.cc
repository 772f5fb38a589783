#include "loader/format/dtype.h"

#include <array>

namespace tune::loader {
namespace {

struct Entry {
    Dtype dtype;
    std::string_view name;
    std::size_t bytes;
};

constexpr std::array<Entry, 11> kEntries = {{
    {Dtype::kUint8, "uint8", 1},
    {Dtype::kInt8, "int8", 1},
    {Dtype::kUint16, "uint16", 2},
    {Dtype::kInt16, "int16", 2},
    {Dtype::kFloat16, "float16", 2},
    {Dtype::kUint32, "uint32", 4},
    {Dtype::kInt32, "int32", 4},
    {Dtype::kFloat32, "float32", 4},
    {Dtype::kUint64, "uint64", 8},
    {Dtype::kInt64, "int64", 8},
    {Dtype::kFloat64, "float64", 8},
}};

}  // namespace

std::size_t dtype_bytes(Dtype dtype) {
    for (const Entry& entry : kEntries)
        if (entry.dtype == dtype) return entry.bytes;
    return 0;
}

std::string_view dtype_name(Dtype dtype) {
    for (const Entry& entry : kEntries)
        if (entry.dtype == dtype) return entry.name;
    return "unknown";
}

std::optional<Dtype> dtype_from_name(std::string_view name) {
    for (const Entry& entry : kEntries)
        if (entry.name == name) return entry.dtype;
    return std::nullopt;
}

std::optional<Dtype> dtype_from_code(std::uint8_t code) {
    for (const Entry& entry : kEntries)
        if (static_cast<std::uint8_t>(entry.dtype) == code) return entry.dtype;
    return std::nullopt;
}

}  // namespace tune::loader
