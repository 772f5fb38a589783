// What tune-data does, below its command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "loader/dataset.h"
#include "loader/format/parquet.h"
#include "loader/tools/convert/convert.h"
#include "loader/tools/data_sets.h"
#include "loader/tools/inspect.h"
#include "loader/tools/progress.h"
#include "loader/tools/throughput.h"
#include "loader/tools/verify.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kNames = {"p0", "p1", "p2", "p3", "label", "name"};
const std::vector<std::string> kNatural = {"int", "int", "int", "int", "int", "str"};

std::string plan_text(const ColumnRequest& request) {
    const auto planned = plan_columns(request, kNames, kNatural);
    if (!planned) return planned.error().message;
    std::string text;
    for (const PlannedColumn& column : *planned) {
        text += column.name + "=" + column.encoding + "(";
        for (const std::size_t source : column.sources) text += std::to_string(source);
        text += ") ";
    }
    return text;
}

TEST(ColumnPlan, StoresEverythingByDefault) {
    EXPECT_EQ(plan_text({}), "label=int(4) name=str(5) p0=int(0) p1=int(1) p2=int(2) p3=int(3) ");
    EXPECT_EQ(plan_text({.packs = {"image=p0..p3:uint8:2,2"}}),
              "image=ndarray:uint8:2,2(0123) label=int(4) name=str(5) ");
}

TEST(ColumnPlan, StoresWhatIsAskedFor) {
    EXPECT_EQ(plan_text({.columns = {"label:uint8,name"}}), "label=uint8(4) name=str(5) ");
    EXPECT_EQ(plan_text({.columns = {"label:int"}, .packs = {"image=p3,p1:float32"}}),
              "image=ndarray:float32:2(31) label=int(4) ");
    EXPECT_EQ(plan_text({.columns = {"name:ndarray:uint8:8,8", "label"}}),
              "label=int(4) name=ndarray:uint8:8,8(5) ");
    EXPECT_TRUE(needs_natural_encodings({}));
    EXPECT_TRUE(needs_natural_encodings({.columns = {"a:int,b"}}));
    EXPECT_FALSE(needs_natural_encodings({.columns = {"a:int", "b:ndarray:uint8:8,8"}}));
}

TEST(ColumnPlan, SaysWhatIsWrong) {
    EXPECT_THAT(plan_text({.columns = {"labl:int"}}), HasSubstr("no column 'labl'; it has p0 p1"));
    EXPECT_THAT(plan_text({.columns = {"label:integer"}}), HasSubstr("unknown encoding"));
    EXPECT_THAT(plan_text({.columns = {"label", "label"}}), HasSubstr("would be named 'label'"));
    EXPECT_THAT(plan_text({.packs = {"image"}}), HasSubstr("write NAME=COLUMNS:TYPE[:SHAPE]"));
    EXPECT_THAT(plan_text({.packs = {"image=p0..p3"}}), HasSubstr("write NAME=COLUMNS"));
    EXPECT_THAT(plan_text({.packs = {"image=p0..p4:uint8"}}), HasSubstr("no column 'p4'"));
    EXPECT_THAT(plan_text({.packs = {"image=p3..p0:uint8"}}), HasSubstr("not a range"));
    EXPECT_THAT(plan_text({.packs = {"image=p0..q3:uint8"}}), HasSubstr("not a range"));
    EXPECT_THAT(plan_text({.packs = {"image=p0..p:uint8"}}), HasSubstr("not a range"));
    EXPECT_THAT(plan_text({.packs = {"i=p0..p3:uint8:2,3"}}), HasSubstr("6 elements, but 4"));
    EXPECT_THAT(plan_text({.packs = {"i=p0..p3:bool"}}), HasSubstr("arrays of 'bool'"));
}

