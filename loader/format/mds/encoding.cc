// A table of encodings gives kind, element type and size; encoding, checking and printing switch
// over the kind. Texts of numbers are stored as Python's int(), float() and Decimal() would print
// them, since upstream stores str() of the value. Payloads are untrusted input: every length is
// compared with the bytes that are there before they are read.

#include "loader/format/mds/encoding.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "base/text/utf8.h"
#include "loader/format/python_json.h"

namespace tune::loader {
namespace {

using Shape = std::vector<std::int64_t>;
using Bytes = std::span<const std::byte>;

constexpr std::int64_t kShardBytesMax = std::int64_t{1} << 32;
constexpr std::size_t kArrayAxesMax = 63;

std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string shape_text(const Shape& shape) {
    std::string text;
    for (const std::int64_t dimension : shape)
        text += (text.empty() ? "" : ",") + std::to_string(dimension);
    return "(" + text + ")";
}

/// Elements times `element_bytes`; nothing when a dimension is below 1 or 4 GiB are reached.
std::optional<std::int64_t> array_bytes(const Shape& shape, std::size_t element_bytes) {
    auto total = static_cast<std::int64_t>(element_bytes);
    for (const std::int64_t dimension : shape) {
        if (dimension < 1 || dimension >= kShardBytesMax) return std::nullopt;
        total *= dimension;  // both factors are below 2^32
        if (total >= kShardBytesMax) return std::nullopt;
    }
    return total;
}

Result<Shape> parse_shape(std::string_view text, std::string_view encoding) {
    Shape shape;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
        std::int64_t dimension = 0;
        const auto [next, error] = std::from_chars(at, end, dimension);
        if (error != std::errc{} || dimension < 1 || (next != end && *next != ','))
            return invalid_parameter("the shape in encoding '" + std::string(encoding) +
                                     "' must be whole numbers above 0 with commas between them");
        shape.push_back(dimension);
        if (next == end) break;
        at = next + 1;
    }
    if (shape.size() > kArrayAxesMax)
        return invalid_parameter("encoding '" + std::string(encoding) + "' has more than 63 axes");
    return shape;
}

Result<Encoding> parse_ndarray(std::string_view text) {
    Encoding encoding{EncodingKind::kNdarray, std::string(text)};
    std::string_view rest = text.substr(std::string_view("ndarray").size());
    if (rest.empty()) return encoding;
    rest.remove_prefix(1);
    const std::size_t colon = rest.find(':');
    const std::string_view dtype = rest.substr(0, colon);
    encoding.dtype = dtype_from_name(dtype);
    if (!encoding.dtype)
        return invalid_parameter(
            "encoding '" + std::string(text) + "': arrays of '" + std::string(dtype) +
            "' cannot be stored; use uint8..uint64, int8..int64 or float16..float64");
    if (colon == std::string_view::npos) return encoding;
    TUNE_TRY(shape, parse_shape(rest.substr(colon + 1), text));
    const std::optional<std::int64_t> size = array_bytes(shape, dtype_bytes(*encoding.dtype));
    if (!size)
        return invalid_parameter("encoding '" + std::string(text) +
                                 "' is larger than a shard can be");
    encoding.shape = std::move(shape);
    encoding.size = static_cast<std::uint32_t>(*size);
    return encoding;
}

constexpr std::array<std::pair<std::string_view, EncodingKind>, 15> kPlainEncodings = {{
    {"bytes", EncodingKind::kBytes},
    {"str", EncodingKind::kStr},
    {"str_int", EncodingKind::kStrInt},
    {"str_float", EncodingKind::kStrFloat},
    {"str_decimal", EncodingKind::kStrDecimal},
    {"json", EncodingKind::kJson},
    {"pil", EncodingKind::kPil},
    {"jpeg", EncodingKind::kOpaque},
    {"png", EncodingKind::kOpaque},
    {"jpegarray", EncodingKind::kOpaque},
    {"jpeg_array", EncodingKind::kOpaque},
    {"list[pil]", EncodingKind::kOpaque},
    {"list[jpeg]", EncodingKind::kOpaque},
    {"list[png]", EncodingKind::kOpaque},
    {"pkl", EncodingKind::kOpaque},
}};

Result<void> append_array(const Encoding& encoding, const ArrayView& array, std::string& out) {
    if (array.shape.empty())
        return invalid_parameter("a single number does not fit into " + encoding.name +
                                 "; use a scalar encoding");
    const std::optional<std::int64_t> size = array_bytes(array.shape, dtype_bytes(array.dtype));
    if (!size || static_cast<std::size_t>(*size) != array.bytes.size() ||
        array.shape.size() > kArrayAxesMax)
        return invalid_parameter("an array of shape " + shape_text(array.shape) +
                                 " cannot be stored");
    if (encoding.dtype && *encoding.dtype != array.dtype)
        return invalid_parameter("an array of " + std::string(dtype_name(array.dtype)) +
                                 " does not fit into " + encoding.name);
    if (encoding.shape && *encoding.shape != array.shape)
        return invalid_parameter("an array of shape " + shape_text(array.shape) +
                                 " does not fit into " + encoding.name);
    if (!encoding.dtype) out.push_back(static_cast<char>(array.dtype));
    if (!encoding.shape) {
        const std::int64_t largest = *std::max_element(array.shape.begin(), array.shape.end());
        const unsigned width = largest < 256 ? 0 : largest < 65536 ? 1 : 2;  // of a dimension, log2
        out.push_back(static_cast<char>((array.shape.size() << 2) | width));
        for (const std::int64_t dimension : array.shape)
            for (unsigned byte = 0; byte < (1U << width); ++byte)
                out.push_back(static_cast<char>(dimension >> (8 * byte)));
    }
    out += text_of(array.bytes);
    return {};
}

bool is_decimal_integer(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A finite or special number as float() or Decimal() would read it.
bool is_number_text(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    for (const std::string_view special : {"nan", "inf", "NaN", "Infinity", "sNaN"})
        if (text == special) return true;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && error != std::errc::invalid_argument &&
           end == text.data() + text.size() && text.front() != '-';
}

Result<void> append_str_number(const Encoding& encoding, const Value& value, std::string& out) {
    std::string text;
    if (const auto* given = std::get_if<std::string_view>(&value)) {
        text = *given;
    } else if (const auto* signed_number = std::get_if<std::int64_t>(&value)) {
        text = std::to_string(*signed_number);
    } else if (const auto* number = std::get_if<std::uint64_t>(&value)) {
        text = std::to_string(*number);
    } else if (const auto* real = std::get_if<double>(&value)) {
        text = number_text(*real);
    } else {
        return invalid_parameter("an array does not fit into " + encoding.name);
    }
    const bool fits =
        encoding.kind == EncodingKind::kStrInt ? is_decimal_integer(text) : is_number_text(text);
    if (!fits) return invalid_parameter("'" + text + "' does not fit into " + encoding.name);
    if (encoding.kind == EncodingKind::kStrFloat) {
        double number = 0;  // the repr of the number, not the text that was given
        const bool plus = text.starts_with('+');
        const auto parsed =
            std::from_chars(text.data() + (plus ? 1 : 0), text.data() + text.size(), number);
        if (parsed.ec == std::errc{}) text = number_text(number);
    }
    out += text;
    return {};
}

Result<void> append_text(const Encoding& encoding, const Value& value, std::string& out) {
    const auto* text = std::get_if<std::string_view>(&value);
    if (encoding.kind == EncodingKind::kJson) {
        if (!text) {
            if (const auto* real = std::get_if<double>(&value)) {
                out += python_json(Json(*real));
            } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
                out += std::to_string(*number);
            } else if (const auto* large = std::get_if<std::uint64_t>(&value)) {
                out += std::to_string(*large);
            } else {
                return invalid_parameter("an array does not fit into json; give its JSON text");
            }
            return {};
        }
        if (!is_python_json(*text)) return invalid_parameter("the text is not JSON");
        out += *text;
        return {};
    }
    if (!text) return invalid_parameter("a number does not fit into " + encoding.name);
    if (encoding.kind == EncodingKind::kStr && !is_utf8(*text))
        return invalid_parameter("the text is not UTF-8");
    out += *text;
    return {};
}

}  // namespace

