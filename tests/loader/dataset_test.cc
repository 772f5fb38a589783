#include "loader/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

/// What one epoch gave: the sample ids, and how they were cut into batches.
struct Read {
    Ids ids;
    std::vector<std::size_t> batches;
    bool operator==(const Read&) const = default;
};

Read read_epoch(Dataset& dataset) {
    Read read;
    Batch batch;
    while (dataset.next(batch).value()) {
        read.ids.insert(read.ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
        read.batches.push_back(batch.count);
    }
    return read;
}

std::unique_ptr<Dataset> open_or_die(DatasetOptions options) {
    auto dataset = Dataset::open(std::move(options));
    EXPECT_TRUE(dataset.has_value()) << dataset.error().text();
    return std::move(dataset).value();
}

std::string open_fault(DatasetOptions options) {
    const auto dataset = Dataset::open(std::move(options));
    return dataset ? "no error" : dataset.error().text();
}

class Numbers : public testing::TestWithParam<int> {
protected:
    void SetUp() override { write_numbers(scratch_ / "d", 100); }

    [[nodiscard]] DatasetOptions options(std::int64_t batch_size = 8) const {
        return {.directory = scratch_ / "d",
                .batch_size = batch_size,
                .shuffle = true,
                .shuffle_block_size = 40,
                .threads = GetParam()};
    }

    Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(Threads, Numbers, testing::Values(0, 1, 4));

TEST_P(Numbers, BatchesHoldTheSamplesTheyName) {
    const auto dataset = open_or_die(options());
    ASSERT_EQ(dataset->columns().size(), 2U);
    EXPECT_EQ(dataset->columns()[1].shape, (std::vector<std::int64_t>{2, 2}));
    EXPECT_EQ(dataset->columns()[1].dtype, Dtype::kUint8);
    EXPECT_EQ(dataset->sample_count(), 100);
    EXPECT_EQ(dataset->batches_per_epoch(), 13);
    Batch batch;
    std::size_t samples = 0;
    while (dataset->next(batch).value()) {
        const Column* id = batch.column("id");
        const Column* pixels = batch.column("pixels");
        ASSERT_TRUE(id && pixels);
        EXPECT_EQ(batch.column("label"), nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(id->data) % 64, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pixels->data) % 64, 0U);
        for (std::size_t i = 0; i < batch.count; ++i) {
            std::int64_t stored = 0;
            std::memcpy(&stored, id->data + 8 * i, sizeof stored);
            ASSERT_EQ(stored, batch.sample_ids[i]);
            for (std::size_t k = 0; k < 4; ++k)
                ASSERT_EQ(static_cast<std::int64_t>(pixels->sample(i)[k]),
                          batch.sample_ids[i] + static_cast<std::int64_t>(k));
        }
        samples += batch.count;
    }
    EXPECT_EQ(samples, 100U);
}

TEST_P(Numbers, EveryEpochHasAnOrderOfItsOwn) {
    const auto dataset = open_or_die(options());
    Read first = read_epoch(*dataset);
    EXPECT_EQ(dataset->epoch(), 1);
    Read second = read_epoch(*dataset);
    EXPECT_EQ(first.batches.size(), 13U);
    EXPECT_EQ(first.batches.back(), 4U);
    EXPECT_NE(first.ids, second.ids);
    std::sort(first.ids.begin(), first.ids.end());
    std::sort(second.ids.begin(), second.ids.end());
    EXPECT_EQ(first.ids, second.ids);
}

TEST_P(Numbers, TheOrderDoesNotDependOnThreads) {
    DatasetOptions alone = options();
    alone.threads = 0;
    const auto expected = open_or_die(alone);
    const auto dataset = open_or_die(options());
    for (int epoch = 0; epoch < 5; ++epoch) EXPECT_EQ(read_epoch(*dataset), read_epoch(*expected));
}

/// The reference for resuming: stop after any number of samples, in either of two epochs, and the
/// rest is the rest of the uninterrupted run.
TEST_P(Numbers, ResumesAtEverySample) {
    const auto whole = open_or_die(options(1));
    Ids order = read_epoch(*whole).ids;
    const Ids second = read_epoch(*whole).ids;
    order.insert(order.end(), second.begin(), second.end());

    const auto stopped = open_or_die(options(1));
    const auto resumed = open_or_die(options(8));
    Batch batch;
    for (std::size_t consumed = 0; consumed < order.size(); ++consumed) {
        if (consumed == 100) {
            ASSERT_FALSE(stopped->next(batch).value());
        }
        const Json saved = Json::parse(stopped->state().to_json().dump());
        ASSERT_TRUE(resumed->load_state(DatasetState::from_json(saved).value()));
        Ids rest = read_epoch(*resumed).ids;
        if (consumed < 100) {
            const Ids next_epoch = read_epoch(*resumed).ids;
            rest.insert(rest.end(), next_epoch.begin(), next_epoch.end());
        }
        ASSERT_EQ(rest, Ids(order.begin() + static_cast<std::ptrdiff_t>(consumed), order.end()))
            << consumed;
        ASSERT_TRUE(stopped->next(batch).value());
        ASSERT_EQ(batch.sample_ids[0], order[consumed]);
    }
}

TEST_P(Numbers, AStateAtTheEndOfAnEpochGivesOneEmptyPass) {
    const auto dataset = open_or_die(options(10));
    Batch batch;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(dataset->next(batch).value());
    const DatasetState state = dataset->state();
    EXPECT_EQ(state.epoch, 0);
    EXPECT_EQ(state.sample_in_epoch, 100);
    const auto resumed = open_or_die(options(10));
    ASSERT_TRUE(resumed->load_state(state));
    EXPECT_FALSE(resumed->next(batch).value());
    EXPECT_FALSE(dataset->next(batch).value());
    EXPECT_EQ(read_epoch(*resumed), read_epoch(*dataset));
}

TEST_P(Numbers, WholeBatchesOnlyWhenAskedFor) {
    DatasetOptions wanted = options();
    wanted.drop_last = true;
    const auto dataset = open_or_die(wanted);
    EXPECT_EQ(dataset->batches_per_epoch(), 12);
    const Read read = read_epoch(*dataset);
    EXPECT_EQ(read.batches, std::vector<std::size_t>(12, 8));
    EXPECT_EQ(read_epoch(*dataset).batches.size(), 12U);
}

TEST_P(Numbers, StartEpochLeavesTheRestOut) {
    const auto dataset = open_or_die(options());
    const auto other = open_or_die(options());
    read_epoch(*other);
    read_epoch(*other);
    Batch batch;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(dataset->next(batch).value());
    dataset->start_epoch(2);
    EXPECT_EQ(dataset->epoch(), 2);
    EXPECT_EQ(read_epoch(*dataset), read_epoch(*other));
}

TEST_P(Numbers, ABatchMayOutliveItsDataset) {
    auto dataset = open_or_die(options());
    Batch batch;
    ASSERT_TRUE(dataset->next(batch).value());
    const Batch kept = std::move(batch);
    EXPECT_EQ(batch.count, 0U);
    dataset.reset();
    std::int64_t stored = 0;
    std::memcpy(&stored, kept.column("id")->data, sizeof stored);
    EXPECT_EQ(stored, kept.sample_ids[0]);
}

TEST_P(Numbers, HoldingEverySlotIsAnErrorAndNotADeadlock) {
    DatasetOptions wanted = options();
    wanted.predownload = 16;  // two batches ahead, three slots
    const auto dataset = open_or_die(wanted);
    std::vector<Batch> held(4);
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(dataset->next(held[i]).value());
    const auto refused = dataset->next(held[3]);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
    EXPECT_THAT(refused.error().message, HasSubstr("all 3 batches"));
    held[0].reset();
    ASSERT_TRUE(dataset->next(held[3]).value());
    const auto other = open_or_die(options());
    Batch batch;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(other->next(batch).value());
    EXPECT_EQ(held[3].sample_ids[0], batch.sample_ids[0]);
}

TEST_P(Numbers, RanksShareEachEpoch) {
    Ids all;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        DatasetOptions wanted = options(5);
        wanted.world = {rank, 4, 2};
        const auto dataset = open_or_die(wanted);
        const Read read = read_epoch(*dataset);
        EXPECT_EQ(read.batches, std::vector<std::size_t>(5, 5));
        all.insert(all.end(), read.ids.begin(), read.ids.end());
        EXPECT_EQ(dataset->state().initial_physical_nodes, 2);
    }
    std::sort(all.begin(), all.end());
    Ids expected(100);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
}

