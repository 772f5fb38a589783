// Tables of CSV on their way into a data set. The natural type of a column is found by a pass over
// all its values.

#include "loader/format/csv.h"

#include <set>
#include <string_view>
#include <utility>

#include "base/text/counted.h"
#include "loader/format/text/csv_parser.h"
#include "loader/source/mapped_file.h"

namespace tune::loader {
namespace {

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
                             counted(static_cast<std::int64_t>(names_.size()), "column")};
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
