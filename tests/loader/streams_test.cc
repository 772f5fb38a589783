// A data set of several streams, of ranks that read the same, of workers, and of more samples than
// memory could hold an order of.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "loader/dataset.h"
#include "loader/format/mds/encoding.h"
#include "loader/order/lazy_order.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

Ids ids_of_epoch(Dataset& dataset) {
    Ids ids;
    Batch batch;
    while (dataset.next(batch).value())
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    return ids;
}

/// What is stored in column "id" of the samples of an epoch.
Ids read_values(Dataset& dataset) {
    Ids values;
    Batch batch;
    while (dataset.next(batch).value())
        for (std::size_t i = 0; i < batch.count; ++i) {
            std::int64_t value = 0;
            std::memcpy(&value, batch.column("id")->sample(i).data(), sizeof value);
            values.push_back(value);
        }
    return values;
}

std::unique_ptr<Dataset> opened(const DatasetOptions& options) {
    return Dataset::open(options).value();
}

struct Streams : testing::Test {
    void SetUp() override {
        write_numbers(scratch / "a", 30);
        write_numbers(scratch / "b" / "train", 20);
        options.streams = {{.directory = scratch / "a"},
                           {.directory = scratch / "b", .split = "train"}};
        options.batch_size = 5;
    }
    Scratch scratch;
    DatasetOptions options;
};

TEST_F(Streams, AreReadOneAfterTheOtherFromTheirOwnFolders) {
    Ids expected(30);
    std::iota(expected.begin(), expected.end(), 0);
    for (std::int64_t i = 0; i < 20; ++i) expected.push_back(i);
    const auto dataset = opened(options);
    EXPECT_EQ(dataset->sample_count(), 50);
    EXPECT_EQ(read_values(*dataset), expected);
}

TEST_F(Streams, WeightsDecideHowOftenSamplesCome) {
    options.streams[0].weight.repeat = 0.5;
    options.streams[1].weight.repeat = 2;
    options.shuffle = true;
    const auto dataset = opened(options);
    EXPECT_EQ(dataset->epoch_size(), 55);
    const Ids ids = ids_of_epoch(*dataset);
    EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](auto id) { return id < 30; }), 15);
    for (std::int64_t id = 30; id < 50; ++id)
        EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 2) << id;
}

TEST_F(Streams, AStateOfOtherWeightsIsRefused) {
    const DatasetState state = opened(options)->state();
    options.streams[0].weight.choose = 20;
    EXPECT_THAT(opened(options)->load_state(state).error().text(), HasSubstr("streams=2:"));
}

TEST_F(Streams, ResumeExactlyInEveryBatchingMethod) {
    options.shuffle = true;
    for (const char* method : {"random", "stratified", "per_stream", "device_per_stream"}) {
        options.batching = batching_method_from_name(method).value();
        const auto dataset = opened(options);
        Ids ids;
        Batch batch;
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(dataset->next(batch).value()) << method;
            ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
        }
        const auto resumed = opened(options);
        resumed->load_state(dataset->state()).value();
        const Ids rest = ids_of_epoch(*resumed);
        ids.insert(ids.end(), rest.begin(), rest.end());
        EXPECT_EQ(ids, ids_of_epoch(*opened(options))) << method;
        EXPECT_EQ(opened(options)->batches_per_epoch() * 5, static_cast<std::int64_t>(ids.size()))
            << method;
    }
}

TEST_F(Streams, MustHaveTheSameColumnsAndNoDirectoryBeside) {
    MdsWriter writer =
        MdsWriter::open({.directory = scratch / "c", .columns = {{"id", "int"}}}).value();
    writer.write(std::vector<Value>{std::int64_t{1}}).value();
    (void)writer.finish().value();
    options.streams.push_back({.directory = scratch / "c"});
    EXPECT_THAT(Dataset::open(options).error().text(), HasSubstr("other columns"));
    options.streams.pop_back();
    options.directory = scratch / "a";
    EXPECT_THAT(Dataset::open(options).error().text(), HasSubstr("not both"));
}

TEST_F(Streams, ReplicatedRanksReadTheSame) {
    options.shuffle = true;
    std::vector<Ids> ranks;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        options.world = {.rank = rank, .size = 4, .replication = 2};
        const auto dataset = opened(options);
        ranks.push_back(ids_of_epoch(*dataset));
    }
    EXPECT_EQ(ranks[0], ranks[1]);
    EXPECT_EQ(ranks[2], ranks[3]);
    EXPECT_NE(ranks[0], ranks[2]);
    options.world = {.rank = 0, .size = 4, .replication = 3};
    EXPECT_THAT(Dataset::open(options).error().text(), HasSubstr("groups of 3"));
}

