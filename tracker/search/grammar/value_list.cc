#include "tracker/search/grammar/value_list.h"

#include "tracker/search/grammar/identifier.h"
#include "tracker/search/grammar/tokens.h"

namespace tune::tracker::search {
namespace {

Error ill_formed() {
    return invalid_parameter(
        "While parsing a list in the query, expected a non-empty list of string values, but got "
        "ill-formed list.");
}

/// The escapes of a Python string that keys and ids can need; others stay as written.
std::string unescape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char next = i + 1 < text.size() ? text[i + 1] : '\0';
        if (text[i] != '\\' || std::string_view("\\'\"nt").find(next) == std::string_view::npos ||
            next == '\0') {
            out += text[i];
            continue;
        }
        out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
        ++i;
    }
    return out;
}

bool is_quoted(const Token& token) {
    const char first = token.text.front();
    const bool is_string =
        token.kind == TokenKind::kString || (token.kind == TokenKind::kName && first == '"');
    return is_string && token.text.size() >= 2 && token.text.back() == first;
}

}  // namespace

Result<std::vector<std::string>> parse_value_list(std::string_view text) {
    std::vector<std::string> values;
    const std::string_view inside = text.substr(1, text.size() - 2);
    bool wants_value = true;
    // One token more than allowed, so that the caller can say how many there are.
    for (const Token& token : scan(inside, 2 * kFilterListValuesMax + 4)) {
        if (token.text == "," && !wants_value) {
            wants_value = true;
            continue;
        }
        const bool is_number = token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat;
        if (is_number)
            return invalid_parameter(
                "While parsing a list in the query, expected string value, punctuation, or "
                "whitespace, but got different type in list: " +
                shorten(text));
        if (!wants_value || !is_quoted(token)) return ill_formed();
        values.push_back(unescape(token.text.substr(1, token.text.size() - 2)));
        wants_value = false;
    }
    if (values.empty())
        return invalid_parameter(
            "While parsing a list in the query, expected a non-empty list of string values, but "
            "got empty list");
    return values;
}

}  // namespace tune::tracker::search
