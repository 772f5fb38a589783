// WebDataset: archives of tar in which the files of one sample stand together and share their name
// up to the first dot of its last part; what follows the dot is the column. Opening reads the
// headers of every archive; each archive is a shard, its members are read when a batch wants them.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/text/text.h"
#include "loader/cache/parallel.h"
#include "loader/cache/remote_set.h"
#include "loader/format/tar.h"
#include "loader/rows/file_shard.h"
#include "loader/rows/formats.h"
#include "loader/rows/table_decoder.h"

namespace tune::loader {
namespace {

constexpr const char* kKeyColumn = "__key__";
/// Headers are read through a window of this size, so that small members cost no read each.
constexpr std::size_t kWindowBytes = std::size_t{256} << 10;
/// Of an archive that lies afar, this much is fetched and kept at a time.
constexpr std::uint64_t kBlockBytes = std::uint64_t{4} << 20;

struct Sample {
    std::string key;
    std::map<std::string, TarMember> members;  // by column
};

struct Archive {
    ObjectInfo object;
    std::vector<Sample> samples;
};

/// Reads through a window over the object.
class WindowReader {
public:
    WindowReader(const ObjectSource& source, const ObjectInfo& object)
        : source_(source), object_(object) {}

    Result<void> operator()(std::uint64_t offset, std::span<std::byte> bytes) {
        if (bytes.size() > kWindowBytes) return source_.read(object_, offset, bytes);
        const bool is_inside = offset >= begin_ && offset - begin_ <= window_.size() &&
                               bytes.size() <= window_.size() - (offset - begin_);
        if (!is_inside) {
            window_.resize(static_cast<std::size_t>(
                std::min<std::uint64_t>(kWindowBytes, object_.bytes - offset)));
            begin_ = offset;
            TUNE_TRY_VOID(source_.read(object_, offset, window_));
            if (bytes.size() > window_.size()) return data_loss("the archive is cut off");
        }
        std::memcpy(bytes.data(), window_.data() + (offset - begin_), bytes.size());
        return {};
    }

private:
    const ObjectSource& source_;
    const ObjectInfo& object_;
    std::vector<std::byte> window_;
    std::uint64_t begin_ = 0;
};

Result<Archive> read_archive(const ObjectSource& source, ObjectInfo object) {
    Archive archive{std::move(object), {}};
    WindowReader window(source, archive.object);
    const ReadArchive read = [&](std::uint64_t offset, std::span<std::byte> bytes) {
        return window(offset, bytes);
    };
    TUNE_TRY(members, list_tar(archive.object.bytes, read));
    for (TarMember& member : members) {
        const std::size_t slash = member.name.rfind('/');
        const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
        const std::size_t dot = member.name.find('.', begin);
        if (dot == std::string::npos || dot == begin) continue;  // no column, or a hidden file
        const std::string key = member.name.substr(0, dot);
        const std::string column = lower_ascii(std::string_view(member.name).substr(dot + 1));
        if (archive.samples.empty() || archive.samples.back().key != key)
            archive.samples.push_back({key, {}});
        if (!archive.samples.back().members.emplace(column, member).second)
            return data_loss("the sample '" + key + "' has '" + column + "' twice, at byte " +
                             std::to_string(member.offset));
    }
    return archive;
}

Result<std::shared_ptr<const RowShard>> make_shard(std::shared_ptr<const ObjectSource> source,
                                                   const Archive& archive,
                                                   const std::vector<FileColumn>& columns) {
    auto shard = std::make_shared<FileShard>();
    shard->source = std::move(source);
    shard->objects = {archive.object};
    if (const auto folder = shard->source->local_folder()) {
        TUNE_TRY(file, MappedFile::open(
                           archive.object.path.empty() ? *folder : *folder / archive.object.path));
        shard->mapped = std::move(file);
    }
    shard->columns = columns;
    for (FileColumn& column : shard->columns)
        for (const Sample& sample : archive.samples) {
            if (column.info.name == kKeyColumn) {
                column.texts.push_back(sample.key);
                continue;
            }
            const auto member = sample.members.find(column.info.name);
            column.extents.push_back(member == sample.members.end()
                                         ? Extent{}
                                         : Extent{0, member->second.offset, member->second.bytes});
        }
    return std::shared_ptr<const RowShard>(std::move(shard));
}

Result<std::vector<Archive>> read_archives(const ObjectSource& source,
                                           const std::vector<ObjectInfo>& files) {
    std::vector<Archive> archives(files.size());
    TUNE_TRY_VOID(for_each_parallel(files.size(), [&](std::size_t i) -> Result<void> {
        Result<Archive> archive = read_archive(source, files[i]);
        if (archive) {
            archives[i] = *std::move(archive);
            return {};
        }
        Error error = std::move(archive).error();
        if (error.context.empty())
            error.context =
                "'" + source.url() + (files[i].path.empty() ? "" : "/" + files[i].path) + "'";
        return error;
    }));
    return archives;
}

/// Which of `units` each sample's columns are read from.
UnitNeeds needs_of(const std::vector<Archive>& archives, const std::vector<FileColumn>& columns,
                   const ExtentUnits& units) {
    std::vector<std::int64_t> samples;
    std::vector<std::uint32_t> begins = {0};
    std::vector<std::uint32_t> wanted;
    for (const Archive& archive : archives)
        for (const Sample& sample : archive.samples) {
            samples.push_back(1);
            for (const FileColumn& column : columns)
                if (const auto member = sample.members.find(column.info.name);
                    member != sample.members.end())
                    units.add_units(archive.object.path, member->second.offset,
                                    member->second.bytes, wanted);
            // The members of a sample lie side by side.
            const auto first = wanted.begin() + static_cast<std::ptrdiff_t>(begins.back());
            std::sort(first, wanted.end());
            wanted.erase(std::unique(first, wanted.end()), wanted.end());
            begins.push_back(static_cast<std::uint32_t>(wanted.size()));
        }
    return {samples, std::move(begins), std::move(wanted)};
}

}  // namespace

Result<RowSet> open_webdataset(const DatasetOptions& options) {
    TUNE_TRY_VOID(refuse_table_options(options, "made of tar archives"));
    TUNE_TRY(place, open_data(options));
    TUNE_TRY(files, find_files(*place.source, {".tar"}));
    const std::shared_ptr<const ExtentUnits> units = ExtentUnits::blocks(files, kBlockBytes);
    if (place.cache) TUNE_TRY_VOID(place.cache->keep(units, units->digest()));
    TUNE_TRY(archives, read_archives(*place.source, files));
    std::set<std::string> names = {kKeyColumn};
    for (const Archive& archive : archives)
        for (const Sample& sample : archive.samples)
            for (const auto& [column, member] : sample.members) names.insert(column);
    const std::vector<std::string> sorted(names.begin(), names.end());
    TUNE_TRY_VOID(check_names(options, sorted));
    RowSet rows;
    rows.catalogue.format = "webdataset";
    std::vector<FileColumn> columns;
    std::string described = "webdataset";
    for (const std::string& name : sorted) {
        if (!is_wanted(options, name)) continue;
        const std::string_view extension = std::string_view(name).substr(name.rfind('.') + 1);
        TUNE_TRY(column,
                 file_column(options, name,
                             name == kKeyColumn ? "str" : encoding_of_extension(extension)));
        rows.catalogue.columns.push_back(column.info);
        described += "\n" + name;
        columns.push_back(std::move(column));
    }
    std::vector<std::shared_ptr<const RowShard>> shards;
    for (const Archive& archive : archives) {
        if (archive.samples.empty()) continue;
        TUNE_TRY(shard, make_shard(place.source, archive, columns));
        shards.push_back(std::move(shard));
        rows.catalogue.shard_samples.push_back(static_cast<std::int64_t>(archive.samples.size()));
        rows.catalogue.shard_names.push_back(archive.object.path);
        rows.catalogue.bytes += archive.object.bytes;
        described += "\n" + archive.object.path + " " + std::to_string(archive.object.bytes) + " " +
                     std::to_string(archive.samples.size());
    }
    if (place.cache) rows.supply = place.cache->supply(needs_of(archives, columns, *units));
    return finish_file_rows(options, std::move(rows), described, std::move(shards));
}

}  // namespace tune::loader
