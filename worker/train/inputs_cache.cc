// The key is the whole question, kept in the file beside the answer and compared: a digest that
// two questions share could not mix them up. A lock makes processes that ask at once wait for the
// first.

#include "worker/train/inputs_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/crypto/digest.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/hex.h"
#include "loader/source/open_source.h"

namespace tune::train {
namespace {

/// Raised when numbers are measured in another way.
constexpr int kStatisticsVersion = 1;
/// Files of a split whose sizes and times are looked at.
constexpr std::size_t kStatisticsFilesMax = 10'000;

/// Which samples of a large data set are measured does not depend on the run.
constexpr std::uint64_t kMeasuringSeed = 0;
constexpr std::int64_t kMeasuringBatch = 256;

/// Empty: keep nothing.
std::filesystem::path statistics_folder(const TrainConfig& config) {
    if (config.statistics_cache == "none") return {};
    if (!config.statistics_cache.empty()) return config.statistics_cache;
    // NOLINTBEGIN(concurrency-mt-unsafe): nobody changes the environment
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        return std::filesystem::path(cache) / "tune" / "statistics";
    if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
        return std::filesystem::path(home) / ".cache" / "tune" / "statistics";
    // NOLINTEND(concurrency-mt-unsafe)
    return {};
}

/// "name size time" of each file of the split, sorted; nothing for data that is not a local folder.
std::string split_files(const TrainConfig& config) {
    std::vector<std::string> lines;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator
             it(std::filesystem::path(config.data) / config.train_split, error),
         end;
         !error && it != end && lines.size() < kStatisticsFilesMax; it.increment(error)) {
        struct stat status {};
        if (stat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        lines.push_back(it->path().string() + " " + std::to_string(status.st_size) + " " +
                        std::to_string(status.st_mtim.tv_sec) + "." +
                        std::to_string(status.st_mtim.tv_nsec));
    }
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

/// All that decides the numbers.
std::string statistics_key(const TrainConfig& config, const loader::Dataset& dataset,
                           const Inputs& chosen) {
    const Json key = {{"version", kStatisticsVersion},
                      {"index", dataset.state().index_digest},
                      {"samples", dataset.sample_count()},
                      {"files", hex_encode(sha256(split_files(config)))},
                      {"inputs", chosen.to_json()},
                      {"classes", config.classes},
                      {"vocabulary", config.vocabulary},
                      {"normalize", static_cast<int>(config.normalize)},
                      {"raw_label", config.loss == LossKind::kBce}};
    return to_text(key);
}

/// Nothing when there is none that is whole and about the same question.
std::optional<Inputs> kept_inputs(const std::filesystem::path& path, const std::string& key) {
    const auto text = read_file(path);
    if (!text) return std::nullopt;
    const auto json = parse_json(*text);
    if (!json || !json->is_object() || !json->contains("key") || json->at("key") != key ||
        !json->contains("inputs"))
        return std::nullopt;
    auto inputs = Inputs::from_json(json->at("inputs"));
    return inputs ? std::optional(*std::move(inputs)) : std::nullopt;
}

}  // namespace

Result<Inputs> cached_inputs(const TrainConfig& config, const loader::Dataset& dataset,
                             Inputs chosen, const std::function<Result<Inputs>(Inputs)>& measure) {
    const std::filesystem::path folder = statistics_folder(config);
    std::error_code error;
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (folder.empty() || error) return measure(std::move(chosen));
    const std::string key = statistics_key(config, dataset, chosen);
    const std::string name = hex_encode(sha256(key)).substr(0, 32);
    const std::filesystem::path path = folder / (name + ".json");
    if (auto kept = kept_inputs(path, key)) return *std::move(kept);
    // Without the lock (a folder that cannot be written) each measures for itself.
    const UniqueFd lock(
        open((folder / ("." + name + ".lock")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (lock.get() >= 0 && flock(lock.get(), LOCK_EX) == 0)
        if (auto kept = kept_inputs(path, key)) return *std::move(kept);
    TUNE_TRY(inputs, measure(std::move(chosen)));
    static_cast<void>(
        write_file_atomic(path, to_text(Json{{"key", key}, {"inputs", inputs.to_json()}})));
    return inputs;
}

loader::DatasetOptions dataset_options(const TrainConfig& config, const std::string& split) {
    loader::DatasetOptions options;
    if (loader::is_local_url(config.data)) {
        options.directory = loader::local_path(config.data);
    } else {
        options.remote = config.data;
        options.local = config.data_cache;
        options.cache_limit = static_cast<std::uint64_t>(config.data_cache_limit);
    }
    options.split = split;
    options.seed = static_cast<std::uint64_t>(config.seed);
    options.threads = static_cast<int>(config.loader_threads);
    return options;
}

Result<Inputs> inputs_of_data(const TrainConfig& config) {
    loader::DatasetOptions options = dataset_options(config, config.train_split);
    options.seed = kMeasuringSeed;
    TUNE_TRY(whole, loader::Dataset::open(options));
    TUNE_TRY(inputs, choose_inputs(config, whole->columns()));
    return cached_inputs(config, *whole, std::move(inputs), [&](Inputs chosen) -> Result<Inputs> {
        options.columns = chosen.column_names();
        options.batch_size = kMeasuringBatch;
        options.shuffle = whole->sample_count() > kMeasuredSamplesMax;
        TUNE_TRY(dataset, loader::Dataset::open(options));
        TUNE_TRY_VOID(measure_inputs(config, *dataset, chosen));
        return chosen;
    });
}

}  // namespace tune::train
