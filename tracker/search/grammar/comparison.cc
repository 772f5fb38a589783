// MLflow reads a filter with sqlparse, which groups `key op value` wherever it finds it and lets an
// AND be left out. This file finds the same groups in a list of tokens; what sqlparse would not
// group is left over and refused with MLflow's sentence.

#include "tracker/search/grammar/comparison.h"

#include <algorithm>
#include <span>

#include "base/text/python_text.h"
#include "tracker/search/grammar/identifier.h"

namespace tune::tracker::search {
namespace {

bool is_operand(TokenKind kind) {
    switch (kind) {
        case TokenKind::kName:
        case TokenKind::kString:
        case TokenKind::kInteger:
        case TokenKind::kFloat:
        case TokenKind::kList:
        case TokenKind::kOperation: return true;
        default: return false;
    }
}

Error invalid_clauses(Subject subject, std::string_view filter,
                      const std::vector<std::string_view>& invalid) {
    if (subject == Subject::kLoggedModels)
        return invalid_parameter("Invalid filter string: " + python_repr(shorten(filter)) +
                                 ". Expected a list of comparisons separated by 'AND' (e.g. "
                                 "'metrics.loss > 0.1 AND params.lr = 0.01').");
    const std::string quote = subject == Subject::kRuns ? "'" : "";
    std::string list;
    constexpr std::size_t kListedMax = 20;
    for (const std::string_view clause :
         std::span(invalid).first(std::min(invalid.size(), kListedMax)))
        list += (list.empty() ? "" : ", ") + quote + shorten(clause) + quote;
    return invalid_parameter("Invalid clause(s) in filter string: " + list);
}

}  // namespace

std::size_t take_comparison(std::span<const Token> tokens, std::size_t i, Comparison& out) {
    const std::size_t left = tokens.size() - i;
    if (left < 2 || !is_operand(tokens[i].kind)) return 0;
    out = {tokens[i], tokens[i + 1], std::nullopt};
    const bool is_name = tokens[i].kind == TokenKind::kName;
    const TokenKind comparator = tokens[i + 1].kind;
    if (comparator == TokenKind::kIsNull || comparator == TokenKind::kIsNotNull)
        return is_name ? 2 : 0;
    if (left < 3) return 0;
    out.right = tokens[i + 2];
    if (comparator == TokenKind::kComparison) return is_operand(tokens[i + 2].kind) ? 3 : 0;
    const bool is_in = comparator == TokenKind::kIn || comparator == TokenKind::kNotIn;
    return is_name && is_in && tokens[i + 2].kind == TokenKind::kList ? 3 : 0;
}

Result<std::vector<Comparison>> take_comparisons(Subject subject, std::string_view filter) {
    const std::vector<Token> tokens = scan(filter);
    std::vector<Comparison> comparisons;
    std::vector<std::string_view> invalid;
    std::size_t last_taken = 0;
    for (std::size_t i = 0; i < tokens.size();) {
        Comparison comparison;
        std::size_t taken = take_comparison(tokens, i, comparison);
        // MLflow lets an AND be left out, but not here: it takes both for one name.
        if (taken == 2 && last_taken == 3) taken = 0;
        if (taken > 0) comparisons.push_back(comparison);
        if (taken == 0 && tokens[i].kind != TokenKind::kAnd) invalid.push_back(tokens[i].text);
        last_taken = taken;
        i += taken > 0 ? taken : 1;
    }
    if (!invalid.empty()) return invalid_clauses(subject, filter, invalid);
    if (comparisons.size() > kFilterClausesMax)
        return invalid_parameter("The filter has " + std::to_string(comparisons.size()) +
                                 " clauses; at most " + std::to_string(kFilterClausesMax) +
                                 " are supported.");
    return comparisons;
}

std::string canonical_comparator(const Token& token) {
    switch (token.kind) {
        case TokenKind::kIn: return "IN";
        case TokenKind::kNotIn: return "NOT IN";
        case TokenKind::kIsNull: return "IS NULL";
        case TokenKind::kIsNotNull: return "IS NOT NULL";
        default: break;
    }
    std::string text;
    for (const char c : token.text.substr(0, 500)) {
        const bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
        if (is_space && (text.empty() || text.back() == ' ')) continue;
        text += is_space ? ' ' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return text;
}

Result<void> check_statement(Subject subject, std::string_view filter) {
    if (filter.size() > kFilterBytesMax)
        return invalid_parameter("The filter is longer than " + std::to_string(kFilterBytesMax) +
                                 " bytes.");
    bool has_text = false;
    bool is_ended = false;
    for (const Token& token : scan(filter)) {
        has_text = true;
        if (is_ended && subject == Subject::kLoggedModels)
            return invalid_parameter("Invalid filter string: " + python_repr(shorten(filter)) +
                                     ". Expected a single SQL expression.");
        if (is_ended)
            return invalid_parameter("Search filter contained multiple expression " +
                                     python_repr(shorten(filter)) +
                                     ". Provide AND-ed expression list.");
        is_ended = is_ended || token.text == ";";
    }
    if (!has_text && !filter.empty())
        return invalid_parameter("Invalid filter '" + shorten(filter) + "'. Could not be parsed.");
    return {};
}

}  // namespace tune::tracker::search
