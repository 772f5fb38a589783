// One function for each pair of types, made by a template and picked once for a column, so that the
// loop over elements knows both types.

#include "loader/format/convert_dtype.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "loader/format/mds/encoding.h"

namespace tune::loader {
namespace {

/// binary16, which C++20 has no type for; its values pass through double.
struct Half {
    std::uint16_t bits = 0;
};

template <class To, class From>
To convert_number(From value) {
    if constexpr (std::is_same_v<To, From>) {
        return value;
    } else if constexpr (std::is_same_v<From, Half>) {
        return convert_number<To>(double_from_half(value.bits));
    } else if constexpr (std::is_same_v<To, Half>) {
        return Half{half_from_double(static_cast<double>(value))};
    } else if constexpr (std::is_floating_point_v<To>) {
        return static_cast<To>(value);
    } else if constexpr (std::is_floating_point_v<From>) {
        // The least real above the largest integer is exact, the largest integer itself is not.
        const double beyond = std::ldexp(1.0, std::numeric_limits<To>::digits);
        const auto real = static_cast<double>(value);
        if (std::isnan(real)) return 0;
        if (real >= beyond) return std::numeric_limits<To>::max();
        if (real <= static_cast<double>(std::numeric_limits<To>::min()))
            return std::numeric_limits<To>::min();
        return static_cast<To>(real);
    } else {
        if (std::cmp_less(value, std::numeric_limits<To>::min()))
            return std::numeric_limits<To>::min();
        if (std::cmp_greater(value, std::numeric_limits<To>::max()))
            return std::numeric_limits<To>::max();
        return static_cast<To>(value);
    }
}

template <class From, class To>
void convert_elements(const std::byte* from, std::byte* to, std::size_t count) {
    if constexpr (std::is_same_v<From, To>) {
        if (count > 0) std::memcpy(to, from, count * sizeof(From));
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        From value{};
        std::memcpy(&value, from + i * sizeof(From), sizeof value);
        const To converted = convert_number<To>(value);
        std::memcpy(to + i * sizeof(To), &converted, sizeof converted);
    }
}

template <class From>
ConvertElements converter_from(Dtype to) {
    switch (to) {
        case Dtype::kUint8: return convert_elements<From, std::uint8_t>;
        case Dtype::kInt8: return convert_elements<From, std::int8_t>;
        case Dtype::kUint16: return convert_elements<From, std::uint16_t>;
        case Dtype::kInt16: return convert_elements<From, std::int16_t>;
        case Dtype::kFloat16: return convert_elements<From, Half>;
        case Dtype::kUint32: return convert_elements<From, std::uint32_t>;
        case Dtype::kInt32: return convert_elements<From, std::int32_t>;
        case Dtype::kFloat32: return convert_elements<From, float>;
        case Dtype::kUint64: return convert_elements<From, std::uint64_t>;
        case Dtype::kInt64: return convert_elements<From, std::int64_t>;
        case Dtype::kFloat64: return convert_elements<From, double>;
    }
    return nullptr;
}

struct Range {
    bool is_real;
    bool is_signed;
    int digits;  // bits of an exact integer, without the sign
};

Range range_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::kUint8: return {false, false, 8};
        case Dtype::kInt8: return {false, true, 7};
        case Dtype::kUint16: return {false, false, 16};
        case Dtype::kInt16: return {false, true, 15};
        case Dtype::kFloat16: return {true, true, 11};
        case Dtype::kUint32: return {false, false, 32};
        case Dtype::kInt32: return {false, true, 31};
        case Dtype::kFloat32: return {true, true, 24};
        case Dtype::kUint64: return {false, false, 64};
        case Dtype::kInt64: return {false, true, 63};
        case Dtype::kFloat64: return {true, true, 53};
    }
    return {};
}

}  // namespace

bool holds_every_value(Dtype to, Dtype from) {
    if (to == from) return true;
    const Range target = range_of(to);
    const Range source = range_of(from);
    if (source.is_real && !target.is_real) return false;
    if (source.is_signed && !target.is_signed) return false;
    return source.digits <= target.digits;
}

ConvertElements converter(Dtype from, Dtype to) {
    switch (from) {
        case Dtype::kUint8: return converter_from<std::uint8_t>(to);
        case Dtype::kInt8: return converter_from<std::int8_t>(to);
        case Dtype::kUint16: return converter_from<std::uint16_t>(to);
        case Dtype::kInt16: return converter_from<std::int16_t>(to);
        case Dtype::kFloat16: return converter_from<Half>(to);
        case Dtype::kUint32: return converter_from<std::uint32_t>(to);
        case Dtype::kInt32: return converter_from<std::int32_t>(to);
        case Dtype::kFloat32: return converter_from<float>(to);
        case Dtype::kUint64: return converter_from<std::uint64_t>(to);
        case Dtype::kInt64: return converter_from<std::int64_t>(to);
        case Dtype::kFloat64: return converter_from<double>(to);
    }
    return nullptr;
}

}  // namespace tune::loader
