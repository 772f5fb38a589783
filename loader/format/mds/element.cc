// Single numbers of MDS: into bytes, out of bytes, from text. MDS stores numpy's scalars and arrays
// as raw little-endian memory, so a number must be exactly what numpy would have stored.
//
// Integers that do not fit, or doubles that are not whole, are refused instead of wrapped. Text
// beyond the range of double is read as Python reads it, infinite or zero. float16 is rounded half
// to even on the fraction's last bit; the sum of fraction and implicit bit carries into the
// exponent where it must.

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "loader/format/mds/encoding.h"

namespace tune::loader {
namespace {

static_assert(std::endian::native == std::endian::little,
              "shards are little-endian and are read in place");

Error unfit(const std::string& value, std::string_view target) {
    return Error{Code::kInvalidParameterValue,
                 "'" + value + "' does not fit into " + std::string(target)};
}

template <class T>
void append_raw(std::string& out, T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out.append(bytes, sizeof(T));
}

template <class T>
T read_raw(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
}

template <class T>
Result<T> integer_from_text(std::string_view text, std::string_view name) {
    std::string_view digits = trimmed(text);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) return unfit(std::string(text), name);
    if (error == std::errc{} && end == digits.data() + digits.size()) return value;
    return Error{Code::kInvalidParameterValue,
                 "'" + std::string(text) + "' is not a whole number (" + std::string(name) + ")"};
}

/// Values that std::in_range does not take: doubles must be whole.
template <class T>
Result<T> integer_from_double(double number, std::string_view name) {
    const double lowest = static_cast<double>(std::numeric_limits<T>::min());
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (number != std::floor(number) || !(number >= lowest && number < beyond))
        return unfit(Json(number).dump(), name);
    return static_cast<T>(number);
}

template <class T>
Result<void> append_integer(Dtype dtype, const Value& value, std::string& out) {
    const std::string_view name = dtype_name(dtype);
    const auto append = [&](Result<T> number) -> Result<void> {
        if (!number) return std::move(number).error();
        append_raw(out, *number);
        return {};
    };
    if (const auto* text = std::get_if<std::string_view>(&value))
        return append(integer_from_text<T>(*text, name));
    if (const auto* number = std::get_if<double>(&value))
        return append(integer_from_double<T>(*number, name));
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        if (!std::in_range<T>(*number)) return unfit(std::to_string(*number), name);
        return append(static_cast<T>(*number));
    }
    if (const auto* number = std::get_if<std::uint64_t>(&value)) {
        if (!std::in_range<T>(*number)) return unfit(std::to_string(*number), name);
        return append(static_cast<T>(*number));
    }
    return Error{Code::kInvalidParameterValue, "an array does not fit into " + std::string(name)};
}

Result<double> float_from_text(std::string_view text) {
    std::string_view digits = trimmed(text);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = end == digits.data() + digits.size() && !digits.empty();
    if (whole && error == std::errc{}) return value;
    // Beyond the range of double: as Python reads it, infinite or zero.
    if (whole && error == std::errc::result_out_of_range)
        return std::strtod(std::string(digits).c_str(), nullptr);
    return Error{Code::kInvalidParameterValue, "'" + std::string(text) + "' is not a number"};
}

Result<double> number_of(const Value& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) return float_from_text(*text);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
    if (const auto* number = std::get_if<std::uint64_t>(&value))
        return static_cast<double>(*number);
    return Error{Code::kInvalidParameterValue, "an array is not a single number"};
}

Json float_to_json(double value) {
    return json_number(value);
}

}  // namespace

std::uint16_t half_from_double(double value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
    const double size = std::fabs(value);
    if (size >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to infinity
    if (size == 0.0) return sign;
    const int exponent = std::max(std::ilogb(size), -14);
    // In units of the last of ten fraction bits; nearbyint rounds half to even.
    const double units = std::nearbyint(std::ldexp(size, 10 - exponent));
    const int fraction = static_cast<int>(units);
    // 1024 is the implicit leading bit: the sum carries into the exponent where it must.
    const int bits = fraction + ((exponent + 14) << 10);
    return static_cast<std::uint16_t>(sign | bits);
}

double double_from_half(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    double size = 0;
    if (exponent == 31)
        size = fraction == 0 ? std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    else if (exponent == 0)
        size = std::ldexp(fraction, -24);
    else
        size = std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) ? -size : size;
}

Result<void> append_element(Dtype dtype, const Value& value, std::string& out) {
    switch (dtype) {
        case Dtype::kUint8: return append_integer<std::uint8_t>(dtype, value, out);
        case Dtype::kInt8: return append_integer<std::int8_t>(dtype, value, out);
        case Dtype::kUint16: return append_integer<std::uint16_t>(dtype, value, out);
        case Dtype::kInt16: return append_integer<std::int16_t>(dtype, value, out);
        case Dtype::kUint32: return append_integer<std::uint32_t>(dtype, value, out);
        case Dtype::kInt32: return append_integer<std::int32_t>(dtype, value, out);
        case Dtype::kUint64: return append_integer<std::uint64_t>(dtype, value, out);
        case Dtype::kInt64: return append_integer<std::int64_t>(dtype, value, out);
        case Dtype::kFloat16:
        case Dtype::kFloat32:
        case Dtype::kFloat64: break;
    }
    TUNE_TRY(number, number_of(value));
    if (dtype == Dtype::kFloat16)
        append_raw(out, half_from_double(number));
    else if (dtype == Dtype::kFloat32)
        append_raw(out, static_cast<float>(number));
    else
        append_raw(out, number);
    return {};
}

Json element_to_json(Dtype dtype, const std::byte* bytes) {
    switch (dtype) {
        case Dtype::kUint8: return read_raw<std::uint8_t>(bytes);
        case Dtype::kInt8: return read_raw<std::int8_t>(bytes);
        case Dtype::kUint16: return read_raw<std::uint16_t>(bytes);
        case Dtype::kInt16: return read_raw<std::int16_t>(bytes);
        case Dtype::kUint32: return read_raw<std::uint32_t>(bytes);
        case Dtype::kInt32: return read_raw<std::int32_t>(bytes);
        case Dtype::kUint64: return read_raw<std::uint64_t>(bytes);
        case Dtype::kInt64: return read_raw<std::int64_t>(bytes);
        case Dtype::kFloat16:
            return float_to_json(double_from_half(read_raw<std::uint16_t>(bytes)));
        case Dtype::kFloat32: return float_to_json(double{read_raw<float>(bytes)});
        case Dtype::kFloat64: return float_to_json(read_raw<double>(bytes));
    }
    return nullptr;
}

}  // namespace tune::loader
