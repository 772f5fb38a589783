#include "tracker/api/http/url.h"

namespace tune::tracker {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_plain_name_char(unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

bool is_unreserved(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
            hex_digit(text[i + 2]) >= 0) {
            out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
            i += 2;
        } else {
            out.push_back(c == '+' && plus_is_space ? ' ' : c);
        }
    }
    return out;
}

Fields parse_query(std::string_view query) {
    Fields fields;
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        const std::string_view item = query.substr(0, end);
        query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
        if (item.empty()) continue;
        const std::size_t equals = item.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
        fields.emplace_back(percent_decode(item.substr(0, equals), true),
                            percent_decode(value, true));
    }
    return fields;
}

std::string attachment_disposition(std::string_view file_name) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string fallback;
    std::string encoded;
    bool plain = true;
    for (const char c : file_name) {
        const auto byte = static_cast<unsigned char>(c);
        const bool ok = is_plain_name_char(byte);
        plain = plain && ok;
        // One '_' for each character outside ASCII, not one for each of its bytes.
        if (ok || (byte & 0xc0) != 0x80) fallback.push_back(ok ? c : '_');
        if (is_unreserved(c)) {
            encoded.push_back(c);
        } else {
            encoded.push_back('%');
            encoded.push_back(kHex[byte >> 4]);
            encoded.push_back(kHex[byte & 15]);
        }
    }
    std::string value = "attachment; filename=\"" + fallback + "\"";
    if (!plain) value += "; filename*=UTF-8''" + encoded;
    return value;
}

}  // namespace tune::tracker
