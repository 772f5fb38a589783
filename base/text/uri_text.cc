#include "base/text/uri_text.h"

#include <algorithm>

#include "base/text/text.h"
#include "tracker/store/registry/registry_types.h"

namespace tune::tracker {
namespace {

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_scheme(std::string_view text) {
    if (text.empty() || !is_letter(text.front())) return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    });
}

/// The character that the last three of `text` encode, or -1.
int encoded_at_end(std::string_view text) {
    if (text.size() < 3 || text[text.size() - 3] != '%') return -1;
    const int high = digit_of(text[text.size() - 2]);
    const int low = digit_of(text[text.size() - 1]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace

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
    if (colon != std::string_view::npos && is_scheme(rest.substr(0, colon))) {
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

std::string unquote_all(std::string_view text, bool plus_is_space) {
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

std::string unquote_once(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int code = encoded_at_end(text.substr(i, 3));
        if (code < 0) {
            out += text[i];
            continue;
        }
        out += static_cast<char>(code);
        i += 2;
    }
    return out;
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

bool is_beneath(const std::vector<std::string>& inner, const std::vector<std::string>& outer) {
    return inner.size() >= outer.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

}  // namespace tune::tracker
