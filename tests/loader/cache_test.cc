// Data sets that are read through a cache: the same samples in the same order, whatever the limit;
// what is there is neither fetched nor trusted twice.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "loader/cache/disk_cache.h"
#include "loader/dataset.h"
#include "loader/source/local_source.h"
#include "tests/loader/scratch.h"

namespace tune::loader {
namespace {

/// Number and contents of a sample of the batch.
std::string sample_of(const Batch& batch, std::size_t i) {
    std::string sample = std::to_string(batch.sample_ids[i]);
    for (const Column& column : batch.columns) sample += "|" + std::string(column.text(i));
    return sample;
}

/// Reads an epoch; what it gave, sample by sample.
std::vector<std::string> epoch_of(Dataset& dataset) {
    std::vector<std::string> samples;
    Batch batch;
    while (dataset.next(batch).value())
        for (std::size_t i = 0; i < batch.count; ++i) samples.push_back(sample_of(batch, i));
    return samples;
}

DatasetOptions cached(const Scratch& scratch) {
    return {.remote = scratch / "far", .local = scratch / "near", .batch_size = 7, .shuffle = true};
}

DatasetOptions direct(const Scratch& scratch) {
    return {.directory = scratch / "far", .batch_size = 7, .shuffle = true};
}

std::vector<std::string> expected_epochs(const Scratch& scratch, int epochs) {
    auto dataset = Dataset::open(direct(scratch)).value();
    std::vector<std::string> all;
    for (int i = 0; i < epochs; ++i)
        for (std::string& sample : epoch_of(*dataset)) all.push_back(std::move(sample));
    return all;
}

std::vector<std::string> epochs_of(DatasetOptions options, int epochs) {
    auto dataset = Dataset::open(std::move(options)).value();
    std::vector<std::string> all;
    for (int i = 0; i < epochs; ++i)
        for (std::string& sample : epoch_of(*dataset)) all.push_back(std::move(sample));
    return all;
}

/// Reads epochs until so many shards were fetched: first epochs may be over before they have come.
void read_until_fetched(Dataset& dataset, std::uint64_t shards) {
    for (int i = 0; i < 10'000 && dataset.fetch_stats().shards < shards; ++i) epoch_of(dataset);
    EXPECT_EQ(dataset.fetch_stats().shards, shards);
}

std::uint64_t shard_bytes(const std::filesystem::path& directory) {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        if (entry.path().filename().string().starts_with("shard.")) bytes += entry.file_size();
    return bytes;
}

TEST(CachedDataset, SamplesByNumberAreFetchedAlongWhatIsExpected) {
    const Scratch scratch;
    write_texts(scratch / "far", 150);
    DatasetOptions options = cached(scratch);
    options.threads = 0;
    const std::vector<std::string> expected = expected_epochs(scratch, 1);
    auto dataset = Dataset::open(options).value();
    const std::vector<std::int64_t> ids = dataset->remaining_ids(0, 1).value();
    ASSERT_EQ(ids.size(), expected.size());
    dataset->expect_reads(ids);
    Batch batch;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i % 40 == 7) {  // another one between
            const std::vector<std::int64_t> others = {3, 149, 3};
            ASSERT_TRUE(dataset->read(others, batch).has_value());
            EXPECT_EQ(batch.count, 3u);
        }
        ASSERT_TRUE(dataset->read(std::span(&ids[i], 1), batch).has_value());
        EXPECT_EQ(sample_of(batch, 0), expected[i]);
    }
    EXPECT_EQ(epoch_of(*dataset), expected) << "next() goes on as if nothing had been read";
    ASSERT_TRUE(dataset->read(std::span(&ids[0], 1), batch).has_value());
}

TEST(CachedDataset, SamplesByNumberNeedAReaderThatDoesNotDecodeAhead) {
    const Scratch scratch;
    write_texts(scratch / "far", 30);
    auto dataset = Dataset::open(cached(scratch)).value();
    Batch batch;
    const std::vector<std::int64_t> ids = {1};
    EXPECT_EQ(dataset->read(ids, batch).error().code, Code::kInvalidState);
}

TEST(CachedDataset, SeveralStreamsHaveACacheEach) {
    const Scratch scratch;
    write_texts(scratch / "far/a", 70);
    write_texts(scratch / "far/b/train", 40);
    DatasetOptions options{.batch_size = 7, .shuffle = true};
    options.streams = {{.directory = scratch / "far/a"},
                       {.directory = scratch / "far/b", .split = "train"}};
    const std::vector<std::string> expected = epochs_of(options, 2);
    options.streams = {
        {.remote = scratch / "far/a", .local = scratch / "near/a"},
        {.split = "train", .remote = scratch / "far/b", .local = scratch / "near/b"}};
    auto dataset = Dataset::open(options).value();
    std::vector<std::string> all = epoch_of(*dataset);
    for (std::string& sample : epoch_of(*dataset)) all.push_back(std::move(sample));
    EXPECT_EQ(all, expected);
    EXPECT_GT(shard_bytes(scratch / "near/a"), 0u);
    EXPECT_GT(shard_bytes(scratch / "near/b/train"), 0u);
    options.streams[0] = {.directory = scratch / "far/a"};
    EXPECT_NE(Dataset::open(options).error().message.find("are mixed"), std::string::npos);
}

TEST(CachedDataset, GivesTheSamplesOfTheDataItself) {
    for (const int threads : {0, 1, 3}) {
        const Scratch scratch;
        write_texts(scratch / "far", 150);
        DatasetOptions options = cached(scratch);
        options.threads = threads;
        EXPECT_EQ(epochs_of(options, 2), expected_epochs(scratch, 2)) << threads;
    }
}

TEST(CachedDataset, FetchesEachShardOnceForAllEpochsAndRuns) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "far", 200);
    {
        auto dataset = Dataset::open(cached(scratch)).value();
        read_until_fetched(*dataset, index.shards.size());
        epoch_of(*dataset);
        EXPECT_EQ(dataset->fetch_stats().shards, index.shards.size());
        EXPECT_EQ(shard_bytes(scratch / "near"), shard_bytes(scratch / "far"));
    }
    auto dataset = Dataset::open(cached(scratch)).value();
    EXPECT_EQ(epoch_of(*dataset).size(), 200u);
    EXPECT_EQ(dataset->fetch_stats().shards, 0u);
    EXPECT_EQ(dataset->fetch_stats().bytes, 0u);
}

