// Rates in bytes beside what the machine itself does with the same bytes: samples of 8 KiB beside
// memcpy, compressed shards beside the decompressor, both from the page cache; reading by number;
// and the memory that is held over many epochs.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
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
#include "loader/format/compression.h"
#include "loader/format/mds/writer.h"
#include "loader/order/rng.h"
#include "loader/source/mapped_file.h"
#include "tests/bench/loader/figures.h"

namespace tune::loader {
namespace {

constexpr std::size_t kTokenBytes = 8192;
constexpr std::int64_t kTokenSamples = 32'768;  // 256 MiB
constexpr std::int64_t kTokenBatch = 64;
constexpr std::size_t kPixels = 28 * 28;
constexpr std::int64_t kImages = 200'000;

/// Tokens that compress about as text does.
void write_tokens(const std::filesystem::path& directory, const std::string& compression) {
    MdsWriter writer = MdsWriter::open({.directory = directory,
                                        .columns = {{"tokens", "ndarray:uint16:4096"}},
                                        .compression = compression})
                           .value();
    std::vector<std::uint16_t> tokens(kTokenBytes / sizeof(std::uint16_t));
    std::uint64_t state = 1;
    for (std::int64_t i = 0; i < kTokenSamples; ++i) {
        for (std::uint16_t& token : tokens) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            token = static_cast<std::uint16_t>((state >> 60) * (state >> 56 & 15));
        }
        const std::span<const std::byte> payload[] = {std::as_bytes(std::span(tokens))};
        writer.write_encoded(payload).value();
    }
    static_cast<void>(writer.finish().value());
}

void read_epochs(Dataset& dataset, int epochs) {
    Batch batch;
    unsigned sum = 0;
    for (int epoch = 0; epoch < epochs; ++epoch)
        while (dataset.next(batch).value()) sum += static_cast<unsigned>(batch.columns[0].data[0]);
    TUNE_CHECK(sum < 0xffffffffU, "each batch was looked at");
}

/// The same samples in a shuffled order, copied into memory of a batch's size again and again.
double memcpy_seconds(const std::filesystem::path& directory) {
    std::vector<std::shared_ptr<const MappedFile>> files;
    std::vector<const std::byte*> samples;
    for (const ShardInfo& info : read_index(directory).value().shards) {
        files.push_back(MappedFile::open(directory / info.raw_data.basename).value());
        const std::span<const std::byte> bytes = files.back()->bytes();
        const std::size_t first =
            bytes.size() - static_cast<std::size_t>(info.samples) * kTokenBytes;
        for (std::int64_t i = 0; i < info.samples; ++i)
            samples.push_back(bytes.data() + first + static_cast<std::size_t>(i) * kTokenBytes);
    }
    const std::vector<std::int64_t> order = Rng(1).permutation(kTokenSamples);
    std::vector<std::byte> batch(kTokenBytes * kTokenBatch);
    return best_seconds_of([&] {
        std::size_t row = 0;
        for (const std::int64_t id : order) {
            std::memcpy(batch.data() + row * kTokenBytes, samples[static_cast<std::size_t>(id)],
                        kTokenBytes);
            row = (row + 1) % kTokenBatch;
        }
    });
}

void measure_tokens(const std::filesystem::path& directory) {
    write_tokens(directory, "");
    const double bytes = static_cast<double>(kTokenSamples) * kTokenBytes;
    const double copying = memcpy_seconds(directory);
    print_figure("memcpy of 8 KiB samples from the page cache, shuffled", bytes / copying / 1e9,
                 "GB/s", "higher");
    for (const int threads : {0, 2}) {
        const auto dataset = Dataset::open({.directory = directory,
                                            .batch_size = kTokenBatch,
                                            .shuffle = true,
                                            .threads = threads})
                                 .value();
        read_epochs(*dataset, 1);
        const double seconds = best_seconds_of([&] { read_epochs(*dataset, 1); });
        const std::string how =
            threads == 0 ? "in the caller's thread" : std::to_string(threads) + " threads";
        print_figure("8 KiB token samples, shuffled, " + how, bytes / seconds / 1e9, "GB/s",
                     "higher");
        print_figure("8 KiB token samples to memcpy of them, " + how, 100 * copying / seconds, "%",
                     "higher", 80);
    }
    std::filesystem::remove_all(directory);
}

void measure_zstd(const std::filesystem::path& directory) {
    write_tokens(directory, "zstd");
    const Index index = read_index(directory).value();
    std::uint64_t bytes = 0;
    for (const ShardInfo& info : index.shards) bytes += info.raw_data.bytes;
    const double raw = best_seconds_of([&] {
        for (const ShardInfo& info : index.shards) {
            const auto file = MappedFile::open(directory / info.zip_data->basename).value();
            TUNE_CHECK(decompress({}, file->bytes(), info.raw_data.bytes).has_value(), "zstd");
        }
    });
    print_figure("zstd of the shards, 1 thread", static_cast<double>(bytes) / raw / 1e9, "GB/s",
                 "higher");
    // Room for a few shards: each epoch decompresses all of them again.
    const auto dataset = Dataset::open({.directory = directory,
                                        .batch_size = kTokenBatch,
                                        .threads = 1,
                                        .decompressed_bytes_max = std::size_t{160} << 20})
                             .value();
    read_epochs(*dataset, 1);
    const double seconds = best_seconds_of([&] { read_epochs(*dataset, 1); });
    print_figure("zstd shards in their order, 1 thread", static_cast<double>(bytes) / seconds / 1e9,
                 "GB/s", "higher");
    print_figure("zstd shards to zstd itself", 100 * raw / seconds, "%", "higher", 85);
    std::filesystem::remove_all(directory);
}

void write_images(const std::filesystem::path& directory) {
    MdsWriter writer =
        MdsWriter::open({.directory = directory,
                         .columns = {{"image", "ndarray:uint8:28,28"}, {"label", "int"}}})
            .value();
    std::vector<std::byte> image(kPixels);
    for (std::int64_t i = 0; i < kImages; ++i) {
        const std::span<const std::byte> payloads[] = {image, std::as_bytes(std::span(&i, 1))};
        writer.write_encoded(payloads).value();
    }
    static_cast<void>(writer.finish().value());
}

void measure_reads_by_number(const std::filesystem::path& directory) {
    const auto dataset = Dataset::open({.directory = directory, .threads = 0}).value();
    const std::vector<std::int64_t> order = Rng(1).permutation(kImages);
    for (const std::size_t at_once : {std::size_t{1}, std::size_t{256}}) {
        Batch batch;
        const double seconds = best_seconds_of([&] {
            for (std::size_t i = 0; i < order.size(); i += at_once)
                TUNE_CHECK(
                    dataset
                        ->read(std::span(order).subspan(i, std::min(at_once, order.size() - i)),
                               batch)
                        .has_value(),
                    "samples by number");
        });
        const double rate = static_cast<double>(kImages) / seconds;
        if (at_once == 1)
            print_figure("random read of 28x28 samples, one at a time", rate, "1/s", "higher");
        else
            print_figure("random read of 28x28 samples", rate, "1/s", "higher", 3e6);
    }
}

/// Anonymous memory: mapped files are the page cache's.
double resident_MB() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1e3;
    return 0;
}