TEST_F(Streams, WorkersShareARanksBatches) {
    options.shuffle = true;
    const Ids whole = ids_of_epoch(*opened(options));
    std::vector<Ids> workers;
    for (std::int64_t worker = 0; worker < 3; ++worker) {
        options.world = {.worker = worker, .workers = 3};
        const auto dataset = opened(options);
        EXPECT_EQ(dataset->remaining_ids(worker, 3).value(), ids_of_epoch(*opened(options)));
        workers.push_back(ids_of_epoch(*dataset));
        EXPECT_EQ(static_cast<std::int64_t>(workers.back().size()),
                  dataset->batches_per_epoch() * 5);
    }
    for (std::size_t i = 0; i < whole.size(); ++i)
        EXPECT_EQ(workers[i / 5 % 3][i / 15 * 5 + i % 5], whole[i]);
}

TEST_F(Streams, SamplesAreReadByNumberBesideTheIteration) {
    const auto dataset = opened(options);
    Batch batch;
    const Ids wanted = {31, 4, 4};
    dataset->read(wanted, batch).value();
    EXPECT_THAT(batch.sample_ids, ElementsAre(31, 4, 4));
    EXPECT_EQ(batch.columns.front().sample(0)[0], std::byte{1});  // sample 1 of stream b
    EXPECT_THAT(dataset->read(Ids{50}, batch).error().text(), HasSubstr("there is no sample 50"));
    EXPECT_TRUE(dataset->next(batch).value());
    EXPECT_EQ(batch.sample_ids[0], 0);
}

TEST_F(Streams, AConsumerThatHoldsEveryBatchIsGivenMore) {
    options.adds_batches = true;
    options.predownload = 5;
    for (const int threads : {0, 2}) {
        options.threads = threads;
        const auto dataset = opened(options);
        std::vector<Batch> held(10);
        for (Batch& batch : held) ASSERT_TRUE(dataset->next(batch).value());
        for (std::size_t b = 0; b < held.size(); ++b)
            EXPECT_EQ(held[b].sample_ids[0], static_cast<std::int64_t>(5 * b));
        EXPECT_TRUE(dataset->wait_next(std::chrono::seconds(10)));
        EXPECT_FALSE(dataset->next(held[0]).value());
    }
}

TEST(Lazy, ResumesInASetWhoseOrderWouldNotFitIntoMemory) {
    constexpr std::int64_t kShards = 16'384;
    const Scratch scratch;
    MdsWriter writer =
        MdsWriter::open({.directory = scratch / "d", .columns = {{"x", "uint8"}}}).value();
    for (std::int64_t i = 0; i < 65'536; ++i) writer.write(std::vector<Value>{i % 256}).value();
    Index index = writer.finish().value();
    index.shards.resize(kShards, index.shards.front());  // 1,073,741,824 samples
    write_bytes(scratch / "d" / "index.json", index_text(index));

    DatasetOptions options{.directory = scratch / "d", .batch_size = 16};
    options.order = OrderKind::kLazy;
    options.shuffle = true;
    options.threads = 1;
    const auto dataset = opened(options);
    EXPECT_EQ(dataset->batches_per_epoch(), kShards * 65'536 / 16);
    DatasetState state = dataset->state();
    state.epoch = 2;
    state.sample_in_epoch = 1'000'000'000;
    dataset->load_state(state).value();
    const LazyOrder order = LazyOrder::make({.sample_count = kShards * 65'536, .epoch = 2}).value();
    Batch batch;
    ASSERT_TRUE(dataset->next(batch).value());
    ASSERT_EQ(batch.count, 16u);
    for (std::size_t i = 0; i < 16; ++i) {
        const std::int64_t id = order.at(1'000'000'000 + static_cast<std::int64_t>(i));
        EXPECT_EQ(batch.sample_ids[i], id);
        EXPECT_EQ(batch.columns[0].data[i], static_cast<std::byte>(id % 256));
    }
    options.epoch_size = 100;
    EXPECT_THAT(Dataset::open(options).error().text(), HasSubstr("reads every sample once"));
}

}  // namespace
}  // namespace tune::loader
