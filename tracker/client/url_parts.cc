#include "tracker/client/url_parts.h"

#include "tracker/client/client.h"

namespace tune::tracker {
namespace {

Error unusable(std::string_view url, std::string_view why) {
    return {Code::kInvalidParameterValue,
            "'" + std::string(url) + "' is not the address of a tracking server (" +
                std::string(why) + "); it looks like http://127.0.0.1:5000"};
}

bool is_port(std::string_view text) {
    return !text.empty() && text.size() <= 5 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Result<UrlParts> parse_url(std::string_view url) {
    UrlParts parts;
    parts.is_tls = url.starts_with("https://");
    if (!parts.is_tls && !url.starts_with("http://"))
        return unusable(url, "it does not begin with http:// or https://");
    const std::string_view default_port = parts.is_tls ? "443" : "80";
    std::string_view rest = url.substr(url.find("://") + 3);
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
        parts.prefix = rest.substr(slash);
        rest = rest.substr(0, slash);
        while (parts.prefix.ends_with('/')) parts.prefix.pop_back();
        if (parts.prefix.find_first_of("?# ") != std::string::npos)
            return unusable(url, "it has a query, a fragment or a space");
    }
    if (rest.find('@') != std::string_view::npos)
        return unusable(url,
                        "it has a user name; give it in MLFLOW_TRACKING_USERNAME and the password "
                        "in MLFLOW_TRACKING_PASSWORD");
    std::size_t colon = rest.rfind(':');
    const bool is_v6 = rest.starts_with('[');
    const std::size_t bracket = rest.find(']');
    if (is_v6 && bracket == std::string_view::npos) return unusable(url, "a ']' is missing");
    if (is_v6 && colon != std::string_view::npos && colon < bracket) colon = std::string_view::npos;
    parts.port = default_port;
    if (colon != std::string_view::npos) {
        parts.port = rest.substr(colon + 1);
        rest = rest.substr(0, colon);
        if (!is_port(parts.port)) return unusable(url, "its port is not a number");
    }
    parts.host = is_v6 ? std::string(rest.substr(1, rest.size() - 2)) : std::string(rest);
    if (parts.host.empty()) return unusable(url, "it names no host");
    parts.authority =
        parts.port == default_port ? std::string(rest) : std::string(rest) + ":" + parts.port;
    return parts;
}

std::string percent_encode(std::string_view text, bool keep_slashes) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
                              c == '~' || (c == '/' && keep_slashes);
        if (is_plain) {
            out.push_back(c);
        } else {
            out.push_back('%');
            out.push_back(kHex[byte >> 4]);
            out.push_back(kHex[byte & 15]);
        }
    }
    return out;
}

}  // namespace tune::tracker
