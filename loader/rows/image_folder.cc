// A folder a class, as torchvision's ImageFolder has it: labels count the folders in the order of
// their names. Images are given out as the bytes of their files.

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/text/text.h"
#include "loader/cache/remote_set.h"
#include "loader/rows/file_shard.h"
#include "loader/rows/formats.h"
#include "loader/rows/table_decoder.h"

namespace tune::loader {
namespace {

constexpr std::size_t kFilesPerShard = 1024;

UnitNeeds needs_of_files(const std::vector<ObjectInfo>& files, const ExtentUnits& units) {
    const std::vector<std::int64_t> samples(files.size(), 1);
    std::vector<std::uint32_t> begins = {0};
    std::vector<std::uint32_t> wanted;
    for (const ObjectInfo& file : files) {
        units.add_units(file.path, 0, file.bytes, wanted);
        begins.push_back(static_cast<std::uint32_t>(wanted.size()));
    }
    return {samples, std::move(begins), std::move(wanted)};
}

}  // namespace

const std::vector<std::string>& image_extensions() {
    static const std::vector<std::string> extensions = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                        ".pgm", ".tif",  ".tiff", ".webp"};
    return extensions;
}

Result<RowSet> open_image_folder(const DatasetOptions& options) {
    TUNE_TRY_VOID(refuse_table_options(options, "a folder of images"));
    TUNE_TRY(place, open_data(options));
    TUNE_TRY(files, find_files(*place.source, image_extensions()));
    std::map<std::string, std::int64_t> labels;  // by class
    std::string encoding;
    for (const ObjectInfo& file : files) {
        const std::size_t slash = file.path.find('/');
        if (slash != std::string::npos) labels[file.path.substr(0, slash)] = 0;
        const std::string_view extension =
            std::string_view(file.path).substr(file.path.rfind('.') + 1);
        const std::string found = encoding_of_extension(lower_ascii(extension));
        encoding = encoding.empty() || encoding == found ? found : "bytes";
    }
    std::int64_t next = 0;
    for (auto& [name, label] : labels) label = next++;
    TUNE_TRY_VOID(check_names(options, {"class", "image", "label", "path"}));
    RowSet rows;
    rows.catalogue.format = "images";
    std::vector<FileColumn> columns;
    for (const auto& [name, column_encoding] : std::array<std::pair<const char*, std::string>, 4>{
             {{"class", "str"}, {"image", encoding}, {"label", "int64"}, {"path", "str"}}}) {
        if (!is_wanted(options, name)) continue;
        TUNE_TRY(column, file_column(options, name, column_encoding));
        rows.catalogue.columns.push_back(column.info);
        columns.push_back(std::move(column));
    }
    std::string described = "images";
    std::vector<std::shared_ptr<const RowShard>> shards;
    for (std::size_t begin = 0; begin < files.size(); begin += kFilesPerShard) {
        auto shard = std::make_shared<FileShard>();
        shard->source = place.source;
        shard->columns = columns;
        const std::size_t end = std::min(begin + kFilesPerShard, files.size());
        for (std::size_t i = begin; i < end; ++i) {
            const ObjectInfo& file = files[i];
            const std::size_t slash = file.path.find('/');
            const std::string name = slash == std::string::npos ? "" : file.path.substr(0, slash);
            for (FileColumn& column : shard->columns) {
                if (column.info.name == "class") column.texts.push_back(name);
                if (column.info.name == "path") column.texts.push_back(file.path);
                if (column.info.name == "label")
                    column.numbers.push_back(name.empty() ? 0 : labels.at(name));
                if (column.info.name == "image")
                    column.extents.push_back(
                        {static_cast<std::uint32_t>(i - begin), 0, file.bytes});
            }
            rows.catalogue.bytes += file.bytes;
            described += "\n" + file.path + " " + std::to_string(file.bytes);
            shard->objects.push_back(file);
        }
        rows.catalogue.shard_samples.push_back(static_cast<std::int64_t>(end - begin));
        rows.catalogue.shard_names.push_back(files[begin].path + " and " +
                                             std::to_string(end - begin - 1) + " more");
        shards.push_back(std::move(shard));
    }
    if (place.cache && is_wanted(options, "image")) {
        // A file is a unit: samples of a batch lie anywhere.
        const auto units = ExtentUnits::blocks(files, std::numeric_limits<std::uint64_t>::max());
        TUNE_TRY_VOID(place.cache->keep(units, units->digest()));
        rows.supply = place.cache->supply(needs_of_files(files, *units));
    }
    return finish_file_rows(options, std::move(rows), described, std::move(shards));
}

}  // namespace tune::loader