TEST(CachedDataset, KeepsToItsLimitAndStillGivesEverySample) {
    for (const char* compression : {"", "zstd"}) {
        const Scratch scratch;
        write_texts(scratch / "far", 150, {.compression = compression});
        std::uint64_t total = 0;
        const Index index = read_index(scratch / "far").value();
        for (const ShardInfo& shard : index.shards) total += shard.raw_data.bytes;
        for (const std::uint64_t limit : {total / 2, total / 5, std::uint64_t{100}}) {
            std::filesystem::remove_all(scratch / "near");
            DatasetOptions options = cached(scratch);
            options.cache_limit = limit;
            EXPECT_EQ(epochs_of(options, 3), expected_epochs(scratch, 3)) << limit << compression;
            EXPECT_LE(shard_bytes(scratch / "near"), limit) << compression;
        }
    }
}

TEST(CachedDataset, EvictsWhatThePlanNeedsLast) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "far", 220, {.compression = "zstd"});
    const std::size_t shards = index.shards.size();
    DatasetOptions options = cached(scratch);
    options.shuffle = false;
    for (const ShardInfo& shard : index.shards) options.cache_limit += shard.raw_data.bytes / 2;
    auto dataset = Dataset::open(options).value();
    constexpr std::uint64_t kEpochs = 6;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) epoch_of(*dataset);
    // Round and round, least recently used would evict each shard just before its next use, and
    // fetch all of them in every epoch. What is needed last stays away; the rest need not be moved.
    // How many that saves depends on how far the look-ahead is when a shard is let go.
    EXPECT_LE(dataset->fetch_stats().shards, shards + (kEpochs - 1) * shards * 9 / 10) << shards;
}