TEST_P(Numbers, ARunResumesWithMoreRanks) {
    const auto two = [&](std::int64_t rank) {
        DatasetOptions wanted = options(10);
        wanted.num_canonical_nodes = 2;
        wanted.world = {rank, 2, 0};
        return open_or_die(wanted);
    };
    const auto first = two(0);
    const auto second = two(1);
    Batch batch;
    ASSERT_TRUE(first->next(batch).value());
    const DatasetState state = first->state();
    EXPECT_EQ(state.sample_in_epoch, 20);
    ASSERT_TRUE(second->next(batch).value());
    Ids left = read_epoch(*first).ids;
    const Ids others = read_epoch(*second).ids;
    left.insert(left.end(), others.begin(), others.end());
    std::sort(left.begin(), left.end());

    Ids resumed;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        DatasetOptions wanted = options(5);
        wanted.world = {rank, 4, 0};
        const auto dataset = open_or_die(wanted);
        ASSERT_TRUE(dataset->load_state(state));
        const Ids ids = read_epoch(*dataset).ids;
        resumed.insert(resumed.end(), ids.begin(), ids.end());
    }
    std::sort(resumed.begin(), resumed.end());
    EXPECT_EQ(resumed, left);
}

TEST_P(Numbers, AnEpochSizeDrawsAnew) {
    DatasetOptions wanted = options(10);
    wanted.epoch_size = 150;
    const auto dataset = open_or_die(wanted);
    const Read first = read_epoch(*dataset);
    EXPECT_EQ(first.ids.size(), 150U);
    Ids counts(100, 0);
    for (const std::int64_t id : first.ids) ++counts[static_cast<std::size_t>(id)];
    for (const std::int64_t count : counts) EXPECT_TRUE(count == 1 || count == 2);
    EXPECT_NE(read_epoch(*dataset).ids, first.ids);
}

