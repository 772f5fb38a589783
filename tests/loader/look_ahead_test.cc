// What is looked at along the order before it is read: shards that are opened ahead, and shards
// that may be evicted.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/system/unique_fd.h"
#include "loader/batch_decoder.h"
#include "loader/cache/shard_unit_store.h"
#include "loader/cache/supply/eviction_order.h"
#include "loader/cache/supply/unit_supply.h"
#include "loader/dataset.h"
#include "loader/epoch_plan.h"
#include "loader/format/compression.h"
#include "loader/format/hash.h"
#include "loader/order/lazy_order.h"
#include "loader/source/local_source.h"
#include "loader/source/shard_opener.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::int64_t>;

EpochPlan lazy_plan(std::int64_t samples, std::int64_t batch_size, bool shuffle = true) {
    const LazyOrder order = LazyOrder::make({.sample_count = samples, .shuffle = shuffle}).value();
    return {0, LazyRank(order, {.batch_size = batch_size}), batch_size, false};
}

TEST(EpochPlan, WhatIsLeftOfALazyOrderCanBeLookedAtToo) {
    const EpochPlan plan = lazy_plan(5000, 64);
    Ids all;
    std::vector<std::int64_t> scratch;
    for (std::size_t batch = 0; batch < plan.batch_count(); ++batch)
        for (const std::int64_t id : plan.batch(batch, scratch)) all.push_back(id);
    for (const std::size_t batch : {std::size_t{0}, std::size_t{7}, plan.batch_count() - 1}) {
        const EpochPlan::Rest rest = plan.from(batch);
        ASSERT_EQ(rest.size(), all.size() - 64 * batch);
        for (std::size_t i = 0; i < rest.size(); ++i) ASSERT_EQ(rest[i], all[64 * batch + i]);
    }
}

TEST(EpochPlan, WhatIsLeftHasNoGaps) {
    const EpochPlan plan(0, {4, -1, 3, 2, -1, 1, 0}, 2, false);
    std::vector<std::int64_t> left;
    const EpochPlan::Rest rest = plan.from(1);
    for (std::size_t i = 0; i < rest.size(); ++i) left.push_back(rest[i]);
    EXPECT_THAT(left, ElementsAre(3, 2, 1, 0));
}

TEST(ShardLookout, FindsTheShardsOfALazyOrderSoonestFirst) {
    const std::vector<std::int64_t> samples(100, 10'000);
    const ShardMap map(samples);
    const ShardLookout lookout(map, samples.size(), 1'000'000);
    const EpochPlan plan = lazy_plan(1'000'000, 100, false);
    const std::vector<std::size_t> found = lookout.find(plan.from(150), {});
    ASSERT_GT(found.size(), 10U);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], 1 + i);
}

TEST(EvictionOrder, WhatIsWantedLastComesLast) {
    std::vector<FollowedPlan> plans;
    plans.push_back({std::make_shared<EpochPlan>(0, Ids{30, 0, 10, 20}, 1, false), 5});
    plans.push_back({std::make_shared<EpochPlan>(1, Ids{40, 0}, 1, false), 9});
    std::vector<std::size_t> candidates = {0, 1, 2, 4, 7, 9};
    const std::vector<std::uint32_t> units = {0, 1, 2, 3, 4};
    const auto units_of = [&](std::int64_t id) {
        return std::span(units).subspan(static_cast<std::size_t>(id / 10), 1);
    };
    EXPECT_THAT(take_wanted({plans, 7, units_of, 1000}, candidates), ElementsAre(1, 2, 4, 0));
    EXPECT_THAT(candidates, ElementsAre(7, 9)) << "nothing wants them";
}

