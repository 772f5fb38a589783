#include "loader/format/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Rows = std::vector<std::vector<std::string>>;

/// The header and the rows of a file, or its error.
Result<Rows> read_all(std::string_view text, char separator = ',') {
    const Scratch scratch;
    write_bytes(scratch / "t.csv", text);
    TUNE_TRY(table, open_csv(scratch / "t.csv", separator));
    Rows rows = {table->column_names()};
    std::vector<Value> values;
    while (true) {
        TUNE_TRY(more, table->next(values));
        if (!more) return rows;
        rows.emplace_back();
        for (const Value& value : values)
            rows.back().emplace_back(std::get<std::string_view>(value));
    }
}

std::string fault(std::string_view text) {
    const auto rows = read_all(text);
    return rows ? "no error" : rows.error().message;
}

TEST(Csv, ReadsRfc4180) {
    EXPECT_EQ(read_all("a,b\n1,2\n").value(), (Rows{{"a", "b"}, {"1", "2"}}));
    EXPECT_EQ(read_all("a,b\r\n1,2\r\n3,4").value(), (Rows{{"a", "b"}, {"1", "2"}, {"3", "4"}}));
    EXPECT_EQ(read_all("a,b\n\"x,y\",\"l1\nl2\"\n").value(), (Rows{{"a", "b"}, {"x,y", "l1\nl2"}}));
    EXPECT_EQ(read_all("a,b\n\"he said \"\"no\"\"\",\"\"\n").value(),
              (Rows{{"a", "b"}, {"he said \"no\"", ""}}));
    EXPECT_EQ(read_all("a,b\n,\n").value(), (Rows{{"a", "b"}, {"", ""}}));
    EXPECT_EQ(read_all("\xef\xbb\xbf"
                       "a,b\n1,2\n")
                  .value(),
              (Rows{{"a", "b"}, {"1", "2"}}));
    EXPECT_EQ(read_all("a\tb\n1\t2,3\n", '\t').value(), (Rows{{"a", "b"}, {"1", "2,3"}}));
    EXPECT_EQ(read_all("\"a\",\"b,c\"\n1,2\n").value(), (Rows{{"a", "b,c"}, {"1", "2"}}));
}

TEST(Csv, EmptyLinesAreSkippedUnlessTheyAreValues) {
    EXPECT_EQ(read_all("a,b\n\n1,2\n\n").value(), (Rows{{"a", "b"}, {"1", "2"}}));
    EXPECT_EQ(read_all("a\n1\n\n2\n").value(), (Rows{{"a"}, {"1"}, {""}, {"2"}}));
}

TEST(Csv, ErrorsNameLineAndColumn) {
    EXPECT_THAT(fault("a,b\n1,2\n3\n"), HasSubstr("line 3: 1 fields, but line 1 names 2 columns"));
    EXPECT_THAT(fault("a,b\n1,2,3\n"), HasSubstr("line 2: 3 fields"));
    EXPECT_THAT(fault("a,b\n1,\"2\n3,4\n"), HasSubstr("line 2, column 3: the quote that opens"));
    EXPECT_THAT(fault("a,b\n1,\"2\"x\n"),
                HasSubstr("line 2, column 6: text after a closing quote"));
    EXPECT_THAT(fault("a,b\n1,2\"\n"), HasSubstr("line 2, column 4: a quote inside a field"));
    EXPECT_THAT(fault("a,b\n\"x\ny\",2\n3\n"), HasSubstr("line 4: 1 fields"));
    EXPECT_THAT(fault(""), HasSubstr("the file is empty"));
    EXPECT_THAT(fault("a,,b\n"), HasSubstr("line 1: column 2 has no name"));
    EXPECT_THAT(fault("a,a\n"), HasSubstr("column 'a' is named twice"));
}

TEST(Csv, FindsTheNarrowestEncoding) {
    const Scratch scratch;
    write_bytes(scratch / "t.csv",
                "i,f,s,e,big\n1,1.5,x,,9223372036854775807\n-2,1e9,2,1,9223372036854775808\n");
    const auto table = open_csv(scratch / "t.csv", ',').value();
    EXPECT_THAT(table->natural_encodings().value(),
                ElementsAre("int", "float64", "str", "str", "float64"));
    EXPECT_EQ(table->row_count().value(), 2);
    std::vector<Value> row;
    ASSERT_TRUE(table->next(row).value());  // the passes did not move the reader
    EXPECT_EQ(table->place(), "line 2");
    EXPECT_EQ(std::get<std::string_view>(row[0]), "1");
}

TEST(Csv, GivesTheSelectedColumnsInTheirOrder) {
    const Scratch scratch;
    write_bytes(scratch / "t.csv", "a,b,c\n1,2,3\n");
    const auto table = open_csv(scratch / "t.csv", ',').value();
    ASSERT_TRUE(table->select({2, 0, 2}));
    std::vector<Value> row;
    ASSERT_TRUE(table->next(row).value());
    ASSERT_EQ(row.size(), 3U);
    EXPECT_EQ(std::get<std::string_view>(row[0]), "3");
    EXPECT_EQ(std::get<std::string_view>(row[1]), "1");
    EXPECT_FALSE(table->next(row).value());
    EXPECT_EQ(table->progress(), 1.0);
}

TEST(Csv, AnyBytesAreAnErrorOrRows) {
    const std::string text = "a,b\n1,\"x\"\"y\"\r\n\"\n\",2\n";
    for (std::size_t size = 0; size <= text.size(); ++size) (void)fault(text.substr(0, size));
    for (std::size_t at = 0; at < text.size(); ++at)
        for (const char byte : {'"', ',', '\n', '\r', '\0', '\xff'}) {
            std::string changed = text;
            changed[at] = byte;
            (void)fault(changed);
        }
}

}  // namespace
}  // namespace tune::loader