TEST_P(Numbers, StatesOfOtherDataOrOrdersAreRefused) {
    const auto dataset = open_or_die(options());
    const auto fault = [&](const DatasetOptions& saved_with) {
        const auto loaded = dataset->load_state(open_or_die(saved_with)->state());
        return loaded ? std::string("no error") : loaded.error().message;
    };
    EXPECT_EQ(fault(options(3)), "no error");
    DatasetOptions other_algo = options();
    other_algo.shuffle_algo = ShuffleAlgo::kNaive;
    EXPECT_THAT(fault(other_algo), HasSubstr("shuffle=naive"));
    EXPECT_THAT(fault(other_algo), HasSubstr("shuffle=py1e block=40"));
    DatasetOptions no_shuffle = options();
    no_shuffle.shuffle = false;
    EXPECT_THAT(fault(no_shuffle), HasSubstr("shuffle=off"));
    write_numbers(scratch_ / "e", 101);
    DatasetOptions other_data = options();
    other_data.directory = scratch_ / "e";
    EXPECT_THAT(fault(other_data), HasSubstr("saved for other data"));

    DatasetState beyond = dataset->state();
    beyond.sample_in_epoch = 500;
    EXPECT_THAT(dataset->load_state(beyond).error().message, HasSubstr("only 100 samples"));
    EXPECT_EQ(read_epoch(*dataset).ids.size(), 100U);  // and nothing has changed
}

TEST_P(Numbers, TakesTheStateOfMosaic) {
    const Json json = Json::parse(R"({"epoch": 1, "initial_physical_nodes": null,
        "num_canonical_nodes": 2, "sample_in_epoch": 12, "shuffle_seed": 7})");
    const auto dataset = open_or_die(options());
    ASSERT_TRUE(dataset->load_state(DatasetState::from_json(json).value()));
    EXPECT_EQ(dataset->epoch(), 1);
    DatasetOptions same = options();
    same.seed = 7;
    same.num_canonical_nodes = 2;
    const auto expected = open_or_die(same);
    read_epoch(*expected);
    const Ids epoch = read_epoch(*expected).ids;
    EXPECT_EQ(read_epoch(*dataset).ids, Ids(epoch.begin() + 12, epoch.end()));
}

TEST_P(Numbers, DamageSurfacesFromNextAndNamesTheShard) {
    const std::string file = "shard.00003.mds";
    std::string bytes = read_bytes(scratch_ / "d" / file);
    const std::string whole = bytes;
    bytes.pop_back();
    write_bytes(scratch_ / "d" / file, bytes);
    const auto dataset = open_or_die(options());
    Batch batch;
    Ids ids;
    Result<bool> more = true;
    while ((more = dataset->next(batch)) && *more)
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code, Code::kDataLoss);
    EXPECT_THAT(more.error().text(), HasSubstr(file));
    EXPECT_THAT(more.error().text(), HasSubstr("the index states"));

    // Repaired, the dataset resumes where it stood.
    write_bytes(scratch_ / "repaired", whole);
    std::filesystem::rename(scratch_ / "repaired", scratch_ / "d" / file);
    const Ids rest = read_epoch(*dataset).ids;
    ids.insert(ids.end(), rest.begin(), rest.end());
    EXPECT_EQ(ids, read_epoch(*open_or_die(options())).ids);
}

