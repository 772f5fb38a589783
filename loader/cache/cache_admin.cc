// Looking at caches and deleting them, without knowing what data they hold.

#include <algorithm>
#include <system_error>

#include "loader/cache/disk_cache.h"

namespace tune::loader {
namespace {

bool is_cache(const std::filesystem::path& folder) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(folder / kCacheControlFolder / "locks", ignored);
}

Result<CacheUsage> usage_of(const std::filesystem::path& folder) {
    CacheUsage usage{.directory = folder};
    std::error_code error;
    std::filesystem::recursive_directory_iterator entry(folder, error);
    for (const std::filesystem::recursive_directory_iterator end; !error && entry != end;
         entry.increment(error)) {
        if (entry->is_directory(error) && entry->path() != folder / kCacheControlFolder &&
            is_cache(entry->path())) {
            entry.disable_recursion_pending();  // a cache of its own
            continue;
        }
        if (!entry->is_regular_file(error)) continue;
        usage.bytes += entry->file_size(error);
        if (entry->path().parent_path() != folder / kCacheControlFolder) ++usage.files;
    }
    TUNE_TRY(locks, FileLocks::open(folder / kCacheControlFolder / "locks"));
    usage.is_in_use = !locks.try_lock(kCacheUsersPlace);
    return usage;
}

}  // namespace

Result<std::vector<CacheUsage>> find_caches(const std::filesystem::path& directory) {
    std::vector<CacheUsage> caches;
    std::error_code error;
    if (is_cache(directory)) {
        TUNE_TRY(usage, usage_of(directory));
        caches.push_back(std::move(usage));
    }
    for (std::filesystem::recursive_directory_iterator entry(directory, error), end;
         !error && entry != end; entry.increment(error)) {
        if (!entry->is_directory(error) || !is_cache(entry->path())) continue;
        TUNE_TRY(usage, usage_of(entry->path()));
        caches.push_back(std::move(usage));
    }
    if (caches.empty())
        return Error{Code::kResourceDoesNotExist,
                     "'" + directory.string() + "' is no cache of tune and holds none"};
    std::sort(caches.begin(), caches.end(),
              [](const CacheUsage& a, const CacheUsage& b) { return a.directory < b.directory; });
    return caches;
}

Result<void> cache_delete(const std::filesystem::path& directory) {
    if (!is_cache(directory))
        return Error{Code::kResourceDoesNotExist,
                     "'" + directory.string() + "' is no cache of tune"};
    const std::filesystem::path control = directory / kCacheControlFolder;
    TUNE_TRY(locks, FileLocks::open(control / "locks"));
    if (!locks.try_lock(kCacheUsersPlace))
        return Error{Code::kResourceConflict, "a process reads from the cache '" +
                                                  directory.string() +
                                                  "'; delete it when that has ended"};
    std::error_code error;
    // The names that it fetched are in its list: nothing else in the folder is touched.
    TUNE_TRY(names, cached_names(directory));
    for (const std::string& name : names) std::filesystem::remove(directory / name, error);
    std::filesystem::remove_all(control, error);
    if (error)
        return Error{Code::kInternalError,
                     "cannot delete '" + control.string() + "': " + error.message()};
    std::filesystem::remove(directory / "index.json", error);
    for (const std::string& name : names)
        for (std::filesystem::path folder = std::filesystem::path(name).parent_path();
             !folder.empty(); folder = folder.parent_path())
            if (!std::filesystem::remove(directory / folder, error)) break;
    std::filesystem::remove(directory, error);  // if nothing else is in it
    return {};
}

}  // namespace tune::loader