TEST(CachedDataset, KeepsCompressedFilesWhereAsked) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "far", 60, {.compression = "gz"});
    DatasetOptions options = cached(scratch);
    options.keep_zip = true;
    auto dataset = Dataset::open(options).value();
    read_until_fetched(*dataset, index.shards.size());
    for (const ShardInfo& shard : index.shards) {
        const std::string name = shard.zip_data->basename;
        EXPECT_EQ(read_bytes(scratch / ("near/" + name)), read_bytes(scratch / ("far/" + name)));
        EXPECT_TRUE(std::filesystem::exists(scratch / ("near/" + shard.raw_data.basename)));
    }
}

TEST(CachedDataset, AfterAnErrorItGoesOnWhereItStood) {
    const Scratch scratch;
    const Index index =
        write_numbers(scratch / "far", 200, {.compression = "zstd", .hashes = {"sha1"}});
    const std::string name = index.shards[7].zip_data->basename;
    std::filesystem::rename(scratch / ("far/" + name), scratch / "away");
    DatasetOptions options = cached(scratch);
    options.shuffle = false;
    auto dataset = Dataset::open(options).value();
    std::vector<std::int64_t> ids;
    Batch batch;
    Result<bool> more = true;
    while ((more = dataset->next(batch)) && *more)
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, Code::kResourceDoesNotExist);
    EXPECT_NE(more.error().text().find(name), std::string::npos) << more.error().text();
    std::filesystem::rename(scratch / "away", scratch / ("far/" + name));
    while ((more = dataset->next(batch)) && *more)
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    ASSERT_TRUE(more) << more.error().text();
    ASSERT_EQ(ids.size(), 200u);
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<std::int64_t>(i));
}

TEST(CachedDataset, ResumesExactlyAndAfterASeek) {
    const Scratch scratch;
    write_numbers(scratch / "far", 200);
    const std::vector<std::string> whole = expected_epochs(scratch, 1);
    auto first = Dataset::open(cached(scratch)).value();
    Batch batch;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(first->next(batch).value());
    const DatasetState state = first->state();
    auto second = Dataset::open(cached(scratch)).value();
    ASSERT_TRUE(second->load_state(state));
    EXPECT_EQ(epoch_of(*second), std::vector<std::string>(whole.begin() + 35, whole.end()));
    first->start_epoch(0);
    EXPECT_EQ(epoch_of(*first), whole);
}

TEST(CachedDataset, FetchesAnewWhatWasDamagedOrCutOnDisk) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "far", 200, {.hashes = {}});
    const std::vector<std::string> whole = expected_epochs(scratch, 1);
    read_until_fetched(*Dataset::open(cached(scratch)).value(), index.shards.size());
    const std::string cut = index.shards[1].raw_data.basename;
    const std::string flipped = index.shards[3].raw_data.basename;
    std::filesystem::resize_file(scratch / ("near/" + cut), 100);
    std::string bytes = read_bytes(scratch / ("near/" + flipped));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_bytes(scratch / ("near/" + flipped), bytes);
    auto dataset = Dataset::open(cached(scratch)).value();
    EXPECT_EQ(epoch_of(*dataset), whole);
    read_until_fetched(*dataset, 2);
    EXPECT_EQ(read_bytes(scratch / ("near/" + cut)), read_bytes(scratch / ("far/" + cut)));
    EXPECT_EQ(read_bytes(scratch / ("near/" + flipped)), read_bytes(scratch / ("far/" + flipped)));
}

TEST(CachedDataset, TakesOverFilesThatHashesVouchForAndNoOthers) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "far", 200, {.hashes = {"xxh3_64"}});
    std::filesystem::create_directories(scratch / "near");
    for (const std::size_t shard : {0u, 1u}) {
        const std::string name = index.shards[shard].raw_data.basename;
        std::filesystem::copy_file(scratch / ("far/" + name), scratch / ("near/" + name));
    }
    const std::string wrong = index.shards[2].raw_data.basename;
    write_bytes(scratch / ("near/" + wrong), std::string(index.shards[2].raw_data.bytes, 'x'));
    auto dataset = Dataset::open(cached(scratch)).value();
    EXPECT_EQ(epoch_of(*dataset), expected_epochs(scratch, 1));
    read_until_fetched(*dataset, index.shards.size() - 2);
}

