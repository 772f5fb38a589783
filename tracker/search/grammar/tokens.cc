// The rules of sqlparse where they show: which characters make a bare name, how quotes are escaped,
// when 1_000 is a name. Tokens are views into the text, and scanning ends at `tokens_max`, so a
// hostile filter costs no more than a long honest one.

#include "tracker/search/grammar/tokens.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace tune::tracker::search {
namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Characters of a bare name; every byte of a foreign script is one.
bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '$' || c == '@' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_comparison_character(char c) {
    return c == '<' || c == '>' || c == '=' || c == '!' || c == '~';
}

char upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

class Scanner {
public:
    Scanner(std::string_view text, std::size_t tokens_max) : text_(text), tokens_max_(tokens_max) {}

    std::vector<Token> scan_all() {
        for (skip_space(); at_ < text_.size(); skip_space()) {
            const bool is_hopeless = tokens_.size() >= tokens_max_ || unpaired_ >= kUnpairedMax;
            if (is_hopeless)
                add(TokenKind::kOther, text_.size());
            else
                scan_one();
        }
        return std::move(tokens_);
    }

private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }

    void skip_space() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }

    void add(TokenKind kind, std::size_t end) {
        tokens_.push_back({kind, text_.substr(at_, end - at_)});
        at_ = end;
    }

    /// The character at the cursor has no other half.
    void add_unpaired() {
        ++unpaired_;
        add(TokenKind::kOther, at_ + 1);
    }

    void scan_one() {
        const char c = peek();
        const bool is_number =
            is_digit(c) || (c == '.' && is_digit(peek(1))) ||
            (c == '-' && (is_digit(peek(1)) || (peek(1) == '.' && is_digit(peek(2)))));
        if (c == '\'') return scan_string();
        if (is_number) return scan_number();
        if (is_name_character(c) || c == '`' || c == '"') return scan_name();
        if (is_comparison_character(c)) return scan_comparison();
        if (c == '(') return scan_list();
        if (c == '-' && peek(1) == '-')
            return add(TokenKind::kOther, std::min(text_.find('\n', at_), text_.size()));
        if (c == '/' && peek(1) == '*') return scan_comment();
        add(TokenKind::kOther, at_ + 1);
    }

    /// Position behind the closing quote of the quoted text at `from`; nothing if it is not closed.
    /// A doubled quote and one behind a backslash do not close, as in sqlparse.
    std::optional<std::size_t> end_of_quoted(std::size_t from) const {
        const char quote = text_[from];
        for (std::size_t i = from + 1; i < text_.size(); ++i) {
            if (text_[i] == '\\' && quote != '`' && i + 1 < text_.size() && text_[i + 1] == quote) {
                // 'a\' is closed when nothing else closes it.
                if (text_.find(quote, i + 2) == std::string_view::npos) return i + 2;
                ++i;
            } else if (text_[i] == quote) {
                if (i + 1 >= text_.size() || text_[i + 1] != quote) return i + 1;
                ++i;
            }
        }
        return std::nullopt;
    }

    void scan_string() {
        const auto end = end_of_quoted(at_);
        if (!end) return add_unpaired();
        add(TokenKind::kString, *end);
    }

    void scan_comment() {
        const std::size_t end = text_.find("*/", at_ + 2);
        add(TokenKind::kOther, end == std::string_view::npos ? text_.size() : end + 2);
    }

    void scan_comparison() {
        std::size_t end = at_;
        while (end < text_.size() && is_comparison_character(text_[end])) ++end;
        add(TokenKind::kComparison, end);
    }

    std::size_t end_of_digits(std::size_t from) const {
        while (from < text_.size() && is_digit(text_[from])) ++from;
        return from;
    }

    void scan_number() {
        std::size_t end = end_of_digits(peek() == '-' ? at_ + 1 : at_);
        TokenKind kind = TokenKind::kInteger;
        if (end < text_.size() && text_[end] == '.') {
            kind = TokenKind::kFloat;
            end = end_of_digits(end + 1);
        }
        if (end < text_.size() && upper(text_[end]) == 'E') {
            std::size_t digits = end + 1;
            if (digits < text_.size() && (text_[digits] == '+' || text_[digits] == '-')) ++digits;
            if (end_of_digits(digits) > digits) {
                kind = TokenKind::kFloat;
                end = end_of_digits(digits);
            }
        }
        if (end < text_.size() && is_name_character(text_[end])) return scan_odd_word(end);
        add(kind, end);
    }

    /// 1_000 and 1a are names to sqlparse, 0x10 is a number that MLflow does not know.
    void scan_odd_word(std::size_t end) {
        const bool is_hex = peek() == '0' && upper(peek(1)) == 'X';
        while (end < text_.size() && is_name_character(text_[end])) ++end;
        add(is_hex ? TokenKind::kOther : TokenKind::kName, end);
    }

    /// Position behind the name (with its dots and quoted parts) that begins at the cursor.
    std::optional<std::size_t> end_of_name() const {
        std::size_t end = at_;
        for (bool is_first = true;; is_first = false) {
            const char c = end < text_.size() ? text_[end] : '\0';
            if (c == '`' || c == '"' || (c == '\'' && !is_first)) {
                const auto quoted = end_of_quoted(end);
                if (!quoted) return is_first ? std::nullopt : std::optional(end);
                end = *quoted;
            } else {
                while (end < text_.size() && is_name_character(text_[end])) ++end;
            }
            if (end >= text_.size() || text_[end] != '.') return end;
            ++end;
        }
    }

    void scan_name() {
        const auto name_end = end_of_name();
        if (!name_end) return add_unpaired();
        std::size_t end = *name_end;
        const std::string_view word = text_.substr(at_, end - at_);
        if (scan_keyword(word)) return;
        TokenKind kind = TokenKind::kName;
        while (end + 1 < text_.size() &&
               std::string_view("-+/*%").find(text_[end]) != std::string_view::npos &&
               is_name_character(text_[end + 1])) {
            kind = TokenKind::kOperation;
            ++end;
            while (end < text_.size() && (is_name_character(text_[end]) || text_[end] == '.'))
                ++end;
        }
        add(kind, end);
    }

    /// The bare word after `from` and the white space there: its end, if it is `upper_word`.
    std::optional<std::size_t> end_of_word(std::size_t from, std::string_view upper_word) const {
        std::size_t begin = from;
        while (begin < text_.size() && is_space(text_[begin])) ++begin;
        const std::size_t end = begin + upper_word.size();
        if (begin == from || end > text_.size()) return std::nullopt;
        if (!is_word(text_.substr(begin, upper_word.size()), upper_word)) return std::nullopt;
        if (end < text_.size() && (is_name_character(text_[end]) || text_[end] == '.'))
            return std::nullopt;
        return end;
    }

    bool scan_keyword(std::string_view word) {
        const std::size_t end = at_ + word.size();
        if (is_word(word, "AND")) return add(TokenKind::kAnd, end), true;
        if (is_word(word, "OR")) return add(TokenKind::kOr, end), true;
        if (is_word(word, "IN")) return add(TokenKind::kIn, end), true;
        for (const char* like : {"LIKE", "ILIKE", "RLIKE"}) {
            if (is_word(word, like)) return add(TokenKind::kComparison, end), true;
            const auto not_like = end_of_word(end, like);
            if (is_word(word, "NOT") && not_like)
                return add(TokenKind::kComparison, *not_like), true;
        }
        if (is_word(word, "NOT")) {
            if (const auto in = end_of_word(end, "IN")) return add(TokenKind::kNotIn, *in), true;
            return add(TokenKind::kNot, end), true;
        }
        if (!is_word(word, "IS")) return false;
        if (const auto null = end_of_word(end, "NULL")) return add(TokenKind::kIsNull, *null), true;
        const auto negated = end_of_word(end, "NOT");
        const auto null = negated ? end_of_word(*negated, "NULL") : std::nullopt;
        if (null) return add(TokenKind::kIsNotNull, *null), true;
        return false;
    }

    void scan_list() {
        std::size_t depth = 0;
        for (std::size_t i = at_; i < text_.size(); ++i) {
            const char c = text_[i];
            if (c == '\'' || c == '"' || c == '`') {
                const auto end = end_of_quoted(i);
                if (!end) break;
                i = *end - 1;
            } else if (c == '(') {
                ++depth;
            } else if (c == ')' && --depth == 0) {
                return add(TokenKind::kList, i + 1);
            }
        }
        add_unpaired();
    }

    std::string_view text_;
    std::size_t tokens_max_;
    std::size_t at_ = 0;
    int unpaired_ = 0;
    std::vector<Token> tokens_;
};

}  // namespace

bool is_word(std::string_view text, std::string_view upper_word) {
    return std::equal(text.begin(), text.end(), upper_word.begin(), upper_word.end(),
                      [](char a, char b) { return upper(a) == b; });
}

std::vector<Token> scan(std::string_view text, std::size_t tokens_max) {
    return Scanner(text, tokens_max).scan_all();
}

}  // namespace tune::tracker::search
