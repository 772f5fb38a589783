// Recursive descent over the tokens, at most kFilterDepthMax levels deep. A filter comes here only
// if it has OR, NOT or a group, which MLflow refuses; so nothing that MLflow accepts is read by
// this grammar, and both can never disagree on one text.

#include "tracker/search/grammar/condition.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text/python_text.h"
#include "base/text/utf8.h"
#include "tracker/search/grammar/comparison.h"
#include "tracker/search/grammar/identifier.h"
#include "tracker/search/grammar/tokens.h"
#include "tracker/search/grammar/validate.h"

namespace tune::tracker::search {
namespace {

/// A list in the place of a condition: a group. A list that something is compared with is none,
/// nor is one on the left of a comparison, which MLflow has a sentence for.
bool is_group(const std::vector<Token>& tokens, std::size_t i) {
    if (tokens[i].kind != TokenKind::kList) return false;
    const TokenKind before = i > 0 ? tokens[i - 1].kind : TokenKind::kAnd;
    const TokenKind after = i + 1 < tokens.size() ? tokens[i + 1].kind : TokenKind::kAnd;
    return before != TokenKind::kComparison && before != TokenKind::kIn &&
           before != TokenKind::kNotIn && after != TokenKind::kComparison;
}

/// Adds `part`, or its parts when it is of the same kind.
void join(Condition& whole, Condition part) {
    if (part.kind != whole.kind) {
        whole.parts.push_back(std::move(part));
        return;
    }
    for (Condition& one : part.parts) whole.parts.push_back(std::move(one));
}

class Parser {
public:
    Parser(Subject subject, std::string_view filter) : subject_(subject), filter_(filter) {}

    /// All of `text`, the filter or what a pair of parentheses holds.
    Result<Condition> parse(std::string_view text, int depth) {
        Cursor cursor{scan(text), 0, text};
        TUNE_TRY(condition, either(cursor, depth));
        if (cursor.at < cursor.tokens.size()) return unexpected(cursor, "AND, OR or the end");
        return condition;
    }

private:
    struct Cursor {
        std::vector<Token> tokens;
        std::size_t at = 0;
        std::string_view text;

        [[nodiscard]] bool take(TokenKind kind) {
            if (at >= tokens.size() || tokens[at].kind != kind) return false;
            ++at;
            return true;
        }
    };

    /// Parts by `next`, joined by `joint`; a single part stays what it is.
    Result<Condition> chain(Cursor& cursor, int depth, TokenKind joint, Condition::Kind kind,
                            Result<Condition> (Parser::*next)(Cursor&, int)) {
        TUNE_TRY(first, (this->*next)(cursor, depth));
        if (!cursor.take(joint)) return first;
        Condition whole{kind, {}, {}};
        join(whole, std::move(first));
        do {
            TUNE_TRY(part, (this->*next)(cursor, depth));
            join(whole, std::move(part));
        } while (cursor.take(joint));
        return whole;
    }

    Result<Condition> either(Cursor& cursor, int depth) {
        return chain(cursor, depth, TokenKind::kOr, Condition::Kind::kOr, &Parser::both);
    }

    Result<Condition> both(Cursor& cursor, int depth) {
        return chain(cursor, depth, TokenKind::kAnd, Condition::Kind::kAnd, &Parser::one);
    }

    Result<Condition> one(Cursor& cursor, int depth) {
        if (depth > kFilterDepthMax) return too_deep(cursor);
        if (cursor.take(TokenKind::kNot)) {
            TUNE_TRY(inner, one(cursor, depth + 1));
            Condition negation{Condition::Kind::kNot, {}, {}};
            negation.parts.push_back(std::move(inner));
            return negation;
        }
        if (cursor.at < cursor.tokens.size() && is_group(cursor.tokens, cursor.at)) {
            const std::string_view group = cursor.tokens[cursor.at++].text;
            return parse(group.substr(1, group.size() - 2), depth + 1);
        }
        return clause(cursor);
    }

    Result<Condition> clause(Cursor& cursor) {
        Comparison comparison;
        const std::size_t taken = take_comparison(cursor.tokens, cursor.at, comparison);
        if (taken == 0) return unexpected(cursor, "a comparison such as metrics.loss < 0.1");
        cursor.at += taken;
        if (++clause_count_ > kFilterClausesMax)
            return invalid_parameter("The filter has more than " +
                                     std::to_string(kFilterClausesMax) + " clauses.");
        TUNE_TRY(valid, validate(subject_, comparison));
        return Condition{Condition::Kind::kClause, std::move(valid), {}};
    }

    /// The number of the character at `place`, a part of the filter.
    std::string position(std::string_view place) const {
        const auto bytes = static_cast<std::size_t>(place.data() - filter_.data());
        const std::size_t characters = count_characters(filter_.substr(0, bytes));
        return "character " + std::to_string(characters + 1);
    }

    Error unexpected(const Cursor& cursor, const std::string& expected) const {
        if (cursor.at >= cursor.tokens.size()) {
            const std::string_view end = cursor.text.substr(cursor.text.size());
            return invalid_parameter("Invalid filter string: at " + position(end) + " " + expected +
                                     " is missing.");
        }
        const std::string_view found = cursor.tokens[cursor.at].text;
        const std::string where = position(found);
        if (found == "(")
            return invalid_parameter("Invalid filter string: the '(' at " + where +
                                     " is not closed.");
        if (found == ")")
            return invalid_parameter("Invalid filter string: the ')' at " + where +
                                     " closes nothing.");
        return invalid_parameter(
            "Invalid clause(s) in filter string: " + python_repr(shorten(found)) + " at " + where +
            ". Expected " + expected + ".");
    }

    Error too_deep(const Cursor& cursor) const {
        return invalid_parameter("The filter nests deeper than " + std::to_string(kFilterDepthMax) +
                                 " levels of parentheses and NOT, at " + position(cursor.text) +
                                 ".");
    }

    const Subject subject_;
    const std::string_view filter_;
    std::size_t clause_count_ = 0;
};

}  // namespace

bool is_boolean(std::string_view filter) {
    const std::vector<Token> tokens = scan(filter);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const TokenKind kind = tokens[i].kind;
        if (kind == TokenKind::kOr || kind == TokenKind::kNot || is_group(tokens, i)) return true;
    }
    return false;
}

Result<Condition> parse_condition(Subject subject, std::string_view filter) {
    return Parser(subject, filter).parse(filter, 0);
}

}  // namespace tune::tracker::search
