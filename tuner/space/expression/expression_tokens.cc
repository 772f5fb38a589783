// Text to tokens, the longest symbol first (`**` before `*`). Each token knows its column, for the
// errors of the parser. Operators of other languages (&&, ||, !, ^, a single =) are refused with
// the spelling that is meant. A name may hold dots, for parameters such as opt.lr; any other name
// stands in {braces}. A number must be finite as a double and end where no name begins, so that 2x
// is not read as 2 times x, nor 1e5x as anything.

#include "tuner/space/expression/expression_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tuner/space/error_text.h"
#include "tuner/space/expression/expression.h"

namespace tune::tuner {
namespace {

constexpr std::array<std::string_view, 12> kReserved = {
    "and", "or", "not", "in", "if", "else", "true", "false", "null", "True", "False", "None"};

constexpr std::array<std::string_view, 19> kSymbols = {"**", "//", "==", "!=", "<=", ">=", "<",
                                                       ">",  "+",  "-",  "*",  "/",  "%",  "(",
                                                       ")",  "[",  "]",  ",",  "="};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    Result<std::vector<Token>> read() {
        if (text_.size() > kExpressionBytesMax)
            return error("the expression has " + std::to_string(text_.size()) + " bytes; at most " +
                         std::to_string(kExpressionBytesMax) + " are supported");
        for (;;) {
            while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
            Token token;
            token.column = at_ + 1;
            if (at_ < text_.size()) TUNE_TRY_VOID(read_token(token));
            tokens_.push_back(std::move(token));
            if (tokens_.back().kind == Token::Kind::kEnd) return std::move(tokens_);
        }
    }

private:
    static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

    Error error(std::string_view message) const {
        return expression_error(text_, at_ + 1, message);
    }

    Result<void> read_token(Token& token) {
        const char c = text_[at_];
        if (c == '\'' || c == '"') return read_text(token);
        if (c == '{') return read_braced(token);
        if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
            return read_number(token);
        if (starts_name(c)) {
            std::size_t end = at_ + 1;
            while (end < text_.size() &&
                   (starts_name(text_[end]) || is_digit(text_[end]) || text_[end] == '.'))
                ++end;
            token.text = text_.substr(at_, end - at_);
            const bool is_word =
                std::find(kReserved.begin(), kReserved.end(), token.text) != kReserved.end();
            token.kind = is_word ? Token::Kind::kWord : Token::Kind::kName;
            at_ = end;
            return {};
        }
        for (const std::string_view symbol : kSymbols) {
            if (!text_.substr(at_).starts_with(symbol)) continue;
            if (symbol == "=") return error("a single '='; a comparison is '=='");
            token.kind = Token::Kind::kSymbol;
            token.text = symbol;
            at_ += symbol.size();
            return {};
        }
        if (text_.substr(at_).starts_with("&&")) return error("'&&'; write 'and'");
        if (text_.substr(at_).starts_with("||")) return error("'||'; write 'or'");
        if (c == '!') return error("'!'; write 'not'");
        if (c == '^') return error("'^'; a power is '**'");
        return error("unexpected " + in_quotes(text_.substr(at_, 1)));
    }

    Result<void> read_text(Token& token) {
        const char quote = text_[at_];
        std::size_t end = at_ + 1;
        for (; end < text_.size() && text_[end] != quote; ++end) {
            const bool escapes =
                text_[end] == '\\' && end + 1 < text_.size() &&
                (text_[end + 1] == '\\' || text_[end + 1] == '\'' || text_[end + 1] == '"');
            if (escapes) ++end;
            token.text += text_[end];
        }
        if (end >= text_.size()) return error("the quote is never closed");
        token.kind = Token::Kind::kText;
        at_ = end + 1;
        return {};
    }

    /// {weight-decay}: any name.
    Result<void> read_braced(Token& token) {
        const std::size_t end = text_.find('}', at_);
        if (end == std::string_view::npos) return error("'{' is never closed; expected {name}");
        token.kind = Token::Kind::kName;
        token.text = text_.substr(at_ + 1, end - at_ - 1);
        if (token.text.empty()) return error("'{}' holds no name");
        at_ = end + 1;
        return {};
    }

    Result<void> read_number(Token& token) {
        const char* begin = text_.data() + at_;
        const char* end = text_.data() + text_.size();
        const auto [stop, ec] = std::from_chars(begin, end, token.number);
        if (ec != std::errc() || !std::isfinite(token.number))
            return error("the number is too large or too small for a double");
        if (stop != end && starts_name(*stop))
            return error("expected an operator between the number and the name");
        token.kind = Token::Kind::kNumber;
        token.is_integer = std::all_of(begin, stop, is_digit);
        at_ += static_cast<std::size_t>(stop - begin);
        return {};
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::vector<Token> tokens_;
};

}  // namespace

Error expression_error(std::string_view text, std::size_t column, std::string_view message) {
    return Error{Code::kInvalidParameterValue, "in " + in_quotes(text) + ", column " +
                                                   std::to_string(column) + ": " +
                                                   std::string(message)};
}

Result<std::vector<Token>> tokens_of(std::string_view text) {
    return Lexer(text).read();
}

Result<std::vector<std::string>> names_in(std::string_view text) {
    TUNE_TRY(tokens, tokens_of(text));
    std::vector<std::string> names;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
        if (tokens[i].kind == Token::Kind::kName && !tokens[i + 1].is("("))
            names.push_back(tokens[i].text);
    return names;
}

}  // namespace tune::tuner
