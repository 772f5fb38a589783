// JSON in the exact form of Python's json module, because the index and the digests of upstream are
// made of it. Checking a text is a recursive descent that builds nothing and stops at
// kJsonDepthMax, so that a hostile payload costs neither memory nor stack.

#include "loader/format/python_json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/text/hex.h"
#include "base/text/number_text.h"
#include "base/text/utf8.h"

namespace tune::loader {
namespace {

void append_escape(std::string& out, char32_t unit) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kHexDigits[(unit >> shift) & 15]);
}

void append_string(std::string& out, std::string_view text) {
    out.push_back('"');
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint next = decode_utf8(text.substr(at));
        const char32_t code = next.bytes == 0 ? U'\xfffd' : next.code;
        at += std::max<std::size_t>(next.bytes, 1);
        switch (code) {
            case '"': out += "\\\""; continue;
            case '\\': out += "\\\\"; continue;
            case '\b': out += "\\b"; continue;
            case '\f': out += "\\f"; continue;
            case '\n': out += "\\n"; continue;
            case '\r': out += "\\r"; continue;
            case '\t': out += "\\t"; continue;
            default: break;
        }
        if (code >= 0x20 && code < 0x7f) {
            out.push_back(static_cast<char>(code));
        } else if (code < 0x10000) {
            // Python leaves DEL as it is.
            if (code == 0x7f)
                out.push_back('\x7f');
            else
                append_escape(out, code);
        } else {
            append_escape(out, 0xd800 + ((code - 0x10000) >> 10));
            append_escape(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
        }
    }
    out.push_back('"');
}

void append_number(std::string& out, double value) {
    if (std::isnan(value))
        out += "NaN";
    else if (std::isinf(value))
        out += value > 0 ? "Infinity" : "-Infinity";
    else
        out += number_text(value);
}

void append_value(std::string& out, const Json& value) {
    if (value.is_object()) {
        out.push_back('{');
        const char* separator = "";
        for (const auto& [key, member] : value.items()) {
            out += separator;
            append_string(out, key);
            out += ": ";
            append_value(out, member);
            separator = ", ";
        }
        out.push_back('}');
    } else if (value.is_array()) {
        out.push_back('[');
        const char* separator = "";
        for (const Json& element : value) {
            out += separator;
            append_value(out, element);
            separator = ", ";
        }
        out.push_back(']');
    } else if (value.is_string()) {
        append_string(out, value.get_ref<const std::string&>());
    } else if (value.is_number_float()) {
        append_number(out, value.get<double>());
    } else {
        out += value.dump();
    }
}

/// A syntax check by recursive descent; builds nothing.
class Checker {
public:
    explicit Checker(std::string_view text) : text_(text) {}

    bool whole() {
        blank();
        return value(0) && (blank(), at_ == text_.size());
    }

private:
    void blank() {
        while (at_ < text_.size() &&
               std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
            ++at_;
    }
    bool take(char wanted) {
        if (at_ >= text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    bool take(std::string_view wanted) {
        if (!text_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }
    bool digits() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
        return at_ > begin;
    }
    bool number() {
        take('-');
        if (take("Infinity")) return true;
        if (!take('0') && !digits()) return false;
        if (take('.') && !digits()) return false;
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            return digits();
        }
        return true;
    }
    bool escape() {
        if (take('u')) {
            for (int i = 0; i < 4; ++i, ++at_)
                if (at_ >= text_.size() || !std::isxdigit(static_cast<unsigned char>(text_[at_])))
                    return false;
            return true;
        }
        if (at_ >= text_.size()) return false;
        return std::string_view("\"\\/bfnrt").find(text_[at_++]) != std::string_view::npos;
    }
    bool string() {
        if (!take('"')) return false;
        while (at_ < text_.size()) {
            const char next = text_[at_++];
            if (next == '"') return true;
            if (static_cast<unsigned char>(next) < 0x20) return false;
            if (next == '\\' && !escape()) return false;
        }
        return false;
    }
    bool list(char close, bool keyed, int depth) {
        blank();
        if (take(close)) return true;
        do {
            blank();
            if (keyed) {
                if (!string()) return false;
                blank();
                if (!take(':')) return false;
                blank();
            }
            if (!value(depth + 1)) return false;
            blank();
        } while (take(','));
        return take(close);
    }
    bool value(int depth) {
        if (depth > kJsonDepthMax || at_ >= text_.size()) return false;
        if (take('{')) return list('}', true, depth);
        if (take('[')) return list(']', false, depth);
        if (text_[at_] == '"') return string();
        if (take("true") || take("false") || take("null") || take("NaN") || take("Infinity"))
            return true;
        return number();
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::string python_json(const Json& value) {
    std::string out;
    append_value(out, value);
    return out;
}

bool is_python_json(std::string_view text) {
    return is_utf8(text) && Checker(text).whole();
}

}  // namespace tune::loader
