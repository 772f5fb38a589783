// CSV after RFC 4180. The parser walks the text once and gives out views of it; only a field with
// doubled quotes is copied. The line is counted at line ends, the column comes from the offset when
// an error needs it. The natural type of a column is found by a pass over all its values: it starts
// as int and widens to float64 and then str at the first value that does not fit.

#include "loader/format/csv.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <set>
#include <string_view>
#include <utility>

#include "loader/source/mapped_file.h"

namespace tune::loader {
namespace {

/// Cuts text into records and fields. Fields point into the text, or, when they held doubled
/// quotes, into the parser; both until the next record.
class CsvParser {
public:
    CsvParser(std::string_view text, char separator) : text_(text), separator_(separator) {
        if (text_.starts_with("\xef\xbb\xbf")) at_ = line_begin_ = 3;
    }

    [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
    [[nodiscard]] std::size_t position() const { return at_; }
    /// Of the record given last, counted from 1.
    [[nodiscard]] std::int64_t record_line() const { return record_line_; }

    /// REQUIRES: !at_end().
    [[nodiscard]] Result<void> next(std::vector<std::string_view>& fields) {
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

private:
    [[nodiscard]] Error error_at(std::size_t at, std::string message) const {
        return Error{Code::kInvalidParameterValue, "line " + std::to_string(line_) + ", column " +
                                                       std::to_string(at - line_begin_ + 1) + ": " +
                                                       std::move(message)};
    }

    [[nodiscard]] bool at_line_end() const {
        return at_ >= text_.size() || text_[at_] == '\n' ||
               (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
    }

    void end_line() {
        if (at_ < text_.size() && text_[at_] == '\r') ++at_;
        if (at_ < text_.size()) ++at_;
        ++line_;
        line_begin_ = at_;
    }

    Result<std::string_view> plain_field() {
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

    Result<std::string_view> quoted_field() {
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

    std::string_view without_doubled_quotes(std::string_view inside) {
        std::string& field = unescaped_.emplace_back();
        for (std::size_t i = 0; i < inside.size(); ++i) {
            field.push_back(inside[i]);
            if (inside[i] == '"') ++i;
        }
        return field;
    }

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
    void see(std::string_view text) {
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

    [[nodiscard]] std::string encoding() const {
        return level_ == 0 ? "int" : level_ == 1 ? "float64" : "str";
    }

private:
    int level_ = 0;
};

class CsvReader final : public TableReader {
public:
    CsvReader(std::shared_ptr<const MappedFile> file, char separator)
        : file_(std::move(file)),
          text_(reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()),
          parser_(text_, separator) {}

    [[nodiscard]] Result<void> read_header() {
        if (parser_.at_end())
            return Error{Code::kInvalidParameterValue,
                         "the file is empty; its first line must name the columns"};
        TUNE_TRY_VOID(parser_.next(fields_));
        std::set<std::string_view> seen;
        for (const std::string_view name : fields_) {
            if (name.empty())
                return Error{
                    Code::kInvalidParameterValue,
                    "line 1: column " + std::to_string(names_.size() + 1) + " has no name"};
            if (!seen.insert(name).second)
                return Error{Code::kInvalidParameterValue,
                             "line 1: column '" + std::string(name) + "' is named twice"};
            selected_.push_back(names_.size());
            names_.emplace_back(name);
        }
        return {};
    }

    [[nodiscard]] const std::vector<std::string>& column_names() const override { return names_; }

    [[nodiscard]] Result<std::vector<std::string>> natural_encodings() override {
        std::vector<TypeGuess> guesses(names_.size());
        std::int64_t rows = 0;
        CsvParser parser = parser_;
        while (true) {
            TUNE_TRY(more, next_record(parser));
            if (!more) break;
            for (std::size_t i = 0; i < guesses.size(); ++i) guesses[i].see(fields_[i]);
            ++rows;
        }
        row_count_ = rows;
        std::vector<std::string> encodings;
        for (const TypeGuess& guess : guesses) encodings.push_back(guess.encoding());
        return encodings;
    }

    [[nodiscard]] Result<std::int64_t> row_count() override {
        if (row_count_ >= 0) return row_count_;
        std::int64_t rows = 0;
        CsvParser parser = parser_;
        while (true) {
            TUNE_TRY(more, next_record(parser));
            if (!more) break;
            ++rows;
        }
        row_count_ = rows;
        return rows;
    }

    [[nodiscard]] Result<void> select(const std::vector<std::size_t>& columns) override {
        selected_ = columns;
        return {};
    }

    [[nodiscard]] Result<bool> next(std::vector<Value>& row) override {
        TUNE_TRY(more, next_record(parser_));
        if (!more) return false;
        row.clear();
        for (const std::size_t column : selected_) row.emplace_back(fields_[column]);
        return true;
    }

    [[nodiscard]] std::string place() const override {
        return "line " + std::to_string(parser_.record_line());
    }

    [[nodiscard]] double progress() const override {
        return text_.empty()
                   ? 1
                   : static_cast<double>(parser_.position()) / static_cast<double>(text_.size());
    }

private:
    /// The next record that counts into fields_; checks the number of its fields.
    Result<bool> next_record(CsvParser& parser) {
        while (!parser.at_end()) {
            TUNE_TRY_VOID(parser.next(fields_));
            if (fields_.size() == names_.size()) return true;
            if (fields_.size() == 1 && fields_[0].empty()) continue;  // an empty line
            return Error{Code::kInvalidParameterValue,
                         "line " + std::to_string(parser.record_line()) + ": " +
                             std::to_string(fields_.size()) + " fields, but line 1 names " +
                             std::to_string(names_.size()) + " columns"};
        }
        return false;
    }

    std::shared_ptr<const MappedFile> file_;
    std::string_view text_;
    CsvParser parser_;
    std::vector<std::string_view> fields_;
    std::vector<std::string> names_;
    std::vector<std::size_t> selected_;
    std::int64_t row_count_ = -1;
};

}  // namespace

Result<std::unique_ptr<TableReader>> open_csv(const std::filesystem::path& path, char separator) {
    TUNE_TRY(file, MappedFile::open(path));
    auto reader = std::make_unique<CsvReader>(std::move(file), separator);
    TUNE_TRY_VOID(reader->read_header());
    return std::unique_ptr<TableReader>(std::move(reader));
}

}  // namespace tune::loader
