#pragma once
// The scanner of filters and order_by: text -> tokens, in one pass, without recursion.

#include <cstdint>
#include <string_view>
#include <vector>

namespace tune::tracker::search {

enum class TokenKind : std::uint8_t {
    kName,        // key, entity.key, entity."k e y", entity.`k e y`, `key`, "text"
    kString,      // 'text'
    kInteger,     // -12
    kFloat,       // -1.5e3
    kComparison,  // = != <= like "not like"
    kAnd,
    kIn,
    kNotIn,
    kIsNull,
    kIsNotNull,
    kList,       // ( ... ) with balanced parentheses
    kOperation,  // a-b: sqlparse sees arithmetic, MLflow refuses it
    kOther,      // anything else, a comment, or an unpaired quote or parenthesis
};

/// `text`: the part of the input, quotes and all.
struct Token {
    TokenKind kind = TokenKind::kOther;
    std::string_view text;
};

/// All tokens of `text`, without white space; views into it.
[[nodiscard]] std::vector<Token> scan(std::string_view text);

/// Equal but for ASCII case; `upper` in upper case.
[[nodiscard]] bool is_word(std::string_view text, std::string_view upper);

}  // namespace tune::tracker::search