TEST(CachedDataset, NamesAShardWhoseHashIsWrong) {
    const Scratch scratch;
    const Index index = write_numbers(scratch / "far", 200, {.hashes = {"sha1"}});
    const std::string name = index.shards[4].raw_data.basename;
    std::string bytes = read_bytes(scratch / ("far/" + name));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_bytes(scratch / ("far/" + name), bytes);
    DatasetOptions options = cached(scratch);
    options.shuffle = false;
    auto dataset = Dataset::open(options).value();
    Batch batch;
    Result<bool> more = true;
    // Samples may be given before their shard has come; the shard itself never is.
    for (int i = 0; i < 100'000 && more; ++i) more = dataset->next(batch);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, Code::kDataLoss);
    EXPECT_NE(more.error().text().find(name), std::string::npos) << more.error().text();
    EXPECT_NE(more.error().text().find("sha1"), std::string::npos) << more.error().text();
    EXPECT_FALSE(std::filesystem::exists(scratch / ("near/" + name)));
}

TEST(CachedDataset, ANewVersionOfTheDataReplacesTheOldOne) {
    const Scratch scratch;
    write_numbers(scratch / "far", 200);
    EXPECT_EQ(epochs_of(cached(scratch), 1).size(), 200u);
    std::filesystem::remove_all(scratch / "far");
    const Index index = write_texts(scratch / "far", 90);
    auto dataset = Dataset::open(cached(scratch)).value();
    EXPECT_EQ(epoch_of(*dataset), expected_epochs(scratch, 1));
    read_until_fetched(*dataset, index.shards.size());
    EXPECT_EQ(shard_bytes(scratch / "near"), shard_bytes(scratch / "far"));
}

TEST(CachedDataset, RefusesAFolderThatOtherDataIsReadFrom) {
    const Scratch scratch;
    write_numbers(scratch / "far", 20);
    write_numbers(scratch / "other", 30);
    auto dataset = Dataset::open(cached(scratch)).value();
    DatasetOptions options = cached(scratch);
    options.remote = scratch / "other";
    EXPECT_EQ(Dataset::open(options).error().code, Code::kResourceConflict);
}

TEST(CachedDataset, RefusesNamesThatLeadIntoItsOwnFiles) {
    const Scratch scratch;
    Index index = write_numbers(scratch / "far", 20);
    for (const char* name : {".tune-cache/table", "index.json", "../out", "/etc/passwd"}) {
        Index hostile = index;
        hostile.shards[0].raw_data.basename = name;
        write_bytes(scratch / "far/index.json", index_text(hostile));
        EXPECT_EQ(Dataset::open(cached(scratch)).error().code, Code::kDataLoss) << name;
    }
    index.shards[1].raw_data.basename = index.shards[0].raw_data.basename;
    write_bytes(scratch / "far/index.json", index_text(index));
    EXPECT_EQ(Dataset::open(cached(scratch)).error().code, Code::kDataLoss);
}

TEST(CacheDelete, TakesWhatItFetchedAndNothingElse) {
    const Scratch scratch;
    write_numbers(scratch / "far", 50);
    {
        auto dataset = Dataset::open(cached(scratch)).value();
        EXPECT_EQ(epoch_of(*dataset).size(), 50u);
        EXPECT_EQ(cache_delete(scratch / "near").error().code, Code::kResourceConflict);
        EXPECT_TRUE(find_caches(scratch.path()).value().front().is_in_use);
    }
    write_bytes(scratch / "near/notes.txt", "mine");
    const CacheUsage usage = find_caches(scratch.path()).value().front();
    EXPECT_EQ(usage.directory, scratch / "near");
    EXPECT_FALSE(usage.is_in_use);
    EXPECT_GE(usage.bytes, shard_bytes(scratch / "near"));
    ASSERT_TRUE(cache_delete(scratch / "near"));
    EXPECT_EQ(read_bytes(scratch / "near/notes.txt"), "mine");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / "near"), {}), 1);
    EXPECT_EQ(cache_delete(scratch / "near").error().code, Code::kResourceDoesNotExist);
}

}  // namespace
}  // namespace tune::loader