/// The bound that docs/loader.md states: the slots' batches, and 8 bytes a sample for this epoch's
/// order and the next one's, with up to 32 bytes while that is worked out.
void measure_memory(const std::filesystem::path& directory) {
    const double before = resident_MB();
    const auto dataset =
        Dataset::open({.directory = directory, .batch_size = 256, .shuffle = true, .threads = 2})
            .value();
    read_epochs(*dataset, 3);
    const double early = resident_MB();
    double most = early;
    for (int epoch = 3; epoch < 20; ++epoch) {
        read_epochs(*dataset, 1);
        most = std::max(most, resident_MB());
    }
    const double slots_MB = 9.0 * 256 * (kPixels + 8) / 1e6;
    const double order_MB = kImages * (8 + 8 + 32) / 1e6;
    print_figure("memory over 20 epochs of 200,000 samples", most - before, "MB", "lower",
                 slots_MB + order_MB + 4);
    print_figure("its growth from the 3rd epoch to the 20th", most - early, "MB", "lower", 4);
}

int run() {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("tune-volume-bench-" + random_hex(4));
    write_images(directory / "images");
    measure_memory(directory / "images");
    measure_reads_by_number(directory / "images");
    measure_tokens(directory / "tokens");
    measure_zstd(directory / "zstd");
    std::filesystem::remove_all(directory);
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main() {
    return tune::loader::run();
}
