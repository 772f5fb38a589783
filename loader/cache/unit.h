#pragma once
// What a cache holds of a data set, and where it comes from. Internal to the loader.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loader/batch_decoder.h"
#include "loader/format/mds/index.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Where a cache keeps its own files, inside its folder.
inline constexpr const char* kCacheControlFolder = ".tune-cache";

/// A file as it is kept: `file` is what readers open.
struct CachedFile {
    FileInfo file = {};
    /// Kept beside it.
    std::optional<FileInfo> zip = {};
};

/// A part of a data set that is fetched, kept and evicted as one.
struct Unit {
    CachedFile kept = {};
    /// It is fetched as these bytes of this object.
    ObjectInfo object = {};
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    /// They are the compressed form of what is kept.
    std::optional<FileInfo> packed = {};
    std::string compression = {};
};

/// All units of a data set, by number: those that nobody wants cost nothing but a row in the
/// cache's table. Immutable, thread-safe.
class UnitList {
public:
    virtual ~UnitList() = default;

    [[nodiscard]] virtual std::size_t size() const = 0;
    /// Worked out anew at each call.
    [[nodiscard]] virtual Unit unit(std::size_t number) const = 0;
    /// Of the kept file, without its compressed form.
    [[nodiscard]] virtual std::uint64_t bytes(std::size_t number) const = 0;
    /// Of the kept file and its compressed form.
    [[nodiscard]] virtual std::uint64_t disk_bytes(std::size_t number) const {
        return bytes(number);
    }
    /// Kept files that stand under their own names beside the cache's; a list whose files all lie
    /// in the control folder names none.
    [[nodiscard]] virtual std::vector<std::string> names() const { return {}; }
    /// What a unit is called in messages: "shard", "file".
    [[nodiscard]] virtual std::string_view kind() const = 0;

    struct Place {
        std::size_t unit = 0;
        /// In what is kept.
        std::uint64_t offset = 0;
        /// From there to its end.
        std::uint64_t bytes = 0;
    };
    /// The unit that holds byte `offset` of the file `path`, if one does.
    [[nodiscard]] virtual std::optional<Place> find(std::string_view path,
                                                    std::uint64_t offset) const = 0;
};

/// The files of an index: MDS shards, or text shards with a second file that says where rows lie.
/// Text shards take two units each: the rows' places, then the rows.
class IndexUnits final : public UnitList {
public:
    IndexUnits(const Index& index, bool keep_zip);

    [[nodiscard]] std::size_t size() const override { return units_.size(); }
    [[nodiscard]] Unit unit(std::size_t number) const override { return units_[number]; }
    [[nodiscard]] std::uint64_t bytes(std::size_t number) const override {
        return units_[number].kept.file.bytes;
    }
    [[nodiscard]] std::uint64_t disk_bytes(std::size_t number) const override;
    [[nodiscard]] std::vector<std::string> names() const override;
    [[nodiscard]] std::string_view kind() const override { return "shard"; }
    [[nodiscard]] std::optional<Place> find(std::string_view path,
                                            std::uint64_t offset) const override;

private:
    void add(const FileInfo& raw, const std::optional<FileInfo>& zip,
             const std::string& compression, bool keep_zip);

    std::vector<Unit> units_;
    std::map<std::string, std::size_t, std::less<>> numbers_;  // by the kept file's name
};

/// Runs of bytes of objects. A kept file is named for its object's path, size and version, so that
/// what was fetched of an older version is never taken for the new one.
class ExtentUnits final : public UnitList {
public:
    struct Extent {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    /// `extents`: of each object, in ascending order. REQUIRES: paths of `objects` are distinct.
    ExtentUnits(std::vector<ObjectInfo> objects, std::vector<std::vector<Extent>> extents);

    /// Each object in blocks of `block_bytes`, the last one shorter.
    [[nodiscard]] static std::shared_ptr<const ExtentUnits> blocks(
        const std::vector<ObjectInfo>& objects, std::uint64_t block_bytes);

    [[nodiscard]] std::size_t size() const override { return extents_.size(); }
    [[nodiscard]] Unit unit(std::size_t number) const override;
    [[nodiscard]] std::uint64_t bytes(std::size_t number) const override {
        return extents_[number].bytes;
    }
    [[nodiscard]] std::string_view kind() const override { return "file"; }
    [[nodiscard]] std::optional<Place> find(std::string_view path,
                                            std::uint64_t offset) const override;
    /// The units in which `bytes` bytes from `offset` lie are added to `units`, up to the first
    /// byte that lies in none.
    void add_units(std::string_view path, std::uint64_t offset, std::uint64_t bytes,
                   std::vector<std::uint32_t>& units) const;

    /// Of all objects, their versions and extents.
    [[nodiscard]] std::string digest() const;

private:
    [[nodiscard]] std::optional<std::size_t> object_of(std::string_view path) const;

    std::vector<ObjectInfo> objects_;  // sorted by path
    std::vector<std::size_t> begins_;  // of each object's extents, and the end
    std::vector<Extent> extents_;
};

/// Which units samples are read from. Immutable, thread-safe.
class UnitNeeds {
public:
    /// Groups of `group_samples` samples, one after the other; those of group i want the units
    /// units[begins[i]] .. units[begins[i + 1]].
    UnitNeeds(std::span<const std::int64_t> group_samples, std::vector<std::uint32_t> begins,
              std::vector<std::uint32_t> units);
    /// Group i wants unit i.
    [[nodiscard]] static UnitNeeds one_each(std::span<const std::int64_t> group_samples);

    [[nodiscard]] ShardMap::Place find(std::int64_t id) const { return map_.find(id); }
    [[nodiscard]] std::span<const std::uint32_t> of_group(std::size_t group) const {
        return std::span(units_).subspan(begins_[group], begins_[group + 1] - begins_[group]);
    }
    [[nodiscard]] std::span<const std::uint32_t> of_sample(std::int64_t id) const {
        return of_group(map_.find(id).shard);
    }

private:
    ShardMap map_;
    std::vector<std::uint32_t> begins_;
    std::vector<std::uint32_t> units_;
};

}  // namespace tune::loader
