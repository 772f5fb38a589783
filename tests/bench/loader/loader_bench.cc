// The loader's measurements: 200,000 samples of a 28x28 uint8 image and an int label, written,
// iterated in shuffled batches; and the order of a large epoch.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/id.h"
#include "loader/dataset.h"
#include "loader/format/mds/writer.h"
#include "loader/order/shuffle.h"
#include "tests/bench/loader/figures.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kSamples = 200'000;
constexpr std::size_t kPixels = 28 * 28;
constexpr std::int64_t kBatch = 256;

void write_samples(const std::filesystem::path& directory) {
    std::filesystem::remove_all(directory);
    MdsWriter writer =
        MdsWriter::open({.directory = directory,
                         .columns = {{"image", "ndarray:uint8:28,28"}, {"label", "int"}}})
            .value();
    std::vector<std::byte> image(kPixels);
    for (std::int64_t i = 0; i < kSamples; ++i) {
        std::memset(image.data(), static_cast<int>(i & 255), image.size());
        const std::int64_t label = i % 10;
        const std::span<const std::byte> payloads[] = {image, std::as_bytes(std::span(&label, 1))};
        writer.write_encoded(payloads).value();
    }
    (void)writer.finish().value();
}

/// One epoch; touches each batch as a consumer would begin to.
std::int64_t read_epoch(Dataset& dataset) {
    Batch batch;
    std::int64_t samples = 0;
    unsigned sum = 0;
    while (dataset.next(batch).value()) {
        samples += static_cast<std::int64_t>(batch.count);
        sum += static_cast<unsigned>(batch.columns[0].data[0]);
    }
    TUNE_CHECK(samples == kSamples, "an epoch holds every sample");
    return samples + (sum & 0);
}

void measure_iteration(const std::filesystem::path& directory) {
    for (const int threads : {0, 1, 2}) {
        DatasetOptions options;
        options.directory = directory;
        options.batch_size = kBatch;
        options.shuffle = true;
        options.threads = threads;
        const auto dataset = Dataset::open(options).value();
        read_epoch(*dataset);  // opens and checks the shards
        const double seconds = best_seconds_of([&] {
            for (int epoch = 0; epoch < 5; ++epoch) read_epoch(*dataset);
        });
        const std::string how =
            threads == 0 ? "in the caller's thread" : std::to_string(threads) + " threads";
        print_figure("iterate 28x28 samples, shuffled, batch 256, " + how,
                     5.0 * static_cast<double>(kSamples) / seconds, "1/s", "higher", 8e6);
    }
}

void measure_order() {
    const std::vector<std::int64_t> shards(1000, 10'000);
    const double seconds = best_seconds_of([&] {
        const auto ids = shuffle_samples(shards, {ShuffleAlgo::kPy1e, 9176, 0, 8, 1 << 18}).value();
        TUNE_CHECK(ids.size() == 10'000'000, "every sample is in the order");
    });
    print_figure("order of 10,000,000 samples (py1e)", seconds, "s", "lower", 1.0);
}

/// A set of 16,384 times the same shard: 1,073,741,824 samples.
void measure_resume(const std::filesystem::path& directory) {
    constexpr std::int64_t kShardSamples = 65'536;
    std::filesystem::remove_all(directory);
    MdsWriter writer =
        MdsWriter::open({.directory = directory, .columns = {{"x", "uint8"}}}).value();
    const std::byte value{1};
    const std::span<const std::byte> payload[] = {std::span(&value, 1)};
    for (std::int64_t i = 0; i < kShardSamples; ++i) writer.write_encoded(payload).value();
    Index index = writer.finish().value();
    index.shards.resize(16'384, index.shards.front());
    std::ofstream(directory / "index.json") << index_text(index);

    DatasetOptions options;
    options.directory = directory;
    options.batch_size = kBatch;
    options.order = OrderKind::kLazy;
    options.shuffle = true;
    const auto dataset = Dataset::open(options).value();
    DatasetState state = dataset->state();
    state.epoch = 3;
    state.sample_in_epoch = 1'000'000'000;
    const double seconds = best_seconds_of([&] {
        dataset->load_state(state).value();
        Batch batch;
        TUNE_CHECK(dataset->next(batch).value() && batch.count == kBatch, "a whole batch");
    });
    print_figure("first batch after resuming at sample 1,000,000,000, lazy order", seconds * 1000,
                 "ms", "lower", 50);
}

int run() {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("tune-loader-bench-" + random_hex(4));
    const double seconds = best_seconds_of([&] { write_samples(directory); });
    print_figure("write 28x28 samples as MDS", static_cast<double>(kSamples) / seconds, "1/s",
                 "higher", 1e6);
    measure_iteration(directory);
    measure_resume(directory);
    std::filesystem::remove_all(directory);
    measure_order();
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main() {
    return tune::loader::run();
}
