#pragma once
// The shape of a filter: its comparisons as tokens, before a subject validates them.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/grammar/tokens.h"

namespace tune::tracker::search {

/// left comparator right, or left IS [NOT] NULL (no right).
struct Comparison {
    Token left;
    Token comparator;
    std::optional<Token> right;
};

/// The comparison that begins at tokens[i], and how many tokens it takes; 0 if there is none.
[[nodiscard]] std::size_t take_comparison(std::span<const Token> tokens, std::size_t i,
                                          Comparison& out);

/// The comparisons of `filter`, a filter of MLflow's kind; views into it. Errors:
/// kInvalidParameterValue naming what is no comparison.
[[nodiscard]] Result<std::vector<Comparison>> take_comparisons(Subject subject,
                                                               std::string_view filter);

/// "not   like" -> "NOT LIKE".
[[nodiscard]] std::string canonical_comparator(const Token& token);

/// Errors: kInvalidParameterValue for a filter that is too long, blank, or several statements.
[[nodiscard]] Result<void> check_statement(Subject subject, std::string_view filter);

}  // namespace tune::tracker::search