TEST(ColumnPlan, RangesKeepLeadingZeros) {
    const std::vector<std::string> names = {"x08", "x09", "x10"};
    const auto planned = plan_columns({.packs = {"v=x08..x10:int8"}}, names, {"int", "int", "int"});
    ASSERT_TRUE(planned.has_value()) << planned.error().message;
    EXPECT_THAT(planned->at(0).sources, ElementsAre(0, 1, 2));
}

TEST(Splits, AreParsedAndChecked) {
    const auto fault = [](std::string_view text) {
        const auto splits = parse_splits(text);
        return splits ? std::string("no error") : splits.error().message;
    };
    EXPECT_EQ(parse_splits("train=0.8,val=0.2").value().size(), 2U);
    EXPECT_EQ(fault("a=0.1,b=0.2,c=0.7"), "no error");
    EXPECT_THAT(fault("train=0.8"), HasSubstr("must add up to 1"));
    EXPECT_THAT(fault("train=0.8,val"), HasSubstr("'val' has no fraction"));
    EXPECT_THAT(fault("train=0.5,train=0.5"), HasSubstr("named twice"));
    EXPECT_THAT(fault("../x=1"), HasSubstr("name of a folder"));
    EXPECT_THAT(fault("a=2,b=-1"), HasSubstr("between 0 and 1"));
}

TEST(Splits, SharesAreExactAndFair) {
    const std::vector<Split> splits = {{"a", 0.5}, {"b", 0.3}, {"c", 0.2}};
    std::vector<int> first_in_a(10, 0);
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        SplitDealer dealer(splits, 10, seed);
        EXPECT_THAT(dealer.counts(), ElementsAre(5, 3, 2));
        std::vector<std::int64_t> counts(3, 0);
        for (std::size_t row = 0; row < 10; ++row) {
            const std::size_t split = dealer.next();
            ++counts[split];
            if (split == 0) ++first_in_a[row];
        }
        ASSERT_THAT(counts, ElementsAre(5, 3, 2));
    }
    for (const int count : first_in_a) EXPECT_NEAR(count, 1000, 120);  // 5 standard deviations
}

/// A table of `count` rows x = i, y = i / 2.
void write_table(const std::filesystem::path& path, int count) {
    std::string text = "x,y\n";
    for (int i = 0; i < count; ++i)
        text += std::to_string(i) + "," + std::to_string(i / 2) + ".5\n";
    write_bytes(path, text);
}

