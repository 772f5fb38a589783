#include "tracker/api/http/url.h"

#include "base/text/percent.h"
#include "base/text/utf8.h"

namespace tune::tracker {
namespace {

bool is_plain_name_char(unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

}  // namespace

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
    std::string fallback;
    bool plain = true;
    for (const char c : file_name) {
        const auto byte = static_cast<unsigned char>(c);
        const bool ok = is_plain_name_char(byte);
        plain = plain && ok;
        // One '_' for each character outside ASCII, not one for each of its bytes.
        if (ok || !is_utf8_continuation(c)) fallback.push_back(ok ? c : '_');
    }
    std::string value = "attachment; filename=\"" + fallback + "\"";
    if (!plain) value += "; filename*=UTF-8''" + percent_encode(file_name, false);
    return value;
}

}  // namespace tune::tracker