TEST_P(Numbers, AMissingShardIsNamed) {
    std::filesystem::remove(scratch_ / "d" / "shard.00000.mds");
    const auto dataset = open_or_die(options(100));
    Batch batch;
    const auto more = dataset->next(batch);
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code, Code::kResourceDoesNotExist);
    EXPECT_THAT(more.error().text(), HasSubstr("shard.00000.mds"));
}

TEST(Dataset, FlippedBitsAreFoundByHash) {
    const Scratch scratch;
    write_numbers(scratch / "d", 100, {.hashes = {"sha1", "xxh3_64"}});
    std::string bytes = read_bytes(scratch / "d" / "shard.00001.mds");
    bytes.back() = static_cast<char>(bytes.back() ^ 4);
    write_bytes(scratch / "d" / "shard.00001.mds", bytes);
    DatasetOptions options{.directory = scratch / "d", .batch_size = 100};
    Batch batch;
    const auto more = open_or_die(options)->next(batch);
    ASSERT_FALSE(more.has_value());
    EXPECT_THAT(more.error().text(), HasSubstr("shard.00001.mds"));
    EXPECT_THAT(more.error().text(), HasSubstr("its content was changed: sha1 is "));
    EXPECT_THAT(more.error().text(), HasSubstr("the index states"));
    options.verify = Verify::kStructure;
    EXPECT_TRUE(open_or_die(options)->next(batch).value());
}

TEST(Dataset, VariableColumnsComeWithOffsets) {
    const Scratch scratch;
    write_texts(scratch / "d", 30);
    for (const int threads : {0, 2}) {
        const auto dataset = open_or_die(
            {.directory = scratch / "d", .batch_size = 7, .shuffle = true, .threads = threads});
        Batch batch;
        std::size_t samples = 0;
        while (dataset->next(batch).value()) {
            const Column& text = *batch.column("text");
            ASSERT_FALSE(text.info->fixed);
            EXPECT_EQ(text.offsets[0], 0U);
            for (std::size_t i = 0; i < batch.count; ++i)
                EXPECT_EQ(text.text(i),
                          std::string(static_cast<std::size_t>(batch.sample_ids[i]), 'x'));
            samples += batch.count;
        }
        EXPECT_EQ(samples, 30U);
    }
}

TEST(Dataset, CompressedShardsAreReadWithinTheirMemoryBound) {
    const Scratch scratch;
    for (const char* compression : {"zstd", "gz:1"}) {
        const auto directory = scratch / std::string(compression);
        write_texts(directory, 200, {.compression = compression, .hashes = {"xxh64"}});
        ASSERT_FALSE(std::filesystem::exists(directory / "shard.00000.mds"));
        for (const std::size_t bytes_max : {std::size_t{1}, std::size_t{1} << 30})
            for (const int threads : {0, 3}) {
                const auto dataset = open_or_die({.directory = directory,
                                                  .batch_size = 16,
                                                  .shuffle = true,
                                                  .threads = threads,
                                                  .decompressed_bytes_max = bytes_max});
                Batch batch;
                std::size_t samples = 0;
                while (dataset->next(batch).value())
                    for (std::size_t i = 0; i < batch.count; ++i, ++samples)
                        ASSERT_EQ(batch.column("text")->sample(i).size(),
                                  static_cast<std::size_t>(batch.sample_ids[i]));
                EXPECT_EQ(samples, 200U);
            }
    }
}

/// Anonymous memory of this process: mapped files are the page cache's.
double anonymous_MB() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1e3;
    return 0;
}

TEST(Dataset, MemoryIsFlatOverEpochsAndWithinItsBound) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
    constexpr std::int64_t kCount = 200'000;
    const Scratch scratch;
    write_numbers(scratch / "d", kCount, {.size_limit = 1 << 20});
    const double before = anonymous_MB();
    const auto dataset = open_or_die(
        {.directory = scratch / "d", .batch_size = 1000, .shuffle = true, .threads = 2});
    const auto read = [&](int epochs) {
        Batch batch;
        for (int epoch = 0; epoch < epochs; ++epoch)
            while (dataset->next(batch).value()) {
            }
    };
    read(3);
    const double early = anonymous_MB();
    double most = early;
    for (int epoch = 3; epoch < 20; ++epoch) {
        read(1);
        most = std::max(most, anonymous_MB());
    }
    // As docs/loader.md states it: 9 batches; 8 bytes a sample for this epoch's order and the next
    // one's, 32 while that is worked out. The rest is threads and the allocator.
    const double bound = 9 * 1000 * 20 / 1e6 + kCount * (8 + 8 + 32) / 1e6;
    EXPECT_LT(most - before, bound + 8);
    EXPECT_LT(most - early, 8) << "an epoch's order that stays would be 1.6 MB, 17 of them 27";
}

