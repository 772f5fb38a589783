// Which formats there are and how a directory is recognised. The order matters: a Delta table holds
// Parquet files, and an index.json may stand beside anything.

#include "loader/rows/formats.h"

#include <algorithm>

#include "base/text/text.h"
#include "loader/cache/remote_set.h"
#include "loader/format/mds/index.h"
#include "loader/rows/mds_rows.h"
#include "loader/rows/table_decoder.h"
#include "loader/source/open_source.h"

namespace tune::loader {
namespace {

bool has_index(const DatasetOptions& options) {
    std::error_code ignored;
    if (!is_cached(only_place(options)))
        return std::filesystem::exists(data_place(options) + "/index.json", ignored);
    // What does not answer may have an index from an earlier run; opening it says more.
    const auto source = open_source(data_place(options));
    const auto index = source ? (*source)->stat("index.json") : Result<ObjectInfo>(source.error());
    if (index || index.error().code != Code::kResourceDoesNotExist) return true;
    // Nothing else could be found where nothing can be listed: the answer about the index counts.
    const auto objects = (*source)->list("");
    return !objects && objects.error().code == Code::kNotImplemented;
}

/// A table, in a program that does not link the library which reads them.
Format table_format(std::string name, std::function<bool(const DatasetOptions&)> detects) {
    const auto refuse = [name](const DatasetOptions& options) -> Result<RowSet> {
        return Error{Code::kNotImplemented,
                     "this program was built without Arrow C++, which reading " + name + " needs",
                     data_place(options)};
    };
    return {std::move(name), std::move(detects), refuse};
}

}  // namespace

std::vector<Format> builtin_formats() {
    std::vector<Format> formats = {
        {"mds", has_index, open_index},
        table_format("delta", holds_delta_log),
        table_format("parquet", holds_parquet),
    };
    const auto holds = [](std::vector<std::string> extensions) {
        return [extensions = std::move(extensions)](const DatasetOptions& options) {
            return holds_files(options, extensions);
        };
    };
    formats.push_back({"webdataset", holds({".tar"}), open_webdataset});
    for (const char* name : {"jsonl", "csv", "tsv"})
        formats.push_back(
            {name, holds(text_extensions(name)),
             [name](const DatasetOptions& options) { return open_text_files(options, name); }});
    formats.push_back({"images", holds(image_extensions()), open_image_folder});
    return formats;
}

std::vector<std::string> text_extensions(const std::string& format) {
    if (format == "jsonl") return {".jsonl", ".ndjson"};
    return {"." + format};
}

bool holds_delta_log(const DatasetOptions& options) {
    const auto source = open_source(data_place(options));
    if (!source) return false;
    const auto objects = (*source)->list("_delta_log");
    return objects && !objects->empty();
}

bool holds_parquet(const DatasetOptions& options) {
    return holds_files(options, {".parquet", ".parq"});
}

bool holds_files(const DatasetOptions& options, const std::vector<std::string>& extensions) {
    const auto source = open_source(data_place(options));
    return source && find_files(**source, extensions);
}

Result<std::vector<ObjectInfo>> find_files(const ObjectSource& source,
                                           const std::vector<std::string>& extensions) {
    const auto is_wanted = [&](std::string_view path) {
        const std::string lower = lower_ascii(path);
        return std::any_of(extensions.begin(), extensions.end(), [&](const std::string& extension) {
            return lower.ends_with(extension);
        });
    };
    std::vector<ObjectInfo> found;
    if (is_wanted(source.url()))
        if (Result<ObjectInfo> single = source.stat(""); single) return std::vector{*single};
    TUNE_TRY(objects, source.list(""));
    for (ObjectInfo& object : objects)
        if (is_wanted(object.path) && !is_hidden(object.path)) found.push_back(std::move(object));
    if (!found.empty()) return found;
    std::string message = "'" + source.url() + "' holds no files that end in";
    for (const std::string& extension : extensions) message += " " + extension;
    return Error{Code::kResourceDoesNotExist, std::move(message)};
}

Result<RowSet> finish_file_rows(const DatasetOptions& options, RowSet rows,
                                std::string_view described,
                                std::vector<std::shared_ptr<const RowShard>> shards) {
    rows.catalogue.digest = digest_of(described);
    if (shards.empty())
        return Error{Code::kInvalidParameterValue, "the data set has no samples",
                     data_place(options)};
    const auto load = [shards = std::move(shards)](std::size_t shard) {
        return Result<ShardCache::ShardPtr>(shards[shard]);
    };
    rows.decoder = make_table_decoder(rows.catalogue, options.decompressed_bytes_max, 0, load);
    return rows;
}

bool is_hidden(const std::filesystem::path& path) {
    return std::any_of(path.begin(), path.end(), [](const std::filesystem::path& part) {
        const std::string name = part.string();
        const bool is_partition = name.find('=') != std::string::npos;
        return !is_partition && (name.starts_with('_') || name.starts_with('.'));
    });
}

Result<RowSet> open_index(const DatasetOptions& options) {
    TUNE_TRY(set, open_streams(options));
    if (set.index.shards.front().format == "mds") return open_mds(options, std::move(set));
    if (set.streams.size() > 1)
        return invalid_parameter(set.index.shards.front().format +
                                 " shards are read from one place; convert them to MDS (tune-data "
                                 "convert) to mix them");
    return open_split_shards(options, std::move(set.index), std::move(set.files));
}

}  // namespace tune::loader
