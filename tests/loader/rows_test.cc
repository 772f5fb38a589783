// The parts that all formats share: conversion of numbers, filters, the cache of decoded shards,
// and the parsers of single rows and archives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "loader/format/convert_dtype.h"
#include "loader/format/npy.h"
#include "loader/format/tar.h"
#include "loader/format/text/json_row.h"
#include "loader/rows/filter.h"
#include "loader/rows/row_shard.h"
#include "loader/rows/shard_cache.h"
#include "loader/rows/time_value.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class To, class From>
To converted(Dtype from, Dtype to, From value) {
    To result{};
    converter(from, to)(reinterpret_cast<const std::byte*>(&value),
                        reinterpret_cast<std::byte*>(&result), 1);
    return result;
}

TEST(ConvertDtype, IntegersAreClampedAndFractionsCutOff) {
    EXPECT_EQ((converted<float>(Dtype::kInt8, Dtype::kFloat32, std::int8_t{-7})), -7.0F);
    EXPECT_EQ((converted<std::uint8_t>(Dtype::kInt64, Dtype::kUint8, std::int64_t{-1})), 0);
    EXPECT_EQ((converted<std::uint8_t>(Dtype::kInt64, Dtype::kUint8, std::int64_t{300})), 255);
    EXPECT_EQ((converted<std::int64_t>(Dtype::kFloat64, Dtype::kInt64, 1e300)), INT64_MAX);
    EXPECT_EQ((converted<std::int64_t>(Dtype::kFloat64, Dtype::kInt64, -1e300)), INT64_MIN);
    EXPECT_EQ((converted<std::int32_t>(Dtype::kFloat64, Dtype::kInt32, -2.9)), -2);
    EXPECT_EQ((converted<std::int32_t>(Dtype::kFloat64, Dtype::kInt32, std::nan(""))), 0);
    EXPECT_EQ((converted<double>(Dtype::kFloat16, Dtype::kFloat64, std::uint16_t{0x3e00})), 1.5);
    EXPECT_EQ((converted<std::uint16_t>(Dtype::kInt8, Dtype::kFloat16, std::int8_t{1})), 0x3c00);
}

TEST(ConvertDtype, KnowsWhichTypesHoldEveryValue) {
    EXPECT_TRUE(holds_every_value(Dtype::kFloat32, Dtype::kInt16));
    EXPECT_TRUE(holds_every_value(Dtype::kFloat16, Dtype::kUint8));
    EXPECT_TRUE(holds_every_value(Dtype::kInt64, Dtype::kUint32));
    EXPECT_FALSE(holds_every_value(Dtype::kFloat32, Dtype::kInt32));
    EXPECT_FALSE(holds_every_value(Dtype::kUint64, Dtype::kInt8));
    EXPECT_FALSE(holds_every_value(Dtype::kInt64, Dtype::kFloat16));
    EXPECT_FALSE(holds_every_value(Dtype::kFloat64, Dtype::kUint64));
}

TEST(Filter, ReadsColumnsOperatorsAndValues) {
    const Filter filter = parse_filter("age >= 18").value();
    EXPECT_EQ(filter.column, "age");
    EXPECT_EQ(filter.op, FilterOp::kGreaterEqual);
    EXPECT_EQ(filter.values, std::vector<FilterValue>{std::int64_t{18}});
    EXPECT_EQ(parse_filter("a not in x, 'y z',3").value().values.size(), 3U);
    EXPECT_EQ(filter_text(parse_filter("a != '3'").value()), "a != '3'");
    for (const char* text : {"", "age", ">= 3", "in a"})
        EXPECT_FALSE(parse_filter(text).has_value()) << text;
}

TEST(Filter, ComparesAcrossNumbersAndNeverWithText) {
    EXPECT_TRUE(matches(parse_filter("a < 2.5").value(), std::int64_t{2}));
    EXPECT_TRUE(matches(parse_filter("a = true").value(), std::int64_t{1}));
    EXPECT_FALSE(matches(parse_filter("a = 2").value(), std::string("2")));
    EXPECT_FALSE(matches(parse_filter("a < 2").value(), std::nan("")));
    EXPECT_TRUE(matches(parse_filter("a not in 1,2").value(), std::int64_t{3}));
    const FilterValue low = std::int64_t{3};
    const FilterValue high = std::int64_t{9};
    for (const char* text : {"a = 3", "a < 4", "a <= 3", "a > 8", "a >= 9", "a in 1,5", "a != 3"})
        EXPECT_TRUE(may_match(parse_filter(text).value(), low, high)) << text;
    for (const char* text : {"a = 2", "a < 3", "a <= 2", "a > 9", "a >= 10", "a in 1,10"})
        EXPECT_FALSE(may_match(parse_filter(text).value(), low, high)) << text;
}

