// Puts together what reading from afar needs: each place's index, its source and its cache, and one
// supply over all of them. The shards of all places are numbered through, as everywhere in the
// loader. The index is small and always asked for, so that a new version of the data is noticed;
// what it names decides whether the folder's files are still the right ones. When nothing answers,
// the index that was kept serves: a run whose shards are all there needs no network.

#include "loader/cache/remote_set.h"

#include <algorithm>
#include <cstdlib>

#include "base/system/file.h"
#include "loader/cache/shard_unit_store.h"
#include "loader/format/hash.h"
#include "loader/rows/row_set.h"
#include "loader/source/open_source.h"

namespace tune::loader {
namespace {

/// Units that are fetched at once, where each is about one request.
constexpr int kFetchThreadsMax = 64;

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

std::string joined(std::string url, const std::string& split) {
    if (split.empty()) return url;
    while (url.ends_with('/')) url.pop_back();
    return url + "/" + split;
}

/// The text of the index, from afar or, when nothing answers, of an earlier run.
Result<std::string> index_text_of(const ObjectSource& source,
                                  const std::filesystem::path& directory) {
    const std::filesystem::path kept = directory / "index.json";
    Result<std::string> text = read_object(source, "index.json");
    if (text) {
        const Result<std::string> old = read_file(kept);
        if (!old || *old != *text) TUNE_TRY_VOID(write_file_atomic(kept, *text));
        return text;
    }
    const Code code = text.error().code;
    if (code == Code::kTemporarilyUnavailable || code == Code::kDeadlineExceeded)
        if (Result<std::string> old = read_file(kept)) return old;
    return text;
}

/// One place, opened.
struct Part {
    Index index;
    std::shared_ptr<const ObjectSource> source;
    std::filesystem::path directory;
};

SourceOptions source_options(const DatasetOptions& options) {
    SourceOptions wanted;
    wanted.download_retry = options.download_retry;
    wanted.download_timeout_s = options.download_timeout_s;
    wanted.stop = std::make_shared<StopSignal>();
    return wanted;
}

Result<std::filesystem::path> cache_folder(const StreamOptions& place, const std::string& url) {
    std::filesystem::path directory =
        place.local.empty() ? default_cache(url)
                            : std::filesystem::path(joined(place.local.string(), place.split));
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (!error) return directory;
    return Error{Code::kPermissionDenied,
                 "cannot create the cache folder '" + directory.string() + "': " + error.message()};
}

Result<Part> read_part(const StreamOptions& place, const SourceOptions& wanted) {
    if (!place.directory.empty())
        return invalid_parameter(
            "a data set has either a directory or a remote; the folder for what is fetched is "
            "`local`");
    const std::string url = joined(place.remote, place.split);
    Part part;
    TUNE_TRY(source, open_source(url, wanted));
    part.source = std::move(source);
    TUNE_TRY(directory, cache_folder(place, url));
    part.directory = std::move(directory);
    TUNE_TRY(text, index_text_of(*part.source, part.directory));
    Result<Index> index = parse_index(text);
    if (!index) {
        Error damaged = std::move(index).error();
        damaged.context = joined(url, "index.json");
        return damaged;
    }
    part.index = *std::move(index);
    return part;
}

SupplyOptions supply_options(const DatasetOptions& options, const SourceOptions& wanted) {
    SupplyOptions supply;
    supply.predownload = options.predownload;
    // The other half is for what other trials look ahead to.
    supply.window_bytes_max =
        options.cache_limit == 0 ? 0 : std::max<std::uint64_t>(options.cache_limit / 2, 1);
    supply.stop = wanted.stop;
    return supply;
}

CacheSettings cache_settings(const DatasetOptions& options, std::filesystem::path directory,
                             const SourceOptions& wanted) {
    CacheSettings settings{.directory = std::move(directory),
                           .bytes_max = options.cache_limit,
                           .connections = options.download_connections,
                           .supply = supply_options(options, wanted)};
    // Units are small: each is about one request.
    settings.supply.threads = std::min(options.download_connections, kFetchThreadsMax);
    return settings;
}

/// Text shards: a unit each for the rows and for where they lie.
Result<RemoteSet> open_text_shards(Part part, const DatasetOptions& options,
                                   const SourceOptions& wanted) {
    RemoteSet set;
    if (!options.reads_once) {
        set.files = std::make_shared<CachedSource>(std::move(part.source),
                                                   cache_settings(options, part.directory, wanted));
        TUNE_TRY_VOID(set.files->keep(std::make_shared<IndexUnits>(part.index, options.keep_zip),
                                      index_digest(part.index)));
    }
    set.shard_counts = {part.index.shards.size()};
    set.index = std::move(part.index);
    return set;
}

}  // namespace

std::filesystem::path default_caches() {
    if (const std::string set = environment("TUNE_CACHE_DIR"); !set.empty()) return set;
    const std::string cache = environment("XDG_CACHE_HOME");
    const std::filesystem::path top = cache.empty()
                                          ? std::filesystem::path(environment("HOME")) / ".cache"
                                          : std::filesystem::path(cache);
    return top / "tune" / "data";
}

std::filesystem::path default_cache(const std::string& url) {
    return default_caches() / hash_hex("xxh3_64", std::as_bytes(std::span(url))).value();
}

bool is_cached(const StreamOptions& place) {
    return !place.remote.empty() && (!is_local_url(place.remote) || !place.local.empty());
}

std::filesystem::path plain_directory(const StreamOptions& place) {
    std::filesystem::path directory = place.directory;
    if (directory.empty())
        directory = place.remote.empty() ? place.local : local_path(place.remote);
    return place.split.empty() ? directory : directory / place.split;
}

StreamOptions only_place(const DatasetOptions& options) {
    return {.directory = options.directory,
            .split = options.split,
            .remote = options.remote,
            .local = options.local,
            .weight = {}};
}

Result<DataPlace> open_data(const DatasetOptions& options) {
    const StreamOptions place = only_place(options);
    const std::string url = data_place(options);
    const SourceOptions wanted = source_options(options);
    TUNE_TRY(far, open_source(url, wanted));
    if (!is_cached(place) || options.reads_once) return DataPlace{std::move(far)};
    TUNE_TRY(directory, cache_folder(place, url));
    auto cache = std::make_shared<CachedSource>(
        std::move(far), cache_settings(options, std::move(directory), wanted));
    return DataPlace{cache, cache};
}

Result<RemoteSet> open_remote(const std::vector<StreamOptions>& places,
                              const DatasetOptions& options) {
    const SourceOptions wanted = source_options(options);
    // 0 would be no limit at all.
    const std::uint64_t share =
        options.cache_limit == 0 ? 0
                                 : std::max<std::uint64_t>(options.cache_limit / places.size(), 1);
    RemoteSet set;
    std::vector<SupplyPart> parts;
    for (const StreamOptions& place : places) {
        TUNE_TRY(part, read_part(place, wanted));
        if (!part.index.shards.empty() && part.index.shards.front().format != "mds") {
            if (places.size() == 1) return open_text_shards(std::move(part), options, wanted);
            return invalid_parameter(part.index.shards.front().format +
                                     " shards are read from one place; convert them to MDS "
                                     "(tune-data convert) to mix them");
        }
        TUNE_TRY(cache, DiskCache::open({part.directory, share},
                                        std::make_shared<IndexUnits>(part.index, options.keep_zip),
                                        index_digest(part.index)));
        parts.push_back({part.source, std::move(cache), set.index.shards.size()});
        set.shard_counts.push_back(part.index.shards.size());
        for (ShardInfo& shard : part.index.shards) set.index.shards.push_back(std::move(shard));
    }
    // What came over a network is checked whatever `verify` says of what is read from disk.
    set.store = std::make_shared<ShardStore>(parts.front().source, set.index, true,
                                             options.decompressed_bytes_max);
    std::vector<std::int64_t> samples;
    for (const ShardInfo& shard : set.index.shards) samples.push_back(shard.samples);
    auto fetcher =
        std::make_shared<UnitFetcher>(std::move(parts), std::make_shared<ShardUnitStore>(set.store),
                                      options.download_connections);
    auto ranges = std::make_unique<SampleRanges>(
        set.store, [fetcher = fetcher.get()](std::size_t shard) -> const ObjectSource& {
            return fetcher->source(shard);
        });
    set.supply = std::make_shared<UnitSupply>(std::move(fetcher), UnitNeeds::one_each(samples),
                                              supply_options(options, wanted), std::move(ranges));
    return set;
}

}  // namespace tune::loader
