// Golden files of mosaicml-streaming 0.13.0, byte for byte.

#include "loader/format/mds/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "loader/format/hash.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string digest_of(std::string_view algorithm, const std::filesystem::path& path) {
    const std::string bytes = read_bytes(path);
    return hash_hex(algorithm, std::as_bytes(std::span(bytes))).value();
}

Result<Index> write_all(MdsWriterOptions options, const std::vector<std::vector<Value>>& samples) {
    TUNE_TRY(writer, MdsWriter::open(std::move(options)));
    for (const std::vector<Value>& sample : samples) TUNE_TRY_VOID(writer.write(sample));
    return writer.finish();
}

TEST(Writer, GoldenOfTwoColumns) {
    const Scratch scratch;
    const auto index =
        write_all({.directory = scratch.path(), .columns = {{"t", "str"}, {"id", "int"}}},
                  {{std::int64_t{1}, std::string_view("\xc3\xa9")},
                   {std::int64_t{-2}, std::string_view("")}});
    ASSERT_TRUE(index.has_value()) << index.error().text();
    EXPECT_EQ(digest_of("sha256", scratch / "shard.00000.mds"),
              "5755f2bf848c149d730c2af3d54ac0b3456b47732f856400394e4e1aea950288");
    EXPECT_EQ(digest_of("sha256", scratch / "index.json"),
              "8248975e391eb26652c4a6904b7873036184ca6331755b7529f4c413ed70a402");
    EXPECT_EQ(read_bytes(scratch / "index.json").size(), 315U);
}

TEST(Writer, GoldenOfFiveColumnsBehindAnEmptyShard) {
    const Scratch scratch;
    const std::vector<float> a = {0, 1, 2};
    const std::vector<std::int16_t> b(4, 1);
    const std::vector<Value> sample = {
        ArrayView{Dtype::kFloat32, {3}, std::as_bytes(std::span(a))},
        ArrayView{Dtype::kInt16, {2, 2}, std::as_bytes(std::span(b))},
        std::int64_t{7},
        std::string_view("ab"),
        std::int64_t{0},
    };
    const auto index = write_all({.directory = scratch.path(),
                                  .columns = {{"y", "int"},
                                              {"x", "str"},
                                              {"a", "ndarray"},
                                              {"b", "ndarray:int16:2,2"},
                                              {"c", "uint8"}},
                                  .hashes = {"sha1"},
                                  .size_limit = 200,
                                  .keeps_empty_shards = true},
                                 {sample});
    ASSERT_TRUE(index.has_value()) << index.error().text();
    EXPECT_EQ(digest_of("sha1", scratch / "shard.00000.mds"),
              "116d185b2af99821fe65bd75e06536154ce19246");
    EXPECT_EQ(digest_of("sha1", scratch / "shard.00001.mds"),
              "326321a0ee31f39d074d9bcb4841a449dcc244bb");
    EXPECT_EQ(digest_of("sha1", scratch / "index.json"),
              "58725e199bb38dc6344fa9cfc423405dcfa524bf");
    EXPECT_EQ(read_index(scratch.path()).value().sample_count(), 1);
}

TEST(Writer, ShardsAreCutWhereMosaicCutsThem) {
    const Scratch scratch;
    std::vector<std::vector<Value>> samples;
    for (std::int64_t i = 0; i < 40; ++i) samples.push_back({i});
    const Index index =
        write_all({.directory = scratch / "a", .columns = {{"x", "int"}}, .size_limit = 300},
                  samples)
            .value();
    std::vector<std::int64_t> counts;
    std::vector<std::uint64_t> sizes;
    for (const ShardInfo& shard : index.shards) {
        counts.push_back(shard.samples);
        sizes.push_back(shard.raw_data.bytes);
        EXPECT_EQ(std::filesystem::file_size(scratch / "a" / shard.raw_data.basename),
                  shard.raw_data.bytes);
    }
    EXPECT_THAT(counts, ElementsAre(11, 11, 11, 7));
    EXPECT_THAT(sizes, ElementsAre(298, 298, 298, 250));
}