Result<Encoding> parse_encoding(std::string_view text) {
    if (text == "ndarray" || text.starts_with("ndarray:")) return parse_ndarray(text);
    for (const auto& [name, kind] : kPlainEncodings)
        if (name == text) return Encoding{kind, std::string(text)};
    const std::optional<Dtype> dtype = text == "int" ? Dtype::kInt64 : dtype_from_name(text);
    if (!dtype)
        return invalid_parameter(
            "unknown encoding '" + std::string(text) +
            "'; known are int, uint8..uint64, int8..int64, float16..float64, bytes, "
            "str, str_int, str_float, str_decimal, json, ndarray[:type[:shape]], pil, "
            "jpeg, png, jpegarray, list[pil], list[jpeg], list[png], pkl");
    Encoding encoding{EncodingKind::kScalar, std::string(text), dtype};
    encoding.size = static_cast<std::uint32_t>(dtype_bytes(*dtype));
    return encoding;
}

Result<void> encode(const Encoding& encoding, const Value& value, std::string& out) {
    if (const auto* bytes = std::get_if<Bytes>(&value)) {
        if (encoding.size && *encoding.size != bytes->size())
            return invalid_parameter(std::to_string(bytes->size()) + " bytes do not fit into " +
                                     encoding.name + ", which takes " +
                                     std::to_string(*encoding.size));
        out += text_of(*bytes);
        return {};
    }
    switch (encoding.kind) {
        case EncodingKind::kScalar: return append_element(*encoding.dtype, value, out);
        case EncodingKind::kNdarray:
            if (const auto* array = std::get_if<ArrayView>(&value))
                return append_array(encoding, *array, out);
            return invalid_parameter("a single value does not fit into " + encoding.name);
        case EncodingKind::kStrInt:
        case EncodingKind::kStrFloat:
        case EncodingKind::kStrDecimal: return append_str_number(encoding, value, out);
        case EncodingKind::kBytes:
        case EncodingKind::kStr:
        case EncodingKind::kJson: return append_text(encoding, value, out);
        case EncodingKind::kPil:
        case EncodingKind::kOpaque: break;
    }
    return invalid_parameter("a column of " + encoding.name + " takes encoded bytes only");
}

