// Parts of the cache by themselves: what a unit is, which is fetched next, what opening read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "loader/cache/cached_source.h"
#include "loader/cache/opening_record.h"
#include "loader/cache/supply/batch_needs.h"
#include "loader/cache/supply/unit_stages.h"
#include "loader/cache/unit.h"
#include "loader/source/local_source.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ExtentUnits, AByteIsFoundInItsUnitAndNowhereElse) {
    const std::vector<ObjectInfo> objects = {{"b", 100, "1"}, {"a", 50, "1"}};
    std::vector<std::vector<ExtentUnits::Extent>> extents(2);
    extents[0] = {{10, 20}, {40, 5}};
    extents[1] = {{0, 50}};
    const ExtentUnits units(objects, extents);
    ASSERT_EQ(units.size(), 3U);
    const auto place = units.find("b", 12).value();
    EXPECT_EQ(units.unit(place.unit).object.path, "b");
    EXPECT_EQ(place.offset, 2U);
    EXPECT_EQ(place.bytes, 18U);
    EXPECT_EQ(units.find("a", 49).value().bytes, 1U);
    for (const unsigned hole : {0U, 9U, 30U, 39U, 45U, 99U})
        EXPECT_FALSE(units.find("b", hole).has_value()) << hole;
    EXPECT_FALSE(units.find("a", 50).has_value());
    EXPECT_FALSE(units.find("c", 0).has_value());
}

TEST(ExtentUnits, BlocksHoldEveryByte) {
    const auto units = ExtentUnits::blocks({{"a", 25, ""}, {"b", 0, ""}, {"c", 10, ""}}, 10);
    ASSERT_EQ(units->size(), 4U);
    EXPECT_EQ(units->bytes(2), 5U);
    std::vector<std::uint32_t> needed;
    units->add_units("a", 9, 12, needed);
    EXPECT_THAT(needed, ElementsAre(0, 1, 2));
}

TEST(ExtentUnits, AnotherVersionIsAnotherFile) {
    const auto name = [](const char* version) {
        return ExtentUnits::blocks({{"a", 25, version}}, 10)->unit(0).kept.file.basename;
    };
    EXPECT_EQ(name("1"), name("1"));
    EXPECT_NE(name("1"), name("2"));
}

TEST(BatchNeeds, ABatchNeedsEachUnitOfItsGroupsOnce) {
    // Three groups of two samples, of units {0, 1}, {1, 2} and {}.
    const std::vector<std::int64_t> samples = {2, 2, 2};
    BatchNeeds needs(UnitNeeds(samples, {0, 2, 4, 4}, {0, 1, 1, 2}));
    const std::uint64_t first = needs.follow(
        std::make_shared<EpochPlan>(0, std::vector<std::int64_t>{0, 1, 2, 5, 4, 3}, 3, false));
    std::size_t count = 0;
    EXPECT_THAT(needs.units(first, count), ElementsAre(0, 1, 2));
    EXPECT_EQ(count, 3U);
    EXPECT_THAT(needs.units(first + 1, count), ElementsAre(1, 2));
    EXPECT_FALSE(needs.has(first + 2));
    needs.forget();
    EXPECT_EQ(needs.end(), first + 2) << "numbers are never used again";
}

TEST(UnitStages, TheMostUrgentUnitIsTakenFirstAndReleasedWhenItsBatchesHavePassed) {
    UnitStages stages(5, [](std::size_t unit) { return 10 * unit; });
    stages.want(4, 1);
    stages.want(2, 0);
    stages.want(2, 7);
    EXPECT_EQ(stages.window_bytes(), 60U);
    EXPECT_EQ(stages.take_queued(), 2U);
    EXPECT_EQ(stages.take_queued(), 4U);
    EXPECT_EQ(stages.take_queued(), std::nullopt);
    stages.set_absent(2);
    EXPECT_EQ(stages.take_absent(), 2U);
    stages.settle(2, Stage::kReady);
    stages.settle(4, Stage::kNoRoom);
    EXPECT_EQ(stages.pending(), 1U) << "what has no room has not come";
    stages.retry_without_room(1);
    EXPECT_FALSE(stages.has_absent()) << "no batch before the first needs it";
    stages.retry_without_room(2);
    EXPECT_TRUE(stages.has_absent());
    EXPECT_THAT(stages.passed(5, false), ElementsAre(4));
    EXPECT_THAT(stages.passed(8, false), ElementsAre(2, 4));
    EXPECT_THAT(stages.passed(8, true), ElementsAre(4));
    EXPECT_EQ(stages.release(2), Stage::kReady);
    EXPECT_EQ(stages.stage(2), Stage::kIdle);
}