TEST(TimeValue, ReadsDatesAndTimes) {
    EXPECT_EQ(parse_date("1970-01-02"), 1);
    EXPECT_EQ(parse_date("1969-12-31"), -1);
    EXPECT_EQ(parse_date("2024-2-29"), 19782);
    EXPECT_EQ(parse_time_ns("1970-01-01T00:00:01.5Z"), 1'500'000'000);
    EXPECT_EQ(parse_time_ns("1970-01-01 01:00:00+01:00"), 0);
    for (const char* text : {"", "2023-02-29", "1970-01-01T", "1970-01-01T25:00", "yesterday",
                             "1970-01-01T00:00:00x", "9999-01-01", "1970-01-01T00:00:00."})
        EXPECT_FALSE(parse_time_ns(text).has_value()) << text;
}

std::string scanned(std::string_view line) {
    std::vector<JsonMember> members;
    std::deque<std::string> unescaped;
    const auto parsed = parse_json_row(line, members, unescaped);
    if (!parsed) return parsed.error().message;
    std::string text;
    for (const JsonMember& member : members)
        text += std::string(member.name) + "=" + std::string(member.text) + ";";
    return text;
}

TEST(JsonRow, TakesMembersAndUnescapesText) {
    EXPECT_EQ(scanned(R"({"a": 1, "b\u0041": "x\"\\\n\ud83d\ude00", "c": {"d": "}"}, "e": NaN})"),
              "a=1;bA=x\"\\\n\U0001F600;c={\"d\": \"}\"};e=NaN;");
    EXPECT_EQ(scanned("{}\r\n"), "");
    EXPECT_EQ(scanned(R"({"a": "\ud800"})"), "a=\uFFFD;");
    for (const char* line : {"", "{", "[1]", "{\"a\"}", "{\"a\":1,}", "{\"a\":1}x", "{\"a\":[1}",
                             "{\"a\":\"\\x\"}", "{\"a\":\"", "{\"a\":tru}", "{\"a\":\"\xff\"}"})
        EXPECT_THAT(scanned(line), HasSubstr("is missing in the JSON")) << line;
}

TEST(Npy, RefusesWhatItsHeaderDoesNotBear) {
    const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }";
    std::string file = "\x93NUMPY\x01" + std::string(1, '\0');
    file += static_cast<char>(header.size());
    file += '\0';
    file += header + std::string("\x01\x00\x02\x00", 4);
    const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    const auto array = parse_npy(bytes(file));
    ASSERT_TRUE(array.has_value()) << array.error().text();
    EXPECT_EQ(array->dtype, Dtype::kInt16);
    EXPECT_THAT(array->shape, ElementsAre(2, 1));
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(parse_npy(bytes(file.substr(0, size))).has_value()) << size;
    std::string object = file;
    object.replace(object.find("<i2"), 3, "|O8");
    EXPECT_THAT(parse_npy(bytes(object)).error().message, HasSubstr("cannot be given out"));
    EXPECT_FALSE(npz_member(bytes(file), "arr").has_value());
}

/// A shard that says which one it is by its size.
class SizedShard final : public RowShard {
public:
    explicit SizedShard(std::size_t bytes) : bytes_(bytes) {}
    [[nodiscard]] std::size_t bytes() const override { return bytes_; }
    void payload_sizes(std::size_t, const RowCopies&, std::span<std::uint64_t>) const override {}
    [[nodiscard]] Result<void> copy(std::size_t, const RowCopies&,
                                    BatchSlot::ColumnBuffer&) const override {
        return {};
    }

private:
    std::size_t bytes_;
};