Result<ArrayView> decode_array(const Encoding& encoding, Bytes payload) {
    std::size_t at = 0;
    const auto next_byte = [&]() -> std::optional<std::uint8_t> {
        if (at >= payload.size()) return std::nullopt;
        return static_cast<std::uint8_t>(payload[at++]);
    };
    ArrayView array;
    if (encoding.dtype) {
        array.dtype = *encoding.dtype;
    } else {
        const std::optional<std::uint8_t> code = next_byte();
        const std::optional<Dtype> dtype = code ? dtype_from_code(*code) : std::nullopt;
        if (!dtype) return data_loss("an array without a known element type");
        array.dtype = *dtype;
    }
    if (encoding.shape) {
        array.shape = *encoding.shape;
    } else {
        const std::optional<std::uint8_t> header = next_byte();
        if (!header) return data_loss("an array without a shape");
        const std::size_t width = std::size_t{1} << (*header & 3);
        for (int axis = 0; axis < *header >> 2; ++axis) {
            if (payload.size() - at < width) return data_loss("an array whose shape is cut off");
            std::uint64_t dimension = 0;
            std::memcpy(&dimension, payload.data() + at, width);
            at += width;
            array.shape.push_back(
                static_cast<std::int64_t>(std::min<std::uint64_t>(dimension, kShardBytesMax)));
        }
    }
    array.bytes = payload.subspan(at);
    const std::optional<std::int64_t> size = array_bytes(array.shape, dtype_bytes(array.dtype));
    if (array.shape.empty() || !size || static_cast<std::size_t>(*size) != array.bytes.size())
        return data_loss("an array of shape " + shape_text(array.shape) + " and " +
                         std::string(dtype_name(array.dtype)) + " in " +
                         std::to_string(array.bytes.size()) + " bytes");
    return array;
}