/// Counts the reads of a folder.
class CountingSource final : public ObjectSource {
public:
    explicit CountingSource(const std::filesystem::path& folder) : inner_(folder) {}
    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override {
        return inner_.stat(path);
    }
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override {
        return inner_.list(folder);
    }
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override {
        ++reads;
        return inner_.read(object, offset, bytes);
    }
    [[nodiscard]] const std::string& url() const override { return inner_.url(); }

    mutable std::atomic<int> reads = 0;

private:
    LocalSource inner_;
};

TEST(OpeningRecord, GivesWhatAnEarlierRunReadUnlessTheFileOrTheRecordWasChanged) {
    const Scratch scratch;
    write_bytes(scratch / "log", "0123456789");
    const CountingSource source(scratch.path());
    const auto read = [&](OpeningRecord& record) {
        std::string text(4, '\0');
        const ObjectInfo object = source.stat("log").value();
        record.read(source, object, 3, std::as_writable_bytes(std::span(text))).value();
        return text;
    };
    {
        OpeningRecord record(scratch / "opened");
        EXPECT_EQ(read(record), "3456");
        EXPECT_EQ(read(record), "3456");
        record.save();
    }
    EXPECT_EQ(source.reads, 1);
    OpeningRecord again(scratch / "opened");
    EXPECT_EQ(read(again), "3456");
    EXPECT_EQ(source.reads, 1);
    write_bytes(scratch / "log", "abcdefghijk");
    EXPECT_EQ(read(again), "defg") << "another version";
    EXPECT_EQ(source.reads, 2);
    std::string damaged = read_bytes(scratch / "opened");
    damaged[damaged.size() / 2] ^= 1;
    write_bytes(scratch / "opened", damaged);
    OpeningRecord empty(scratch / "opened");
    EXPECT_EQ(read(empty), "defg");
    EXPECT_EQ(source.reads, 3);
}

TEST(CachedSource, WhatTheSupplyHasNotBroughtIsAnErrorAndNoWait) {
    const Scratch scratch;
    std::filesystem::create_directories(scratch / "far");
    write_bytes(scratch / "far" / "a", std::string(100, 'a'));
    const auto far = std::make_shared<CountingSource>(scratch / "far");
    const auto source = std::make_shared<CachedSource>(
        far, CacheSettings{.directory = scratch / "near", .supply = {.threads = 2}});
    const ObjectInfo object = far->stat("a").value();
    const auto units = ExtentUnits::blocks({object}, 40);
    ASSERT_TRUE(source->keep(units, units->digest()));
    std::string text(60, '\0');
    const auto read = [&] {
        return source->read(object, 30, std::as_writable_bytes(std::span(text)));
    };
    ASSERT_TRUE(read()) << "while it is opened, reading fetches";
    EXPECT_EQ(text, std::string(60, 'a'));
    EXPECT_EQ(far->reads, 3);
    const std::vector<std::int64_t> samples = {1};
    const auto supply = source->supply(UnitNeeds(samples, {0, 3}, {0, 1, 2}));
    const Result<void> early = read();
    ASSERT_FALSE(early);
    EXPECT_THAT(early.error().text(), HasSubstr("has not come"));
    const std::uint64_t batch =
        supply->follow(std::make_shared<EpochPlan>(0, std::vector<std::int64_t>{0}, 1, false));
    supply->expect(batch);
    supply->wait(batch);
    EXPECT_TRUE(read());
    supply->end(batch);
    EXPECT_EQ(far->reads, 3) << "it was kept";
}

}  // namespace
}  // namespace tune::loader
