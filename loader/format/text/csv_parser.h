#pragma once
// CSV after RFC 4180.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// Cuts text into records and fields. Fields point into the text, or, when they held doubled
/// quotes, into the parser; both until the next record. Copies go on where the original stands.
class CsvParser {
public:
    CsvParser(std::string_view text, char separator) : text_(text), separator_(separator) {
        if (text_.starts_with("\xef\xbb\xbf")) at_ = line_begin_ = 3;
    }

    [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
    [[nodiscard]] std::size_t position() const { return at_; }
    /// Of the record given last, counted from 1.
    [[nodiscard]] std::int64_t record_line() const { return record_line_; }
    /// Of the record that comes next.
    [[nodiscard]] std::int64_t next_line() const { return line_; }

    /// Errors: kInvalidParameterValue with line and column. REQUIRES: !at_end().
    [[nodiscard]] Result<void> next(std::vector<std::string_view>& fields);

private:
    [[nodiscard]] Error error_at(std::size_t at, std::string message) const;
    [[nodiscard]] bool at_line_end() const;
    void end_line();
    Result<std::string_view> plain_field();
    Result<std::string_view> quoted_field();
    std::string_view without_doubled_quotes(std::string_view inside);

    std::string_view text_;
    char separator_;
    std::size_t at_ = 0;
    std::int64_t line_ = 1;
    std::size_t line_begin_ = 0;
    std::int64_t record_line_ = 1;
    std::deque<std::string> unescaped_;
};

/// The narrowest of int, float64 and str that took every value so far.
class TypeGuess {
public:
    void see(std::string_view text);
    [[nodiscard]] std::string encoding() const {
        return level_ == 0 ? "int" : level_ == 1 ? "float64" : "str";
    }

private:
    int level_ = 0;
};

}  // namespace tune::loader
