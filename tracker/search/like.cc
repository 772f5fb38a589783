#include "tracker/search/like.h"

#include <cstddef>

#include "base/text/utf8.h"

namespace tune::tracker::search {
namespace {

char fold(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::size_t character_bytes(std::string_view text, std::size_t at) {
    std::size_t end = at + 1;
    while (end < text.size() && is_utf8_continuation(text[end])) ++end;
    return end - at;
}

template <class Equal>
bool matches(std::string_view value, std::string_view pattern, Equal equal) {
    std::size_t v = 0;
    std::size_t p = 0;
    std::size_t retry_value = 0;
    std::size_t retry_pattern = std::string_view::npos;  // behind the last '%'
    while (v < value.size()) {
        if (p < pattern.size() && pattern[p] == '%') {
            retry_pattern = ++p;
            retry_value = v;
        } else if (p < pattern.size() && pattern[p] == '_') {
            v += character_bytes(value, v);
            ++p;
        } else if (p < pattern.size() && equal(value[v], pattern[p])) {
            ++v;
            ++p;
        } else if (retry_pattern != std::string_view::npos) {
            // The last '%' takes one character more.
            retry_value += character_bytes(value, retry_value);
            v = retry_value;
            p = retry_pattern;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '%') ++p;
    return p == pattern.size();
}

}  // namespace

bool is_like(std::string_view value, std::string_view pattern) {
    return matches(value, pattern, [](char a, char b) { return a == b; });
}

bool is_ilike(std::string_view value, std::string_view pattern) {
    return matches(value, pattern, [](char a, char b) { return fold(a) == fold(b); });
}

}  // namespace tune::tracker::search
