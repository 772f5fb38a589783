// Trials of one machine on the same data, each with a seed and a batch size of its own: 1, 2 and 4
// processes read a compressed set through one cache, and images with and without sharing what was
// decoded. Prints the rate of all together, and the slowest beside the fastest.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/id.h"
#include "loader/dataset.h"
#include "loader/format/mds/writer.h"
#include "tests/bench/loader/figures.h"
#include "tests/bench/loader/jpeg_file.h"

namespace tune::loader {
namespace {

constexpr double kSeconds = 4.0;

struct Read {
    double samples = 0;
    double fetched_bytes = 0;
};

/// Reads one epoch, and then what it can in kSeconds.
Read read_for_a_while(DatasetOptions options, int trial) {
    options.seed += static_cast<std::uint64_t>(trial);
    options.batch_size += 32 * trial;
    const auto dataset = Dataset::open(options).value();
    Batch batch;
    Read read;
    while (dataset->next(batch).value()) {
    }
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
           kSeconds) {
        if (dataset->next(batch).value()) read.samples += static_cast<double>(batch.count);
    }
    read.fetched_bytes = static_cast<double>(dataset->fetch_stats().bytes);
    return read;
}

void measure(const std::string& name, const DatasetOptions& options, int trials) {
    std::vector<int> pipes;
    for (int trial = 0; trial < trials; ++trial) {
        int ends[2];
        TUNE_CHECK(pipe(ends) == 0, "a pipe");
        if (fork() == 0) {
            const Read read = read_for_a_while(options, trial);
            TUNE_CHECK(write(ends[1], &read, sizeof read) == sizeof read, "the parent reads");
            _exit(0);
        }
        close(ends[1]);
        pipes.push_back(ends[0]);
    }
    Read all;
    double least = 1e300;
    double most = 0;
    for (const int end : pipes) {
        Read one;
        TUNE_CHECK(read(end, &one, sizeof one) == sizeof one, "the child writes");
        close(end);
        all.samples += one.samples;
        all.fetched_bytes += one.fetched_bytes;
        least = std::min(least, one.samples);
        most = std::max(most, one.samples);
    }
    while (wait(nullptr) > 0) {
    }
    const std::string how =
        name + ", " + std::to_string(trials) + (trials == 1 ? " trial" : " trials");
    print_figure(how, std::round(all.samples / kSeconds), "1/s", "higher");
    if (all.fetched_bytes > 0)
        print_figure("fetched by them: " + how, all.fetched_bytes / 1e6, "MB", "lower");
    if (trials > 1) print_figure("slowest to fastest: " + how, 100 * least / most, "%", "higher");
}

void write_digits(const std::filesystem::path& directory) {
    MdsWriter writer =
        MdsWriter::open({.directory = directory,
                         .columns = {{"image", "ndarray:uint8:28,28"}, {"label", "int"}},
                         .compression = "zstd",
                         .size_limit = 1 << 22})
            .value();
    std::vector<std::byte> image(28 * 28);
    for (std::int64_t i = 0; i < 100'000; ++i) {
        for (std::size_t k = 0; k < image.size(); ++k)
            image[k] = static_cast<std::byte>((k * static_cast<std::size_t>(i)) >> 3);
        writer.write(std::vector<Value>{std::span<const std::byte>(image), i % 10}).value();
    }
    static_cast<void>(writer.finish().value());
}

/// Copies of one JPEG file.
void write_images(const std::filesystem::path& directory) {
    const std::string bytes = jpeg_file(1);
    MdsWriter writer =
        MdsWriter::open({.directory = directory, .columns = {{"image", "jpeg"}}}).value();
    for (int i = 0; i < 1000; ++i)
        writer.write(std::vector<Value>{std::as_bytes(std::span(bytes))}).value();
    static_cast<void>(writer.finish().value());
}

int run() {
    const std::filesystem::path directory =
        std::filesystem::temp_directory_path() / ("tune-sharing-bench-" + random_hex(4));
    write_digits(directory / "digits");
    write_images(directory / "images");
    for (const int trials : {1, 2, 4}) {
        DatasetOptions digits;
        digits.remote = (directory / "digits").string();
        digits.local = directory / ("cache-" + std::to_string(trials));
        digits.batch_size = 256;
        digits.shuffle = true;
        digits.threads = 1;
        measure("28x28, zstd, one cache", digits, trials);
        DatasetOptions images;
        images.directory = directory / "images";
        images.batch_size = 32;
        images.shuffle = true;
        images.threads = 1;
        ImageOptions image{.height = 224, .width = 224};
        image.fit = ImageOptions::Fit::kRandomResizedCrop;
        images.column_options = {{.name = "image", .image = image}};
        measure("JPEG, each decodes", images, trials);
        images.decoded_cache = "/dev/shm";
        images.decoded_cache_limit = std::uint64_t{1} << 30;
        measure("JPEG, decoded images shared", images, trials);
    }
    std::filesystem::remove_all(directory);
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main() {
    return tune::loader::run();
}
