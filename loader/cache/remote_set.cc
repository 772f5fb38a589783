// The index is small and always asked for, so that a new version of the data is noticed; what it
// names decides whether the folder's files are still the right ones. When nothing answers, the
// index that was kept serves: a run whose shards are all there needs no network.

#include "loader/cache/remote_set.h"

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

std::filesystem::path default_cache(const std::string& url) {
    const std::string name = hash_hex("xxh3_64", std::as_bytes(std::span(url))).value();
    if (const std::string set = environment("TUNE_CACHE_DIR"); !set.empty())
        return std::filesystem::path(set) / name;
    const std::string cache = environment("XDG_CACHE_HOME");
    const std::filesystem::path top = cache.empty()
                                          ? std::filesystem::path(environment("HOME")) / ".cache"
                                          : std::filesystem::path(cache);
    return top / "tune" / "data" / name;
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

}  // namespace

bool is_cached(const DatasetOptions& options) {
    return !options.remote.empty() && (!is_local_url(options.remote) || !options.local.empty());
}

std::filesystem::path plain_directory(const DatasetOptions& options) {
    if (!options.directory.empty()) return options.directory;
    return options.remote.empty() ? options.local : local_path(options.remote);
}

Result<RemoteSet> open_remote(const DatasetOptions& options) {
    if (!options.directory.empty())
        return invalid_parameter(
            "a data set has either a directory or a remote; the folder for what is fetched is "
            "`local`");
    const std::string url = joined(options.remote, options.split);
    SourceOptions wanted;
    wanted.download_retry = options.download_retry;
    wanted.download_timeout_s = options.download_timeout_s;
    wanted.stop = std::make_shared<StopSignal>();
    TUNE_TRY(source, open_source(url, wanted));
    const std::filesystem::path directory =
        options.local.empty()
            ? default_cache(url)
            : std::filesystem::path(joined(options.local.string(), options.split));
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        return Error{Code::kPermissionDenied, "cannot create the cache folder '" +
                                                  directory.string() + "': " + error.message()};
    TUNE_TRY(text, index_text_of(*source, directory));
    Result<Index> index = parse_index(text);
    if (!index) {
        Error damaged = std::move(index).error();
        damaged.context = joined(url, "index.json");
        return damaged;
    }
    TUNE_TRY(cache, DiskCache::open({directory, options.cache_limit},
                                    files_of(*index, options.keep_zip), index_digest(*index)));
    RemoteSet set;
    // What came over a network is checked whatever `verify` says of what is read from disk.
    set.store = std::make_shared<ShardStore>(source, *index, true, options.decompressed_bytes_max);
    SupplyOptions supply;
    supply.predownload = options.predownload;
    supply.connections = options.download_connections;
    supply.keep_zip = options.keep_zip;
    // The other half is for what other trials look ahead to.
    supply.window_bytes_max = options.cache_limit / 2;
    supply.stop = wanted.stop;
    set.supply = std::make_shared<ShardSupply>(std::vector<SupplyPart>{{source, cache, 0}},
                                               set.store, std::move(supply));
    set.index = *std::move(index);
    return set;
}

}  // namespace tune::loader