TEST(EvictionOrder, TheSearchEndsHoweverLongThePlanIs) {
    // Two shards of 10^8 samples are wanted only at the end of 10^9.
    const std::vector<FollowedPlan> plans = {
        {std::make_shared<EpochPlan>(lazy_plan(1'000'000'000, 256, false)), 0}};
    std::size_t looks = 0;
    const std::vector<std::uint32_t> units = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const auto units_of = [&](std::int64_t id) {
        ++looks;
        return std::span(units).subspan(static_cast<std::size_t>(id / 100'000'000), 1);
    };
    std::vector<std::size_t> candidates = {8, 9, 0};
    EXPECT_THAT(take_wanted({plans, 0, units_of, 10'000}, candidates), ElementsAre(0));
    EXPECT_THAT(candidates, ElementsAre(8, 9));
    EXPECT_LT(looks, 10'000U + 256);
}

/// Puts a pipe in the place of a file; the file is back when the object goes.
class Pipe {
public:
    explicit Pipe(std::filesystem::path path)
        : path_(std::move(path)), content_(read_bytes(path_)) {
        std::filesystem::remove(path_);
        EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    }
    ~Pipe() {
        // Whoever waits in open() goes on.
        const UniqueFd fd(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        std::filesystem::remove(path_);
        write_bytes(path_, content_);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    /// Whether somebody opens it for reading within that time: opening for writing succeeds then.
    [[nodiscard]] bool is_opened_within(std::chrono::seconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
            const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
            if (fd) return true;
            std::this_thread::yield();
        }
        return false;
    }

private:
    const std::filesystem::path path_;
    const std::string content_;
};

TEST(LookAhead, ALocalShardIsOpenedBeforeABatchNeedsIt) {
    for (const char* const compression : {"", "zstd"}) {
        const Scratch scratch;
        const Index index = write_numbers(scratch / "d", 2000, {.compression = compression});
        const ShardInfo& far = index.shards[6];
        const FileInfo& file = far.zip_data ? *far.zip_data : far.raw_data;
        std::unique_ptr<Dataset> dataset;
        {
            Pipe pipe(scratch / "d" / file.basename);
            // One sample a batch: no thread decodes beyond the first two shards.
            dataset =
                Dataset::open({.directory = scratch / "d", .batch_size = 1, .threads = 1}).value();
            Batch batch;
            ASSERT_TRUE(dataset->next(batch).value());
            EXPECT_TRUE(pipe.is_opened_within(std::chrono::seconds(60))) << compression;
        }
        Batch batch;
        std::int64_t samples = 1;
        while (dataset->next(batch).value()) ++samples;
        EXPECT_EQ(samples, 2000) << "what failed ahead is opened again by the batch";
    }
}

TEST(LookAhead, ShardsThatAreNeededSoonAreNotDroppedForOthers) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "d", 400, {.compression = "zstd"});
    const std::size_t bytes = index.shards.front().raw_data.bytes;
    const auto store = std::make_shared<ShardStore>(scratch / "d", index, true, 3 * bytes);
    for (const std::size_t shard : {0u, 1u, 2u}) ASSERT_TRUE(store->get(shard));
    const std::vector<std::size_t> needed = {0, 1};
    store->keep_longest(needed);
    ASSERT_TRUE(store->get(5));
    EXPECT_TRUE(store->is_open(0) && store->is_open(1));
    EXPECT_FALSE(store->is_open(2));
}

TEST(LookAhead, OneProcessThatStallsHidesNoShardThatAnotherHasFinished) {
    const Scratch scratch;
    // Compressed, so that no batch can be read sample by sample meanwhile.
    const Index index =
        write_numbers(scratch / "far", 60, {.compression = "zstd", .hashes = {"xxh3_64"}});
    ASSERT_GE(index.shards.size(), 4U);
    const auto units = std::make_shared<const IndexUnits>(index, false);
    const CacheOptions options{.directory = scratch / "near"};
    const std::shared_ptr<const ObjectSource> source =
        std::make_shared<LocalSource>(scratch / "far");
    // Another process, as the kernel's locks have it: a cache of its own on the same folder.
    const auto other = DiskCache::open(options, units, "d").value();
    ASSERT_TRUE(other->try_claim(1) && other->try_claim(2));
    const auto cache = DiskCache::open(options, units, "d").value();
    const auto store = std::make_shared<ShardStore>(source, index, true, std::size_t{1} << 20);
    std::vector<SupplyPart> parts = {{.source = source, .cache = cache}};
    std::vector<std::int64_t> samples;
    for (const ShardInfo& shard : index.shards) samples.push_back(shard.samples);
    UnitSupply supply(std::make_shared<UnitFetcher>(std::move(parts),
                                                    std::make_shared<ShardUnitStore>(store), 16),
                      UnitNeeds::one_each(samples), {.predownload = 1000});
    // A batch each of the shards 0, 1 and 2.
    const std::int64_t second = index.shards[0].samples;
    const std::int64_t third = second + index.shards[1].samples;
    const std::uint64_t base =
        supply.follow(std::make_shared<EpochPlan>(0, Ids{0, second, third}, 1, false));
    std::promise<void> came;
    std::atomic<bool> has_come = false;
    supply.set_listener([&] {
        if (supply.is_ready(base + 2) && !has_come.exchange(true)) came.set_value();
    });
    for (std::uint64_t batch = 0; batch < 3; ++batch) supply.expect(base + batch);
    supply.wait(base);
    EXPECT_FALSE(supply.is_ready(base + 2));
    // It has fetched shard 2, and goes on holding shard 1.
    const ShardInfo& info = index.shards[2];
    const std::string stored = read_bytes(scratch / "far" / info.zip_data->basename);
    const OwnedBytes raw =
        decompress({}, std::as_bytes(std::span(stored)), info.raw_data.bytes).value();
    ASSERT_TRUE(other->reserve(2, {}));
    write_bytes(other->part_path(2, false),
                {reinterpret_cast<const char*>(raw.bytes().data()), raw.size});
    ASSERT_TRUE(other->commit(2, xxh3_64(raw.bytes())));
    other->unclaim(2);
    EXPECT_EQ(came.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    EXPECT_FALSE(supply.is_ready(base + 1));
    supply.set_listener({});
    other->unclaim(1);
    supply.wait(base + 1);
}

}  // namespace
}  // namespace tune::loader
