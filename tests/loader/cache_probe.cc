// Reads epochs of a data set through a cache and prints one line of JSON: what the tests with real
// servers and several processes compare. Arguments: remote, local, then name=value of limit,
// epochs, batch, threads, seed, shuffle, retry, timeout, keep_zip, connections, predownload,
// batches (stop after so many).

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "loader/dataset.h"
#include "loader/format/hash.h"

namespace tune::loader {
namespace {

using Numbers = std::map<std::string, double>;

DatasetOptions options_of(const char* remote, const char* local, const Numbers& numbers) {
    const auto number = [&numbers](const char* name, double missing) {
        const auto found = numbers.find(name);
        return found == numbers.end() ? missing : found->second;
    };
    DatasetOptions options;
    options.remote = remote;
    options.local = local;
    options.batch_size = static_cast<std::int64_t>(number("batch", 16));
    options.shuffle = number("shuffle", 1) != 0;
    options.seed = static_cast<std::uint64_t>(number("seed", 9176));
    options.threads = static_cast<int>(number("threads", 2));
    options.cache_limit = static_cast<std::uint64_t>(number("limit", 0));
    options.download_retry = static_cast<int>(number("retry", 5));
    options.download_timeout_s = number("timeout", 60);
    options.download_connections = static_cast<int>(number("connections", 16));
    options.predownload = static_cast<std::int64_t>(number("predownload", 0));
    options.keep_zip = number("keep_zip", 0) != 0;
    return options;
}

/// Over the samples' numbers and bytes, each by itself: the sum does not depend on the order.
std::uint64_t digest_of(const Batch& batch) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
        std::string text = std::to_string(batch.sample_ids[i]);
        for (const Column& column : batch.columns) text += "|" + std::string(column.text(i));
        sum += xxh3_64(std::as_bytes(std::span(text)));
    }
    return sum;
}

int probe(int argc, char** argv) {
    Numbers numbers;
    for (int i = 3; i < argc; ++i) {
        const std::string argument = argv[i];
        const std::size_t equals = argument.find('=');
        numbers[argument.substr(0, equals)] = std::stod(argument.substr(equals + 1));
    }
    auto dataset = Dataset::open(options_of(argv[1], argv[2], numbers));
    Json report = {{"samples", 0}, {"first_bytes", 0}};
    std::uint64_t digest = 0;
    std::int64_t samples = 0;
    std::int64_t batches = 0;
    const auto fail = [](const Error& error) {
        std::fprintf(stderr, "%s\n", error.text().c_str());
        return 1;
    };
    if (!dataset) return fail(dataset.error());
    Batch batch;
    const double stop = numbers.contains("batches") ? numbers["batches"] : 0;
    for (int epoch = 0; epoch < (numbers.contains("epochs") ? numbers["epochs"] : 1); ++epoch)
        while (true) {
            const Result<bool> more = (*dataset)->next(batch);
            if (!more) return fail(more.error());
            if (!*more) break;
            if (samples == 0) report["first_bytes"] = (*dataset)->fetch_stats().bytes;
            samples += static_cast<std::int64_t>(batch.count);
            digest += digest_of(batch);
            if (++batches == static_cast<std::int64_t>(stop)) break;
        }
    const FetchStats stats = (*dataset)->fetch_stats();
    report["samples"] = samples;
    report["digest"] = digest;
    report["bytes"] = stats.bytes;
    report["shards"] = stats.shards;
    report["ranged"] = stats.ranged_batches;
    report["waited"] = stats.waited_shards;
    std::printf("%s\n", to_text(report).c_str());
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main(int argc, char** argv) {
    return argc < 3 ? 2 : tune::loader::probe(argc, argv);
}
