#pragma once
// The scanner of filters and order_by: text -> tokens, in one pass, without recursion.

#include <cstddef>
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
    kOr,
    kNot,
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

/// Tokens of a filter: 200 clauses are 800, so more is refused anyway.
inline constexpr std::size_t kTokensMax = 2'000;
/// Unpaired quotes and parentheses after which the rest is one token: looking for the other half of
/// each costs a pass over the text.
inline constexpr int kUnpairedMax = 16;

/// The tokens of `text`, without white space; views into it. After `tokens_max` of them the rest is
/// one token (kOther). Cost: O(text).
[[nodiscard]] std::vector<Token> scan(std::string_view text, std::size_t tokens_max = kTokensMax);

/// Equal but for ASCII case; `upper` in upper case.
[[nodiscard]] bool is_word(std::string_view text, std::string_view upper);

}  // namespace tune::tracker::search
