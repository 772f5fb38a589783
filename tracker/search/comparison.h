#pragma once
// The shape of a filter: its comparisons as tokens, before a subject judges them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/tokens.h"

namespace tune::tracker::search {

/// left comparator right, or left IS [NOT] NULL (no right).
struct Comparison {
    Token left;
    Token comparator;
    std::optional<Token> right;
};

/// The comparisons of `filter`; views into it. Errors: kInvalidParameterValue naming what is no
/// comparison.
[[nodiscard]] Result<std::vector<Comparison>> take_comparisons(Subject subject,
                                                               std::string_view filter);

/// "not   like" -> "NOT LIKE".
[[nodiscard]] std::string canonical_comparator(const Token& token);

/// Errors: kInvalidParameterValue for a filter that is too long, blank, or several statements.
[[nodiscard]] Result<void> check_statement(Subject subject, std::string_view filter);

}  // namespace tune::tracker::search
