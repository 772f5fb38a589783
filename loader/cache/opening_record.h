#pragma once
// What opening a data set read. Internal to the loader.

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "base/result.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Footers, logs and the like, which every process reads before the first batch: kept in one small
/// file for the next one. Only what has a version is kept, so that another content is read anew.
/// Thread-safe.
class OpeningRecord {
public:
    /// Of an earlier run; what is not there or damaged is an empty record.
    explicit OpeningRecord(std::filesystem::path file);

    /// Fills `bytes` of `object`, from the record or from `source`. Errors: those of the source.
    [[nodiscard]] Result<void> read(const ObjectSource& source, const ObjectInfo& object,
                                    std::uint64_t offset, std::span<std::byte> bytes);

    /// Writes the file if anything was added, and lets go of the memory. A file that cannot be
    /// written costs the next run its reads, and is no error.
    void save();

private:
    struct Entry {
        std::string content = {};
        bool is_used = false;  ///< by this run
    };

    void load();
    void add(std::string key, Entry entry);

    const std::filesystem::path file_;
    std::mutex mutex_;
    bool is_open_ = true;  // all below is guarded by mutex_
    bool has_changed_ = false;
    std::size_t bytes_ = 0;
    std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tune::loader
