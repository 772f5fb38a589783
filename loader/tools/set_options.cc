#include "loader/tools/set_options.h"

#include <CLI/CLI.hpp>

#include "loader/source/open_source.h"

namespace tune::loader {

void add_set_options(CLI::App& verb, SetArguments& arguments, bool has_directory) {
    DatasetOptions& options = arguments.options;
    if (has_directory)
        verb.add_option("directory", arguments.directory, "The data set: a folder, a file or a URL")
            ->required();
    verb.add_option("--format", options.format,
                    "mds, parquet, delta, jsonl, csv, tsv, webdataset or images (default: what is "
                    "there)");
    if (has_directory)
        verb.add_option("--columns", options.columns, "Columns to read (default: all)")
            ->delimiter(',');
    verb.add_option("--filter", arguments.filters,
                    "Rows to read of a table, e.g. 'age >= 18'; all must match");
    verb.add_option("--table-version", options.version, "Version of a Delta table");
    verb.add_option("--timestamp", options.timestamp, "State of a Delta table at a time");
    verb.add_option("--nulls", arguments.nulls, "What nulls become: refuse, mask or fill")
        ->capture_default_str();
    verb.add_option("--fill", arguments.fill, "The value of --nulls fill");
}

Result<DatasetOptions> set_options(const SetArguments& arguments) {
    DatasetOptions options = arguments.options;
    if (is_local_url(arguments.directory) && options.local.empty())
        options.directory = local_path(arguments.directory);
    else
        options.remote = arguments.directory;
    if (arguments.nulls == "fill") {
        options.nulls = Nulls::kFill;
        options.fill = arguments.fill;
    } else if (arguments.nulls == "mask" || arguments.nulls == "refuse") {
        options.nulls = arguments.nulls == "mask" ? Nulls::kMask : Nulls::kRefuse;
    } else {
        return invalid_parameter("--nulls: '" + arguments.nulls +
                                 "' is neither refuse nor mask nor fill");
    }
    for (const std::string& text : arguments.filters) {
        TUNE_TRY(filter, parse_filter(text));
        if (options.filters.empty()) options.filters.emplace_back();
        options.filters.front().push_back(std::move(filter));
    }
    return options;
}

}  // namespace tune::loader