std::vector<std::string> entries(const std::filesystem::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

TEST(Convert, WritesADataset) {
    const Scratch scratch;
    write_table(scratch / "t.csv", 100);
    const auto report = convert({.inputs = {scratch / "t.csv"}, .output = scratch / "out"});
    ASSERT_TRUE(report.has_value()) << report.error().text();
    EXPECT_EQ(report->sets.at(0).samples, 100);
    EXPECT_THAT(entries(scratch.path()), ElementsAre("out", "t.csv"));
    const auto dataset = Dataset::open({.directory = scratch / "out", .batch_size = 100}).value();
    Batch batch;
    ASSERT_TRUE(dataset->next(batch).value());
    double y = 0;
    std::memcpy(&y, batch.column("y")->sample(7).data(), sizeof y);
    EXPECT_EQ(y, 3.5);
}

TEST(Convert, ErrorsLeaveNothingBehind) {
    const Scratch scratch;
    const auto fault = [&](std::string_view text, ConvertOptions options) {
        write_bytes(scratch / "t.csv", text);
        options.inputs = {scratch / "t.csv"};
        options.output = scratch / "out";
        const auto report = convert(options);
        EXPECT_THAT(entries(scratch.path()), ElementsAre("t.csv"));
        return report ? std::string("no error") : report.error().text();
    };
    const std::string path = (scratch / "t.csv").string();
    EXPECT_EQ(fault("x\n1\nzwei\n", {.columns = {.columns = {"x:int"}}}),
              path + ": line 3, column 'x': 'zwei' is not a whole number (int64)");
    EXPECT_EQ(fault("a,b\n1,2\n3,400\n", {.columns = {.packs = {"v=a,b:uint8"}}}),
              path + ": line 3, column 'b': '400' does not fit into uint8");
    EXPECT_THAT(fault("x\n1\n\"2\n", {}), HasSubstr(path + ": line 3, column 1: the quote"));
    EXPECT_THAT(fault("x\n", {}), HasSubstr("would have no samples"));
    EXPECT_THAT(fault("x\n1\n", {.splits = {{"a", 0.5}, {"b", 0.5}}}), HasSubstr("no samples"));
    EXPECT_THAT(fault("x\n1\n", {.hashes = {"crc"}}), HasSubstr("unknown hash"));
    const std::atomic<bool> stop = true;
    EXPECT_THAT(fault("x\n1\n", {.cancelled = &stop}), HasSubstr("stopped"));
}

TEST(Convert, DoesNotTouchWhatIsThereUnlessTold) {
    const Scratch scratch;
    write_table(scratch / "t.csv", 10);
    write_table(scratch / "u.csv", 20);
    ASSERT_TRUE(convert({.inputs = {scratch / "t.csv"}, .output = scratch / "out"}));
    const auto refused = convert({.inputs = {scratch / "u.csv"}, .output = scratch / "out"});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kResourceAlreadyExists);
    EXPECT_EQ(read_index(scratch / "out").value().sample_count(), 10);
    ASSERT_TRUE(
        convert({.inputs = {scratch / "u.csv"}, .output = scratch / "out", .overwrite = true}));
    EXPECT_EQ(read_index(scratch / "out").value().sample_count(), 20);
    EXPECT_THAT(entries(scratch.path()), ElementsAre("out", "t.csv", "u.csv"));
}

TEST(Convert, ReadsSeveralTables) {
    const Scratch scratch;
    write_table(scratch / "a.csv", 3);
    write_table(scratch / "b.csv", 4);
    write_bytes(scratch / "c.csv", "x,z\n1,2\n");
    ConvertOptions options{.inputs = {scratch / "a.csv", scratch / "b.csv"},
                           .output = scratch / "out/",
                           .splits = {{"train", 0.5}, {"val", 0.5}}};
    const auto report = convert(options);
    ASSERT_TRUE(report.has_value()) << report.error().text();
    EXPECT_EQ(report->sets.at(0).samples + report->sets.at(1).samples, 7);
    const auto sets = find_data_sets(scratch / "out").value();
    ASSERT_EQ(sets.size(), 2U);
    EXPECT_EQ(sets[0].directory.filename(), "train");
    options.inputs.push_back(scratch / "c.csv");
    options.output = scratch / "other";
    EXPECT_THAT(convert(options).error().text(), HasSubstr("c.csv' has other columns than"));
}

TEST(Convert, KnowsTablesByTheirEnding) {
    const Scratch scratch;
    write_bytes(scratch / "t.xlsx", "x");
    write_bytes(scratch / "t.parquet", "x");
    const auto fault = [&](const char* name) {
        return convert({.inputs = {scratch / name}, .output = scratch / "out"}).error().text();
    };
    EXPECT_THAT(fault("t.xlsx"), HasSubstr("does not end in .csv, .tsv or .parquet"));
    EXPECT_THAT(fault("none.csv"), HasSubstr("none.csv"));
    EXPECT_THAT(fault("t.parquet"), HasSubstr("t.parquet"));
    if (!can_read_parquet()) {
        EXPECT_THAT(fault("t.parquet"), HasSubstr("without Arrow C++"));
    }
}

