// The parser walks the text once and gives out views of it; only a field with doubled quotes is
// copied. The line is counted at line ends, the column comes from the offset when an error needs
// it.

#include "loader/format/text/csv_parser.h"

#include <charconv>

namespace tune::loader {

Result<void> CsvParser::next(std::vector<std::string_view>& fields) {
    fields.clear();
    unescaped_.clear();
    record_line_ = line_;
    while (true) {
        if (at_ < text_.size() && text_[at_] == '"') {
            TUNE_TRY(field, quoted_field());
            fields.push_back(field);
        } else {
            TUNE_TRY(field, plain_field());
            fields.push_back(field);
        }
        if (at_ < text_.size() && text_[at_] == separator_) {
            ++at_;
            continue;
        }
        end_line();
        return {};
    }
}

Error CsvParser::error_at(std::size_t at, std::string message) const {
    return Error{Code::kInvalidParameterValue, "line " + std::to_string(line_) + ", column " +
                                                   std::to_string(at - line_begin_ + 1) + ": " +
                                                   std::move(message)};
}

bool CsvParser::at_line_end() const {
    return at_ >= text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
}

void CsvParser::end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) ++at_;
    ++line_;
    line_begin_ = at_;
}

Result<std::string_view> CsvParser::plain_field() {
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != separator_) {
        if (text_[at_] == '"')
            return error_at(at_,
                            "a quote inside a field that does not begin with one; put the "
                            "field in quotes and double the quotes in it");
        ++at_;
    }
    return text_.substr(begin, at_ - begin);
}

Result<std::string_view> CsvParser::quoted_field() {
    const std::size_t open = at_;
    const std::int64_t open_line = line_;
    const std::size_t open_column = at_ - line_begin_ + 1;
    ++at_;
    bool has_doubled = false;
    while (true) {
        if (at_ >= text_.size())
            return Error{Code::kInvalidParameterValue,
                         "line " + std::to_string(open_line) + ", column " +
                             std::to_string(open_column) +
                             ": the quote that opens here is never closed"};
        const char next = text_[at_++];
        if (next == '\n') {
            ++line_;
            line_begin_ = at_;
        }
        if (next != '"') continue;
        if (at_ >= text_.size() || text_[at_] != '"') break;
        has_doubled = true;
        ++at_;
    }
    if (!at_line_end() && text_[at_] != separator_)
        return error_at(at_, "text after a closing quote");
    const std::string_view inside = text_.substr(open + 1, at_ - open - 2);
    return has_doubled ? without_doubled_quotes(inside) : inside;
}

std::string_view CsvParser::without_doubled_quotes(std::string_view inside) {
    std::string& field = unescaped_.emplace_back();
    for (std::size_t i = 0; i < inside.size(); ++i) {
        field.push_back(inside[i]);
        if (inside[i] == '"') ++i;
    }
    return field;
}

/// It starts as int and widens to float64 and then str at the first value that does not fit.
void TypeGuess::see(std::string_view text) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    if (level_ == 0) {
        std::int64_t number = 0;
        const auto parsed = std::from_chars(begin, end, number);
        if (parsed.ec == std::errc{} && parsed.ptr == end) return;
        level_ = 1;
    }
    if (level_ == 1) {
        double number = 0;
        const auto parsed = std::from_chars(begin, end, number);
        if (parsed.ec != std::errc::invalid_argument && parsed.ptr == end) return;
        level_ = 2;
    }
}

}  // namespace tune::loader
