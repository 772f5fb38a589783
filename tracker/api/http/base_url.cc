#include "tracker/api/http/base_url.h"

#include <algorithm>

namespace tune::tracker {
namespace {

bool is_made_of(std::string_view text, std::string_view more_than_letters_and_digits) {
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               more_than_letters_and_digits.find(c) != std::string_view::npos;
    });
}

/// The first of several values: each further proxy appends its own.
std::string_view first_of_list(std::string_view header) {
    header = header.substr(0, header.find(','));
    while (header.ends_with(' ')) header.remove_suffix(1);
    return header;
}

std::string forwarded_prefix(const Request& request) {
    std::string_view prefix = first_of_list(request.header("X-Forwarded-Prefix"));
    while (prefix.ends_with('/')) prefix.remove_suffix(1);
    const bool is_path =
        prefix.starts_with('/') && !prefix.starts_with("//") && is_made_of(prefix, "/._~-");
    return std::string(is_path ? prefix : std::string_view{});
}

}  // namespace

std::string base_url(const Request& request, std::string_view static_prefix) {
    const std::string_view scheme = first_of_list(request.header("X-Forwarded-Proto"));
    const std::string_view outer = first_of_list(request.header("X-Forwarded-Host"));
    const bool has_outer = !outer.empty() && is_made_of(outer, ".-:[]");
    const bool is_https = scheme.empty() ? request.is_encrypted : scheme == "https";
    std::string url = is_https ? "https://" : "http://";
    url.append(has_outer ? outer : request.header("Host"));
    url.append(forwarded_prefix(request)).append(static_prefix);
    return url;
}

}  // namespace tune::tracker