TEST(Inspect, ShowsColumnsShardsAndRows) {
    const Scratch scratch;
    write_numbers(scratch / "d", 30, {.hashes = {"xxh64"}});
    const DataSet set = find_data_sets(scratch / "d").value().at(0);
    const Json json = inspect_json(set, {.rows = 2}).value();
    EXPECT_EQ(json["samples"], 30);
    EXPECT_EQ(json["columns"][1]["encoding"], "ndarray:uint8:2,2");
    EXPECT_EQ(json["columns"][1]["bytes"], 4);
    EXPECT_EQ(json["rows"][1]["pixels"].dump(), "[[1,2],[3,4]]");
    EXPECT_TRUE(json["shards"][0]["hashes"].contains("xxh64"));
    const std::string text = inspect_text(set, {.rows = 1, .shards_max = 1}).value();
    EXPECT_THAT(text, HasSubstr("30 samples in"));
    EXPECT_THAT(text, HasSubstr("shard.00000.mds"));
    EXPECT_THAT(text, HasSubstr("sample 0: {\"id\":0"));
    EXPECT_THAT(text, HasSubstr(" more\n"));
    write_numbers(scratch / "one", 1, {});
    EXPECT_THAT(inspect_text(find_data_sets(scratch / "one").value().at(0), {}).value(),
                HasSubstr(": 1 sample in 1 shard, "));
    EXPECT_THAT(find_data_sets(scratch / "none").error().message, HasSubstr("holds no data set"));
}

TEST(Verify, FindsEveryDamagedShard) {
    const Scratch scratch;
    write_texts(scratch / "d", 40, {.hashes = {"sha256"}});
    const auto check = [&] { return verify(find_data_sets(scratch / "d").value().at(0)); };
    EXPECT_THAT(check().errors, IsEmpty());
    EXPECT_EQ(check().samples, 40);
    EXPECT_EQ(check().shards_without_hash, 0);
    const auto damage = [&](const char* name, auto change) {
        std::string bytes = read_bytes(scratch / "d" / name);
        change(bytes);
        write_bytes(scratch / "d" / name, bytes);
    };
    damage("shard.00001.mds", [](std::string& bytes) { bytes.back() = 'y'; });
    damage("shard.00003.mds", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
    std::filesystem::remove(scratch / "d" / "shard.00004.mds");
    const VerifyReport report = check();
    ASSERT_EQ(report.errors.size(), 3U);
    EXPECT_THAT(report.errors[0], HasSubstr("shard.00001.mds"));
    EXPECT_THAT(report.errors[0], HasSubstr("sha256 is"));
    EXPECT_THAT(report.errors[1], HasSubstr("shard.00003.mds"));
    EXPECT_THAT(report.errors[2], HasSubstr("shard.00004.mds"));
}

TEST(Verify, DecodesValuesWhereThereIsNoHash) {
    const Scratch scratch;
    write_texts(scratch / "d", 5);
    std::string bytes = read_bytes(scratch / "d" / "shard.00000.mds");
    bytes.back() = '\xff';
    write_bytes(scratch / "d" / "shard.00000.mds", bytes);
    const VerifyReport report = verify(find_data_sets(scratch / "d").value().at(0));
    EXPECT_EQ(report.shards_without_hash, report.shards);
    ASSERT_EQ(report.errors.size(), 1U);
    EXPECT_THAT(report.errors[0], HasSubstr("column 'text': text that is not UTF-8"));
}

TEST(Throughput, CountsWholeEpochs) {
    const Scratch scratch;
    write_texts(scratch / "d", 30);
    const Throughput result =
        measure_throughput({.directory = scratch / "d", .batch_size = 4}, 0).value();
    EXPECT_EQ(result.samples, 26);  // all but the first batch
    EXPECT_GT(result.bytes, 26U * 8);
}

TEST(Numerals, AreReadable) {
    EXPECT_EQ(grouped(1234567), "1,234,567");
    EXPECT_EQ(grouped(-123), "-123");
    EXPECT_EQ(grouped(-1234), "-1,234");
    EXPECT_EQ(readable_bytes(999), "999 B");
    EXPECT_EQ(readable_bytes(1'200'000), "1.2 MB");
    EXPECT_EQ(percent(0.256), "26 %");
}

}  // namespace
}  // namespace tune::loader