TEST(Dataset, ReadsOnlyTheColumnsAskedFor) {
    const Scratch scratch;
    write_texts(scratch / "d", 10);
    const auto dataset = open_or_die(
        {.directory = scratch.path(), .split = "d", .batch_size = 10, .columns = {"text"}});
    ASSERT_EQ(dataset->columns().size(), 1U);
    Batch batch;
    ASSERT_TRUE(dataset->next(batch).value());
    EXPECT_EQ(batch.columns.size(), 1U);
    EXPECT_EQ(batch.column("text")->text(9), "xxxxxxxxx");
    EXPECT_THAT(open_fault({.directory = scratch / "d", .columns = {"txt"}}),
                HasSubstr("there is no column 'txt'; the data set has id text"));
}

TEST(Dataset, SaysWhatIsWrongWithItsOptions) {
    const Scratch scratch;
    write_numbers(scratch / "d", 20);
    const DatasetOptions good{.directory = scratch / "d"};
    const auto fault = [&](auto change) {
        DatasetOptions options = good;
        change(options);
        return open_fault(options);
    };
    EXPECT_EQ(open_fault(good), "no error");
    EXPECT_THAT(fault([](auto& o) { o.batch_size = 0; }), HasSubstr("batch size"));
    EXPECT_THAT(fault([](auto& o) { o.threads = -1; }), HasSubstr("threads"));
    EXPECT_THAT(fault([](auto& o) { o.epoch_size = -1; }), HasSubstr("epoch_size"));
    EXPECT_THAT(fault([](auto& o) { o.seed = ~std::uint64_t{0}; }), HasSubstr("seed"));
    EXPECT_THAT(fault([](auto& o) { o.world = {2, 2, 0}; }), HasSubstr("rank 2 of 2"));
    EXPECT_THAT(fault([](auto& o) { o.world = {0, 3, 2}; }), HasSubstr("do not divide"));
    EXPECT_THAT(fault([](auto& o) {
                    o.shuffle = true;
                    o.num_canonical_nodes = 32;
                }),
                HasSubstr("at least one sample for each"));
    EXPECT_THAT(fault([](auto& o) {
                    o.batch_size = 21;
                    o.drop_last = true;
                }),
                HasSubstr("less than one batch of 21"));
    EXPECT_THAT(fault([&](auto& o) { o.directory = scratch / "none"; }),
                HasSubstr("none/index.json"));
}

TEST(Dataset, RefusesDataWithoutSamplesOrWithMixedColumns) {
    const Scratch scratch;
    write_numbers(scratch / "empty", 0);
    EXPECT_THAT(open_fault({.directory = scratch / "empty"}), HasSubstr("has no samples"));
    Json index = Json::parse(index_text(write_numbers(scratch / "d", 40)));
    index["shards"][1]["column_names"] = {"id", "pictures"};
    write_bytes(scratch / "d" / "index.json", index.dump());
    EXPECT_THAT(open_fault({.directory = scratch / "d"}),
                HasSubstr("'shard.00001.mds' has other columns"));
}

TEST(State, ReadsBackAndRefusesNonsense) {
    DatasetState state;
    state.epoch = 3;
    state.order = "mosaic-v1";
    const DatasetState back = DatasetState::from_json(state.to_json()).value();
    EXPECT_EQ(back.epoch, 3);
    EXPECT_EQ(back.order, "mosaic-v1");
    const auto fault = [&](const char* field, const Json& value) {
        Json json = state.to_json();
        json[field] = value;
        const auto parsed = DatasetState::from_json(json);
        return parsed ? std::string("no error") : parsed.error().message;
    };
    EXPECT_THAT(fault("epoch", -1), HasSubstr("'epoch' of the loader state is -1"));
    EXPECT_THAT(fault("sample_in_epoch", "3"), HasSubstr("'sample_in_epoch'"));
    EXPECT_THAT(fault("num_canonical_nodes", 0), HasSubstr("from 1 on"));
    EXPECT_THAT(fault("order", 1), HasSubstr("no text"));
    EXPECT_THAT(DatasetState::from_json(Json::object()).error().message,
                HasSubstr("lacks 'epoch'"));
    EXPECT_FALSE(DatasetState::from_json(Json(3)).has_value());
}

}  // namespace
}  // namespace tune::loader
