// Puts together what reading from afar needs: each place's index, its source and its cache, and one
// supply over all of them. The shards of all places are numbered through, as everywhere in the
// loader. The index is small and always asked for, so that a new version of the data is noticed;
// what it names decides whether the folder's files are still the right ones. When nothing answers,
// the index that was kept serves: a run whose shards are all there needs no network.

#include "loader/cache/remote_set.h"

#include <algorithm>
#include <cstdlib>

#include "base/system/file.h"
#include "loader/format/hash.h"
#include "loader/source/open_source.h"

namespace tune::loader {
namespace {

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

std::vector<CachedFile> files_of(const Index& index, bool keep_zip) {
    std::vector<CachedFile> files;
    for (const ShardInfo& shard : index.shards) {
        CachedFile file{.file = shard.raw_data};
        if (keep_zip) file.zip = shard.zip_data;
        files.push_back(std::move(file));
    }
    return files;
}

/// What is opened of one place.
struct Part {
    Index index;
    SupplyPart supply;
};

Result<Part> open_part(const StreamOptions& place, const DatasetOptions& options,
                       const SourceOptions& wanted, std::uint64_t cache_limit) {
    if (!place.directory.empty())
        return invalid_parameter(
            "a data set has either a directory or a remote; the folder for what is fetched is "
            "`local`");
    const std::string url = joined(place.remote, place.split);
    Part part;
    TUNE_TRY(source, open_source(url, wanted));
    part.supply.source = std::move(source);
    const std::filesystem::path directory =
        place.local.empty() ? default_cache(url)
                            : std::filesystem::path(joined(place.local.string(), place.split));
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        return Error{Code::kPermissionDenied, "cannot create the cache folder '" +
                                                  directory.string() + "': " + error.message()};
    TUNE_TRY(text, index_text_of(*part.supply.source, directory));
    Result<Index> index = parse_index(text);
    if (!index) {
        Error damaged = std::move(index).error();
        damaged.context = joined(url, "index.json");
        return damaged;
    }
    TUNE_TRY(cache, DiskCache::open({directory, cache_limit}, files_of(*index, options.keep_zip),
                                    index_digest(*index)));
    part.supply.cache = std::move(cache);
    part.index = *std::move(index);
    return part;
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

Result<RemoteSet> open_remote(const std::vector<StreamOptions>& places,
                              const DatasetOptions& options) {
    SourceOptions wanted;
    wanted.download_retry = options.download_retry;
    wanted.download_timeout_s = options.download_timeout_s;
    wanted.stop = std::make_shared<StopSignal>();
    RemoteSet set;
    std::vector<SupplyPart> parts;
    for (const StreamOptions& place : places) {
        // 0 would be no limit at all.
        const std::uint64_t share =
            options.cache_limit == 0
                ? 0
                : std::max<std::uint64_t>(options.cache_limit / places.size(), 1);
        TUNE_TRY(part, open_part(place, options, wanted, share));
        part.supply.first_shard = set.index.shards.size();
        set.shard_counts.push_back(part.index.shards.size());
        for (ShardInfo& shard : part.index.shards) set.index.shards.push_back(std::move(shard));
        parts.push_back(std::move(part.supply));
    }
    // What came over a network is checked whatever `verify` says of what is read from disk.
    set.store = std::make_shared<ShardStore>(parts.front().source, set.index, true,
                                             options.decompressed_bytes_max);
    SupplyOptions supply;
    supply.predownload = options.predownload;
    supply.connections = options.download_connections;
    supply.keep_zip = options.keep_zip;
    // The other half is for what other trials look ahead to.
    supply.window_bytes_max =
        options.cache_limit == 0 ? 0 : std::max<std::uint64_t>(options.cache_limit / 2, 1);
    supply.stop = wanted.stop;
    set.supply = std::make_shared<ShardSupply>(std::move(parts), set.store, std::move(supply));
    return set;
}

}  // namespace tune::loader
