#include "loader/rows/formats.h"

#include <algorithm>

#include "base/text/text.h"
#include "loader/cache/remote_set.h"
#include "loader/format/mds/index.h"
#include "loader/rows/mds_rows.h"
#include "loader/source/open_source.h"

namespace tune::loader {
namespace {

bool has_index(const DatasetOptions& options) {
    std::error_code ignored;
    return is_cached(only_place(options)) ||
           std::filesystem::exists(data_directory(options) / "index.json", ignored);
}

bool has_delta_log(const DatasetOptions& options) {
    std::error_code ignored;
    return std::filesystem::is_directory(data_directory(options) / "_delta_log", ignored);
}

/// A table, in a program that does not link the library which reads them.
Format table_format(std::string name, std::function<bool(const DatasetOptions&)> detects) {
    const auto refuse = [name](const DatasetOptions& options) -> Result<RowSet> {
        return Error{Code::kNotImplemented,
                     "this program was built without Arrow C++, which reading " + name + " needs",
                     data_directory(options).string()};
    };
    return {std::move(name), std::move(detects), refuse};
}

}  // namespace

std::vector<Format> builtin_formats() {
    return {
        {"mds", has_index, open_index},
        table_format("delta", has_delta_log),
        table_format("parquet",
                     [](const DatasetOptions& options) {
                         return holds_files(options, {".parquet", ".parq"});
                     }),
    };
}

bool holds_files(const DatasetOptions& options, const std::vector<std::string>& extensions) {
    const std::string url = data_directory(options).string();
    const auto has_extension = [&](const std::string& path) {
        return std::any_of(extensions.begin(), extensions.end(), [&](const std::string& extension) {
            return lower_ascii(path).ends_with(extension);
        });
    };
    if (has_extension(url)) return true;
    const auto source = open_source(url);
    if (!source) return false;
    const auto objects = (*source)->list("");
    return objects && std::any_of(objects->begin(), objects->end(), [&](const ObjectInfo& object) {
               return has_extension(object.path) && !is_hidden(object.path);
           });
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
    return open_mds(options, std::move(set));
}

}  // namespace tune::loader
