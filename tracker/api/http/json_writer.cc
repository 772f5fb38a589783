// Commas follow from one bit, whether something was written at this level, so callers never place
// them. Text that is no UTF-8 is repaired (U+FFFD) rather than refused: old data must stay
// readable.

#include "tracker/api/http/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/text/hex.h"
#include "base/text/number_text.h"
#include "base/text/utf8.h"

namespace tune::tracker {
namespace {

bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    out += "\\u00";
    append_hex(out, c);
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
        } else if (const std::size_t length = decode_utf8(text.substr(i)).bytes; length > 0) {
            out_.append(text.substr(i, length));
            i += length;
        } else {
            out_.append(kReplacementCharacter);
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
    const std::size_t begin = out_.size();
    append_shortest(out_, value);
    if (out_.find_first_of(".e", begin) == std::string::npos) out_.append(".0");
    return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
    separate();
    out_.append(value ? "true" : "false");
    return *this;
}

}  // namespace tune::tracker
