// Commas follow from one bit, whether something was written at this level, so callers never place
// them. Text that is no UTF-8 is repaired (U+FFFD) rather than refused: old data must stay
// readable.

#include "tracker/api/http/json_writer.h"

#include <charconv>
#include <cmath>

namespace tune::tracker {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Length of the well-formed UTF-8 sequence at the start of `text` (not ASCII), or 0.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto continues = [&](std::size_t i) {
        return i < text.size() && (byte(i) & 0xc0) == 0x80;
    };
    const unsigned char first = byte(0);
    if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        if (!continues(1) || !continues(2)) return 0;
        if (first == 0xe0 && byte(1) < 0xa0) return 0;
        if (first == 0xed && byte(1) > 0x9f) return 0;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (!continues(1) || !continues(2) || !continues(3)) return 0;
        if (first == 0xf0 && byte(1) < 0x90) return 0;
        if (first == 0xf4 && byte(1) > 0x8f) return 0;
        return 4;
    }
    return 0;
}

bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
    static constexpr char kHex[] = "0123456789abcdef";
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    out += "\\u00";
    out.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
    out.push_back(kHex[static_cast<unsigned char>(c) & 15]);
}

}  // namespace

void JsonWriter::separate() {
    if (needs_comma_) out_.push_back(',');
    needs_comma_ = true;
}

void JsonWriter::quote(std::string_view text) {
    out_.push_back('"');
    std::size_t plain_begin = 0;
    std::size_t i = 0;
    while (i < text.size()) {
        if (is_plain(text[i])) {
            ++i;
            continue;
        }
        out_.append(text.substr(plain_begin, i - plain_begin));
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            append_escaped(out_, text[i]);
            ++i;
        } else if (const std::size_t length = utf8_length(text.substr(i)); length > 0) {
            out_.append(text.substr(i, length));
            i += length;
        } else {
            out_.append(kReplacement);
            ++i;
        }
        plain_begin = i;
    }
    out_.append(text.substr(plain_begin));
    out_.push_back('"');
}

JsonWriter& JsonWriter::raw(std::string_view json) {
    out_.append(json);
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::end_line() {
    out_.push_back('\n');
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::begin_object() {
    separate();
    out_.push_back('{');
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::end_object() {
    out_.push_back('}');
    needs_comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::begin_array() {
    separate();
    out_.push_back('[');
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::end_array() {
    out_.push_back(']');
    needs_comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    quote(name);
    out_.push_back(':');
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
    separate();
    quote(value);
    return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t value) {
    separate();
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out_.append(digits, end);
    return *this;
}

JsonWriter& JsonWriter::real(double value) {
    if (std::isnan(value)) return text("NaN");
    if (std::isinf(value)) return text(value > 0 ? "Infinity" : "-Infinity");
    separate();
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const std::string_view written(digits, static_cast<std::size_t>(end - digits));
    out_.append(written);
    if (written.find_first_of(".e") == std::string_view::npos) out_.append(".0");
    return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
    separate();
    out_.append(value ? "true" : "false");
    return *this;
}

}  // namespace tune::tracker