namespace {

/// Bytes of a row of pixels of a PIL mode; 0 for a mode that is not known here.
std::uint64_t pil_row_bytes(std::string_view mode, std::uint64_t width) {
    if (mode == "1") return (width + 7) / 8;
    if (mode == "L" || mode == "P") return width;
    if (mode == "LA" || mode == "PA" || mode == "La" || mode == "I;16") return 2 * width;
    if (mode == "RGB" || mode == "YCbCr" || mode == "LAB" || mode == "HSV") return 3 * width;
    if (mode == "RGBA" || mode == "CMYK" || mode == "RGBX" || mode == "RGBa" || mode == "I" ||
        mode == "F")
        return 4 * width;
    return 0;
}

Result<void> check_pil(Bytes payload) {
    std::array<std::uint32_t, 3> header{};  // width, height, length of the mode's name
    if (payload.size() < sizeof header) return data_loss("an image without its header");
    std::memcpy(header.data(), payload.data(), sizeof header);
    const Bytes rest = payload.subspan(sizeof header);
    if (header[2] > rest.size()) return data_loss("an image without its mode");
    const std::string_view mode = text_of(rest.first(header[2]));
    const std::uint64_t row_bytes = pil_row_bytes(mode, header[0]);
    const std::uint64_t pixel_bytes = rest.size() - header[2];
    if (row_bytes != 0 && row_bytes * header[1] != pixel_bytes)
        return data_loss("an image of " + std::to_string(header[0]) + " x " +
                         std::to_string(header[1]) + " pixels in " + std::to_string(pixel_bytes) +
                         " bytes");
    return {};
}

Result<void> check_opaque(const Encoding& encoding, Bytes payload) {
    const std::string_view text = text_of(payload);
    if (encoding.name == "jpeg" && !text.starts_with("\xff\xd8"))
        return data_loss("not a JPEG file: it does not begin with ff d8");
    if (encoding.name == "png" && !text.starts_with("\x89PNG\r\n\x1a\n"))
        return data_loss("not a PNG file: it does not begin with the PNG signature");
    return {};
}

std::string grouped(std::size_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

Json describe_text(std::string_view text, std::size_t characters_max) {
    if (text.size() <= characters_max) return text;
    return std::string(cut_to_bytes(text, characters_max)) + "...";
}

/// Nested lists of the shape; stops after `left` elements.
Json describe_axis(const ArrayView& array, std::size_t axis, const std::byte*& at,
                   std::size_t& left) {
    if (axis == array.shape.size()) {
        Json element = element_to_json(array.dtype, at);
        at += dtype_bytes(array.dtype);
        --left;
        return element;
    }
    Json list = Json::array();
    for (std::int64_t i = 0; i < array.shape[axis]; ++i) {
        if (left == 0) {
            list.push_back("...");
            break;
        }
        list.push_back(describe_axis(array, axis + 1, at, left));
    }
    return list;
}

}  // namespace

Result<void> check_payload(const Encoding& encoding, Bytes payload) {
    if (encoding.size && *encoding.size != payload.size())
        return data_loss(std::to_string(payload.size()) + " bytes where " + encoding.name +
                         " takes " + std::to_string(*encoding.size));
    const std::string_view text = text_of(payload);
    switch (encoding.kind) {
        case EncodingKind::kScalar:
        case EncodingKind::kBytes: return {};
        case EncodingKind::kNdarray: {
            TUNE_TRY_VOID(decode_array(encoding, payload));
            return {};
        }
        case EncodingKind::kStr:
            if (!is_utf8(text)) return data_loss("text that is not UTF-8");
            return {};
        case EncodingKind::kStrInt:
            if (!is_decimal_integer(text)) return data_loss("text that is not a whole number");
            return {};
        case EncodingKind::kStrFloat:
        case EncodingKind::kStrDecimal:
            if (!is_number_text(text)) return data_loss("text that is not a number");
            return {};
        case EncodingKind::kJson:
            if (!is_python_json(text)) return data_loss("text that is not JSON");
            return {};
        case EncodingKind::kPil: return check_pil(payload);
        case EncodingKind::kOpaque: return check_opaque(encoding, payload);
    }
    return {};
}

Result<Json> describe_payload(const Encoding& encoding, Bytes payload, std::size_t elements_max) {
    TUNE_TRY_VOID(check_payload(encoding, payload));
    switch (encoding.kind) {
        case EncodingKind::kScalar: return element_to_json(*encoding.dtype, payload.data());
        case EncodingKind::kNdarray: {
            TUNE_TRY(array, decode_array(encoding, payload));
            const std::byte* at = array.bytes.data();
            std::size_t left = std::max<std::size_t>(elements_max, 1);
            return describe_axis(array, 0, at, left);
        }
        case EncodingKind::kStr:
        case EncodingKind::kStrInt:
        case EncodingKind::kStrFloat:
        case EncodingKind::kStrDecimal:
        case EncodingKind::kJson: return describe_text(text_of(payload), elements_max);
        case EncodingKind::kBytes:
        case EncodingKind::kPil:
        case EncodingKind::kOpaque: break;
    }
    return Json("<" + grouped(payload.size()) + " bytes>");
}

}  // namespace tune::loader
