// Splitting of URIs in the order of urllib.parse: strip, cut off the scheme, then the authority,
// then query and fragment. MLflow decides with that parser what a source names, so a split that is
// only equivalent for well-formed URIs would open what MLflow refuses. split_authority() judges
// nothing: it reports what is odd, and each caller (the client's address, a webhook's target, a
// Host header) has its own rule for that.

#include "base/text/uri.h"

#include <algorithm>

#include "base/text/text.h"

namespace tune {
namespace {

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool is_uri_scheme(std::string_view text) {
    if (text.empty() || !is_letter(text.front())) return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    });
}

UriParts split_uri(std::string_view uri) {
    // urllib strips what browsers strip.
    std::string clean;
    for (const char c : uri)
        if (c != '\t' && c != '\r' && c != '\n') clean += c;
    const std::size_t begin =
        std::min(static_cast<std::size_t>(std::find_if(clean.begin(), clean.end(),
                                                       [](unsigned char c) { return c > 0x20; }) -
                                          clean.begin()),
                 clean.size());
    std::string_view rest = std::string_view(clean).substr(begin);
    UriParts parts;
    const std::size_t colon = rest.find(':');
    if (colon != std::string_view::npos && is_uri_scheme(rest.substr(0, colon))) {
        parts.scheme = lower_ascii(rest.substr(0, colon));
        rest.remove_prefix(colon + 1);
    }
    if (rest.starts_with("//")) {
        const std::size_t end = std::min(rest.find_first_of("/?#", 2), rest.size());
        parts.authority = lower_ascii(rest.substr(2, end - 2));
        rest.remove_prefix(end);
    }
    parts.path = rest.substr(0, rest.find_first_of("?#"));
    return parts;
}

Authority split_authority(std::string_view authority) {
    Authority parts;
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
        parts.has_user = true;
        parts.user = authority.substr(0, at);
        authority.remove_prefix(at + 1);
    }
    std::size_t port_begin = authority.rfind(':');
    if (authority.starts_with('[')) {
        parts.is_bracketed = true;
        const std::size_t end = authority.find(']');
        if (end == std::string_view::npos) {
            parts.flaw = Authority::Flaw::kUnclosedBracket;
            return parts;
        }
        parts.host = authority.substr(1, end - 1);
        const bool is_host_only = end + 1 == authority.size();
        if (!is_host_only && authority[end + 1] != ':')
            parts.flaw = Authority::Flaw::kTextAfterBracket;
        port_begin = parts.flaw == Authority::Flaw::kNone && !is_host_only ? end + 1
                                                                           : std::string_view::npos;
    } else {
        parts.host = authority.substr(0, port_begin);
        if (parts.host.find(':') != std::string_view::npos)
            parts.flaw = Authority::Flaw::kColonInHost;
    }
    parts.has_port = port_begin != std::string_view::npos;
    if (parts.has_port) parts.port = authority.substr(port_begin + 1);
    return parts;
}

std::vector<std::string> path_parts(std::string_view path) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        if (end > begin) parts.emplace_back(path.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::vector<std::string> resolved_parts(std::string_view path) {
    std::vector<std::string> resolved;
    for (std::string& part : path_parts(path)) {
        if (part == ".") continue;
        if (part != "..") {
            resolved.push_back(std::move(part));
        } else if (!resolved.empty()) {
            resolved.pop_back();
        }
    }
    return resolved;
}

bool is_in_folder(const std::vector<std::string>& inner, const std::vector<std::string>& outer) {
    return inner.size() >= outer.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

}  // namespace tune