TEST(Writer, AnOverlargeSampleGetsItsOwnShard) {
    const Scratch scratch;
    const std::string large(300, 'l');
    const std::vector<std::vector<Value>> samples = {{std::string_view(large)},
                                                     {std::string_view("s")}};
    const auto counts = [&](const char* name, bool keeps_empty_shards) {
        const Index index = write_all({.directory = scratch / name,
                                       .columns = {{"x", "bytes"}},
                                       .size_limit = 100,
                                       .keeps_empty_shards = keeps_empty_shards},
                                      samples)
                                .value();
        std::vector<std::pair<std::int64_t, std::uint64_t>> found;
        for (const ShardInfo& shard : index.shards)
            found.emplace_back(shard.samples, shard.raw_data.bytes);
        return found;
    };
    EXPECT_THAT(counts("upstream", true),
                ElementsAre(std::pair(0, 171), std::pair(1, 479), std::pair(1, 180)));
    EXPECT_THAT(counts("ours", false), ElementsAre(std::pair(1, 479), std::pair(1, 180)));
}

TEST(Writer, WithoutSamplesThereIsAnEmptyIndex) {
    const Scratch scratch;
    ASSERT_TRUE(write_all({.directory = scratch.path(), .columns = {{"x", "int"}}}, {}));
    EXPECT_EQ(read_bytes(scratch / "index.json"), R"({"shards": [], "version": 2})");
}

TEST(Writer, ColumnsAreSortedByCodePoint) {
    const Scratch scratch;
    const MdsWriter writer =
        MdsWriter::open(
            {.directory = scratch.path(),
             .columns = {{"\xc3\xa9\xf0\x9f\x98\x80", "int"}, {"a", "int"}, {"Z", "int"}}})
            .value();
    EXPECT_THAT(writer.column_names(), ElementsAre("Z", "a", "\xc3\xa9\xf0\x9f\x98\x80"));
}

TEST(Writer, NoLimitMakesOneShard) {
    const Scratch scratch;
    std::vector<std::vector<Value>> samples(1000, {std::int64_t{1}});
    const Index index =
        write_all({.directory = scratch.path(), .columns = {{"x", "int"}}, .size_limit = {}},
                  samples)
            .value();
    EXPECT_EQ(index.shards.size(), 1U);
    EXPECT_THAT(read_bytes(scratch / "index.json"), HasSubstr("\"size_limit\": null"));
}

TEST(Writer, AWrongValueLeavesNoTrace) {
    const Scratch scratch;
    MdsWriter writer =
        MdsWriter::open({.directory = scratch.path(), .columns = {{"a", "str"}, {"b", "uint8"}}})
            .value();
    ASSERT_TRUE(writer.write(std::vector<Value>{std::string_view("one"), std::int64_t{1}}));
    const auto wrong = writer.write(std::vector<Value>{std::string_view("two"), std::int64_t{256}});
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().context, "column 'b'");
    const std::string bytes = "xy";
    const auto payload = std::as_bytes(std::span(bytes));
    EXPECT_FALSE(writer.write_encoded(std::vector<std::span<const std::byte>>{payload, payload}));
    ASSERT_TRUE(writer.write(std::vector<Value>{std::string_view("two"), std::int64_t{2}}));
    EXPECT_EQ(writer.finish().value().sample_count(), 2);
}

TEST(Writer, RefusesOptionsThatMakeNoDataset) {
    const Scratch scratch;
    const auto message = [&](MdsWriterOptions options) {
        options.directory = scratch / "new";
        const auto writer = MdsWriter::open(std::move(options));
        return writer ? std::string("no error") : writer.error().message;
    };
    EXPECT_THAT(message({}), HasSubstr("at least one column"));
    EXPECT_THAT(message({.columns = {{"a", "int"}, {"a", "str"}}}), HasSubstr("named twice"));
    EXPECT_THAT(message({.columns = {{"a", "tensor"}}}), HasSubstr("column 'a': unknown encoding"));
    EXPECT_THAT(message({.columns = {{"a", "int"}}, .hashes = {"crc"}}), HasSubstr("unknown hash"));
    EXPECT_THAT(message({.columns = {{"a", "int"}}, .hashes = {"md5", "md5"}}),
                HasSubstr("named twice"));
    EXPECT_THAT(message({.columns = {{"a", "int"}}, .compression = "lz4"}), HasSubstr("'lz4'"));
    EXPECT_THAT(message({.columns = {{"a", "int"}}, .size_limit = std::uint64_t{1} << 32}),
                HasSubstr("below 4 GiB"));
    write_bytes(scratch / "file", "x");
    const auto taken = MdsWriter::open({.directory = scratch.path(), .columns = {{"a", "int"}}});
    ASSERT_FALSE(taken.has_value());
    EXPECT_EQ(taken.error().code, Code::kResourceAlreadyExists);
}

}  // namespace
}  // namespace tune::loader
