// An untrusted file of CSV (first byte even) or of lines of JSON, as rows of shards. Property: an
// error, or records that move on and fields that are no longer than the text.

#include <algorithm>
#include <string_view>
#include <vector>

#include "loader/format/text/csv_parser.h"
#include "loader/rows/text/text_row.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace tune::loader;

const std::vector<TextColumn>& columns() {
    static const std::vector<TextColumn> planned =
        plan_text_columns(
            {}, {{"a", TextKind::kInteger}, {"b", TextKind::kReal}, {"c", TextKind::kText}})
            .value();
    return planned;
}

void read_csv(std::string_view text, char separator) {
    CsvParser parser(text, separator);
    TextRows rows(columns());
    TypeGuess guess;
    std::vector<std::string_view> fields;
    while (!parser.at_end()) {
        const std::size_t before = parser.position();
        if (!parser.next(fields)) return;
        FUZZ_CHECK(parser.position() > before && parser.position() <= text.size());
        std::size_t bytes = 0;
        for (const std::string_view field : fields) {
            bytes += field.size();
            guess.see(field);
        }
        FUZZ_CHECK(!fields.empty() && bytes <= parser.position() - before);
        const std::size_t last = fields.size() - 1;
        if (!rows.add_fields(fields, {0, last / 2, last})) return;
    }
    FUZZ_CHECK(rows.finish() != nullptr);
}

void read_lines(std::string_view text) {
    TextRows rows(columns());
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (!rows.add_json(text.substr(0, end))) return;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    FUZZ_CHECK(rows.finish() != nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 2 == 0)
        read_csv(text, data[0] % 4 == 0 ? ',' : '\t');
    else
        read_lines(text);
    return 0;
}
