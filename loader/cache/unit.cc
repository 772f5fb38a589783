// Numbers stand for units everywhere; what a number means is worked out when a unit is fetched or
// opened. So a table of a million column chunks, of which a run wants a few, takes 16 bytes for
// each.

#include "loader/cache/unit.h"

#include <algorithm>
#include <numeric>

#include "loader/format/hash.h"

namespace tune::loader {
namespace {

/// Folders among which the files of one cache are spread.
constexpr std::size_t kFolderDigits = 2;

}  // namespace

IndexUnits::IndexUnits(const Index& index, bool keep_zip) {
    for (const ShardInfo& shard : index.shards) {
        if (shard.raw_meta) add(*shard.raw_meta, shard.zip_meta, shard.compression, keep_zip);
        add(shard.raw_data, shard.zip_data, shard.compression, keep_zip);
    }
}

void IndexUnits::add(const FileInfo& raw, const std::optional<FileInfo>& zip,
                     const std::string& compression, bool keep_zip) {
    Unit unit;
    unit.kept.file = raw;
    if (keep_zip) unit.kept.zip = zip;
    unit.packed = zip;
    if (zip) unit.compression = compression;
    const FileInfo& stored = zip ? *zip : raw;
    unit.object = {stored.basename, stored.bytes, ""};
    unit.bytes = stored.bytes;
    numbers_.emplace(raw.basename, units_.size());
    units_.push_back(std::move(unit));
}

std::uint64_t IndexUnits::disk_bytes(std::size_t number) const {
    const CachedFile& kept = units_[number].kept;
    return kept.file.bytes + (kept.zip ? kept.zip->bytes : 0);
}

std::vector<std::string> IndexUnits::names() const {
    std::vector<std::string> names;
    for (const Unit& unit : units_) {
        names.push_back(unit.kept.file.basename);
        if (unit.kept.zip) names.push_back(unit.kept.zip->basename);
    }
    return names;
}

std::optional<UnitList::Place> IndexUnits::find(std::string_view path, std::uint64_t offset) const {
    const auto number = numbers_.find(path);
    if (number == numbers_.end() || offset >= bytes(number->second)) return {};
    return Place{number->second, offset, bytes(number->second) - offset};
}

ExtentUnits::ExtentUnits(std::vector<ObjectInfo> objects,
                         std::vector<std::vector<Extent>> extents) {
    std::vector<std::size_t> order(objects.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {},
                      [&](std::size_t i) -> const std::string& { return objects[i].path; });
    for (const std::size_t i : order) {
        objects_.push_back(std::move(objects[i]));
        begins_.push_back(extents_.size());
        extents_.insert(extents_.end(), extents[i].begin(), extents[i].end());
    }
    begins_.push_back(extents_.size());
}

std::shared_ptr<const ExtentUnits> ExtentUnits::blocks(const std::vector<ObjectInfo>& objects,
                                                       std::uint64_t block_bytes) {
    std::vector<std::vector<Extent>> extents;
    for (const ObjectInfo& object : objects) {
        std::vector<Extent>& of_object = extents.emplace_back();
        for (std::uint64_t at = 0; at < object.bytes; at += block_bytes)
            of_object.push_back({at, std::min(block_bytes, object.bytes - at)});
    }
    return std::make_shared<const ExtentUnits>(objects, std::move(extents));
}

Unit ExtentUnits::unit(std::size_t number) const {
    const auto after = std::ranges::upper_bound(begins_, number);
    Unit unit;
    unit.object = objects_[static_cast<std::size_t>(after - begins_.begin()) - 1];
    unit.offset = extents_[number].offset;
    unit.bytes = extents_[number].bytes;
    const std::string identity = unit.object.path + '\0' + unit.object.version + '\0' +
                                 std::to_string(unit.object.bytes) + '\0' +
                                 std::to_string(unit.offset) + '\0' + std::to_string(unit.bytes);
    std::string name = hash_hex("xxh3_128", std::as_bytes(std::span(identity))).value();
    name.insert(kFolderDigits, 1, '/');
    unit.kept.file.basename = std::string(kCacheControlFolder) + "/units/" + name;
    unit.kept.file.bytes = unit.bytes;
    return unit;
}

std::optional<std::size_t> ExtentUnits::object_of(std::string_view path) const {
    const auto found = std::ranges::lower_bound(
        objects_, path, {}, [](const ObjectInfo& object) { return std::string_view(object.path); });
    if (found == objects_.end() || found->path != path) return {};
    return static_cast<std::size_t>(found - objects_.begin());
}

std::optional<UnitList::Place> ExtentUnits::find(std::string_view path,
                                                 std::uint64_t offset) const {
    const std::optional<std::size_t> object = object_of(path);
    if (!object) return {};
    const auto begin = extents_.begin() + static_cast<std::ptrdiff_t>(begins_[*object]);
    const auto end = extents_.begin() + static_cast<std::ptrdiff_t>(begins_[*object + 1]);
    const auto after = std::upper_bound(
        begin, end, offset,
        [](std::uint64_t place, const Extent& extent) { return place < extent.offset; });
    if (after == begin) return {};
    const Extent& extent = *std::prev(after);
    if (offset - extent.offset >= extent.bytes) return {};
    return Place{static_cast<std::size_t>(after - extents_.begin()) - 1, offset - extent.offset,
                 extent.bytes - (offset - extent.offset)};
}

void ExtentUnits::add_units(std::string_view path, std::uint64_t offset, std::uint64_t bytes,
                            std::vector<std::uint32_t>& units) const {
    while (bytes > 0) {
        const std::optional<Place> place = find(path, offset);
        if (!place) return;
        units.push_back(static_cast<std::uint32_t>(place->unit));
        const std::uint64_t step = std::min(bytes, place->bytes);
        offset += step;
        bytes -= step;
    }
}

std::string ExtentUnits::digest() const {
    std::string text;
    for (std::size_t i = 0; i < objects_.size(); ++i)
        text += objects_[i].path + '\0' + objects_[i].version + '\0' +
                std::to_string(objects_[i].bytes) + '\0' + std::to_string(begins_[i]) + '\0';
    const std::span<const std::byte> extents = std::as_bytes(std::span(extents_));
    text.append(reinterpret_cast<const char*>(extents.data()), extents.size());
    return hash_hex("xxh3_128", std::as_bytes(std::span(text))).value();
}

UnitNeeds::UnitNeeds(std::span<const std::int64_t> group_samples, std::vector<std::uint32_t> begins,
                     std::vector<std::uint32_t> units)
    : map_(group_samples), begins_(std::move(begins)), units_(std::move(units)) {}

UnitNeeds UnitNeeds::one_each(std::span<const std::int64_t> group_samples) {
    std::vector<std::uint32_t> begins(group_samples.size() + 1);
    std::iota(begins.begin(), begins.end(), 0u);
    std::vector<std::uint32_t> units(begins.begin(), std::prev(begins.end()));
    return {group_samples, std::move(begins), std::move(units)};
}

}  // namespace tune::loader
