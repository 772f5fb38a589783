#pragma once
// The words of an expression. Private to tuner/space.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::tuner {

struct Token {
    enum class Kind { kNumber, kText, kName, kWord, kSymbol, kEnd };

    Kind kind = Kind::kEnd;
    std::string text;         // kText: without quotes; kWord: and, or, not, in, if, else, true, ...
    double number = 0;        // kNumber
    bool is_integer = false;  // kNumber: written without point and exponent
    std::size_t column = 1;   // 1-based

    [[nodiscard]] bool is(std::string_view symbol_or_word) const {
        return (kind == Kind::kSymbol || kind == Kind::kWord) && text == symbol_or_word;
    }
};

/// Ends with a kEnd token. Errors: kInvalidParameterValue, "in 'lr $', column 4: ...".
[[nodiscard]] Result<std::vector<Token>> tokens_of(std::string_view text);

[[nodiscard]] Error expression_error(std::string_view text, std::size_t column,
                                     std::string_view message);

}  // namespace tune::tuner
