#include <arrow/util/key_value_metadata.h>

#include "base/text/percent.h"
#include "loader/cache/remote_set.h"
#include "loader/rows/formats.h"
#include "loader/tables/parquet_file.h"
#include "loader/tables/parquet_table.h"

namespace tune::loader {
namespace {

constexpr std::string_view kNullPartition = "__HIVE_DEFAULT_PARTITION__";
constexpr const char* kPetastormKey = "dataset-toolkit.unischema.v1";

std::map<std::string, std::optional<std::string>> partition_of(const std::filesystem::path& path) {
    std::map<std::string, std::optional<std::string>> partition;
    for (const std::filesystem::path& part : path.parent_path()) {
        const std::string name = part.string();
        const std::size_t equals = name.find('=');
        if (equals == std::string::npos || equals == 0) continue;
        std::string value = percent_decode(name.substr(equals + 1));
        const bool is_null = value == kNullPartition;
        partition[percent_decode(name.substr(0, equals))] =
            is_null ? std::nullopt : std::optional(std::move(value));
    }
    return partition;
}

/// Petastorm keeps its own schema, a pickle that is never opened, under a key of this file.
bool is_petastorm(const std::shared_ptr<const ObjectSource>& source) {
    const Result<ObjectInfo> object = source->stat("_common_metadata");
    if (!object) return false;
    const auto file = ParquetFile::open(source, *object);
    return file && (*file)->metadata().key_value_metadata() &&
           (*file)->metadata().key_value_metadata()->Contains(kPetastormKey);
}

}  // namespace

Result<RowSet> open_parquet_folder(const DatasetOptions& options) {
    if (options.version || !options.timestamp.empty())
        return invalid_parameter("only a Delta table has versions; this is a folder of Parquet");
    TUNE_TRY(place, open_data(options));
    ParquetTable table{.format = "parquet", .source = place.source, .cache = place.cache};
    TUNE_TRY(objects, find_files(*place.source, {".parquet", ".parq"}));
    for (ObjectInfo& object : objects) {
        auto partition = partition_of(object.path);
        if (object.bytes > 0) table.files.push_back({std::move(object), std::move(partition)});
    }
    table.may_hold_npy = is_petastorm(place.source);
    return open_parquet_table(options, std::move(table));
}

}  // namespace tune::loader
