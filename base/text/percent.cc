#include "base/text/percent.h"

#include "base/text/hex.h"

namespace tune {
namespace {

bool is_unreserved(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/// The character that `text` begins with as %XX, or -1.
int encoded_at_begin(std::string_view text) {
    if (text.size() < 3 || text[0] != '%') return -1;
    const int high = hex_value(text[1]);
    const int low = hex_value(text[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int encoded_at_end(std::string_view text) {
    return text.size() < 3 ? -1 : encoded_at_begin(text.substr(text.size() - 3));
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slashes) {
    std::string out;
    for (const char c : text) {
        if (is_unreserved(c) || (c == '/' && keep_slashes)) {
            out.push_back(c);
        } else {
            out.push_back('%');
            append_hex(out, c, kUpperHexDigits);
        }
    }
    return out;
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int code = encoded_at_begin(text.substr(i));
        if (code >= 0) {
            out.push_back(static_cast<char>(code));
            i += 2;
        } else {
            out.push_back(text[i] == '+' && plus_is_space ? ' ' : text[i]);
        }
    }
    return out;
}

std::string percent_decode_all(std::string_view text, bool plus_is_space) {
    std::string out;
    for (const char c : text) {
        out += c;
        for (int code = encoded_at_end(out); code >= 0; code = encoded_at_end(out)) {
            out.resize(out.size() - 3);
            out += static_cast<char>(code);
        }
        if (plus_is_space && out.back() == '+') out.back() = ' ';
    }
    return out;
}

}  // namespace tune
