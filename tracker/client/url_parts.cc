#include "tracker/client/url_parts.h"

#include "base/text/uri.h"

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
    const Authority authority = split_authority(rest);
    if (authority.has_user)
        return unusable(url,
                        "it has a user name; give it in MLFLOW_TRACKING_USERNAME and the password "
                        "in MLFLOW_TRACKING_PASSWORD");
    if (authority.flaw == Authority::Flaw::kUnclosedBracket)
        return unusable(url, "a ']' is missing");
    if (authority.flaw == Authority::Flaw::kTextAfterBracket)
        return unusable(url, "behind the ']' stands something else than a port");
    if (authority.has_port && !is_port(authority.port))
        return unusable(url, "its port is not a number");
    if (authority.host.empty()) return unusable(url, "it names no host");
    parts.host = authority.host;
    parts.port = authority.has_port ? authority.port : default_port;
    parts.authority = authority.is_bracketed ? "[" + parts.host + "]" : parts.host;
    if (parts.port != default_port) parts.authority += ":" + parts.port;
    return parts;
}

}  // namespace tune::tracker