TEST(ShardCache, LoadsOnceAndDropsTheColdest) {
    std::atomic<int> loads = 0;
    ShardCache cache(4, 20, 0, [&](std::size_t) -> Result<ShardCache::ShardPtr> {
        ++loads;
        return ShardCache::ShardPtr(std::make_shared<SizedShard>(10));
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_TRUE(cache.get(0)); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(loads, 1);
    EXPECT_TRUE(cache.get(1));
    EXPECT_TRUE(cache.get(0));  // now 1 is the coldest
    EXPECT_TRUE(cache.get(2));
    EXPECT_TRUE(cache.get(0));
    EXPECT_EQ(loads, 3);
    EXPECT_TRUE(cache.get(1));
    EXPECT_EQ(loads, 4);
}

TEST(ShardCache, AnErrorIsTriedAgain) {
    bool fails = true;
    ShardCache cache(1, 0, 0, [&](std::size_t) -> Result<ShardCache::ShardPtr> {
        if (fails) return data_loss("not yet");
        return ShardCache::ShardPtr(std::make_shared<SizedShard>(10));
    });
    EXPECT_FALSE(cache.get(0));
    fails = false;
    EXPECT_TRUE(cache.get(0));
}

TEST(ShardCache, LooksAheadIntoTheRoomOfShardsThatAreDone) {
    std::mutex mutex;
    std::condition_variable loaded;
    std::vector<std::size_t> order;
    ShardCache cache(6, 30, 1, [&](std::size_t shard) -> Result<ShardCache::ShardPtr> {
        const std::lock_guard lock(mutex);
        order.push_back(shard);
        loaded.notify_all();
        return ShardCache::ShardPtr(std::make_shared<SizedShard>(10));
    });
    const auto wait_for = [&](std::size_t loads) {
        std::unique_lock lock(mutex);
        loaded.wait(lock, [&] { return order.size() >= loads; });
    };
    for (const std::size_t shard : {0, 1, 2}) EXPECT_TRUE(cache.get(shard));
    cache.announce({2, 3});  // the cache is full, but 0 and 1 are not needed any more
    wait_for(4);
    EXPECT_TRUE(cache.get(3));
    EXPECT_TRUE(cache.get(2));
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
    cache.announce({1, 2, 3, 4});  // 0 went for 3; what was announced does not go for 4
    EXPECT_TRUE(cache.get(1));
    EXPECT_TRUE(cache.get(2));
    EXPECT_TRUE(cache.get(3));
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
    cache.announce({5});
    wait_for(5);
    EXPECT_TRUE(cache.get(5));
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 5));
}

/// What a batch holds of a column of texts, asked for in `rows`.
std::vector<std::string> texts_of(const ColumnarShard& shard, const RowCopies& rows,
                                  std::size_t count) {
    BatchSlot slot(1);
    BatchSlot::ColumnBuffer& buffer = slot.columns[0];
    buffer.offsets.assign(count + 1, 0);
    shard.payload_sizes(0, rows, std::span(buffer.offsets).subspan(1));
    std::partial_sum(buffer.offsets.begin(), buffer.offsets.end(), buffer.offsets.begin());
    buffer.data.resize(buffer.offsets.back());
    EXPECT_TRUE(shard.copy(0, rows, buffer));
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i)
        texts.emplace_back(reinterpret_cast<const char*>(buffer.data.data()) + buffer.offsets[i],
                           buffer.offsets[i + 1] - buffer.offsets[i]);
    return texts;
}

TEST(ColumnarShard, RunsAndSingleRowsGiveTheSamePayloads) {
    const std::string bytes = "abbcccdddd";
    const std::vector<std::int32_t> offsets = {0, 1, 3, 3, 6, 10};
    ColumnBlock block;
    block.is_fixed = false;
    block.data = reinterpret_cast<const std::byte*>(bytes.data());
    block.offsets32 = offsets.data();
    const auto selection =
        std::make_shared<const std::vector<std::uint32_t>>(std::vector<std::uint32_t>{0, 2, 3, 4});
    const ColumnarShard whole({block}, nullptr);
    const ColumnarShard part({block}, selection);
    RowCopies run;
    run.add_run({1, 0}, 3);
    EXPECT_TRUE(run.is_run());
    EXPECT_THAT(texts_of(whole, run, 3), ElementsAre("bb", "", "ccc"));
    EXPECT_THAT(texts_of(part, run, 3), ElementsAre("", "ccc", "dddd"));
    RowCopies gap;  // rows that follow each other, but not among those that are stored
    gap.add_run({0, 0}, 2);
    EXPECT_THAT(texts_of(part, gap, 2), ElementsAre("a", ""));
    RowCopies mixed;
    mixed.add_run({3, 0}, 2);
    mixed.add_run({0, 2}, 1);
    EXPECT_FALSE(mixed.is_run());
    EXPECT_THAT(texts_of(whole, mixed, 3), ElementsAre("ccc", "dddd", "a"));
    EXPECT_THAT(texts_of(whole, RowCopies{}, 0), ElementsAre());
}

TEST(Tar, ACutArchiveIsNamedByItsByte) {
    // A header is refused unless its checksum is right, so an archive of other bytes is damage.
    const std::string junk(1024, 'x');
    const auto list = [&](std::uint64_t size) {
        return list_tar(size,
                        [&](std::uint64_t offset, std::span<std::byte> bytes) -> Result<void> {
                            std::memcpy(bytes.data(), junk.data() + offset, bytes.size());
                            return {};
                        });
    };
    EXPECT_THAT(list(1024).error().message, HasSubstr("checksum is wrong, at byte 0"));
    EXPECT_THAT(list(100).error().message, HasSubstr("cut off"));
    EXPECT_TRUE(list(0).value().empty());
}

}  // namespace
}  // namespace tune::loader
