// The registry of formats, and what all of them do with the options alike. A format that needs a
// large library is added by the library that links it, so that a program without that library still
// names the format when it meets it.

#include "loader/rows/row_set.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "loader/cache/remote_set.h"
#include "loader/format/convert_dtype.h"
#include "loader/format/hash.h"
#include "loader/rows/formats.h"

namespace tune::loader {
namespace {

struct Registry {
    std::mutex mutex;
    std::vector<Format> formats = builtin_formats();
};

Registry& registry() {
    static Registry registry;
    return registry;
}

std::vector<Format> known_formats() {
    const std::lock_guard lock(registry().mutex);
    return registry().formats;
}

Error unknown_format(const std::string& name, const std::vector<Format>& formats) {
    std::string message = "there is no format '" + name + "'; this program has";
    for (const Format& format : formats) message += " " + format.name;
    return invalid_parameter(std::move(message));
}

}  // namespace

std::int64_t Catalogue::sample_count() const {
    return std::accumulate(shard_samples.begin(), shard_samples.end(), std::int64_t{0});
}

void add_format(Format format) {
    const std::lock_guard lock(registry().mutex);
    std::vector<Format>& formats = registry().formats;
    const auto known = std::find_if(formats.begin(), formats.end(),
                                    [&](const Format& other) { return other.name == format.name; });
    if (known == formats.end())
        formats.push_back(std::move(format));
    else
        *known = std::move(format);
}

Result<RowSet> open_rows(const DatasetOptions& options) {
    if (!options.streams.empty() && !options.format.empty() && options.format != "mds")
        return invalid_parameter("streams are mixed of MDS data sets only, not of " +
                                 options.format);
    const std::vector<Format> formats = known_formats();
    const auto chosen = std::find_if(formats.begin(), formats.end(), [&](const Format& format) {
        if (!options.streams.empty()) return format.name == "mds";
        return options.format.empty() ? format.detects(options) : format.name == options.format;
    });
    if (chosen != formats.end()) {
        TUNE_TRY(rows, chosen->open(options));
        const std::int64_t stored = rows.catalogue.sample_count();
        if (rows.streams.empty())
            rows.streams.push_back({rows.catalogue.shard_samples,
                                    options.epoch_size > 0 ? options.epoch_size : stored});
        if (stored > 0) return rows;
        return Error{Code::kInvalidParameterValue, "the data set has no samples",
                     data_place(options)};
    }
    if (!options.format.empty()) return unknown_format(options.format, formats);
    return Error{Code::kResourceDoesNotExist,
                 "there is no data set: no '" + data_place(options) + "/index.json" +
                     "', and beside it no Delta log, no Parquet, JSONL, CSV or tar files and no "
                     "folders of images"};
}

std::string data_place(const DatasetOptions& options) {
    const StreamOptions place = only_place(options);
    if (!is_cached(place)) return plain_directory(place).string();
    std::string url = place.remote;
    while (url.ends_with('/')) url.pop_back();
    return place.split.empty() ? url : url + "/" + place.split;
}

ColumnOptions options_of(const DatasetOptions& options, std::string_view column) {
    for (const ColumnOptions& candidate : options.column_options)
        if (candidate.name == column) return candidate;
    ColumnOptions usual;
    usual.name = column;
    usual.nulls = options.nulls;
    usual.fill = options.fill;
    return usual;
}

Result<void> check_names(const DatasetOptions& options, const std::vector<std::string>& names) {
    std::vector<std::string> asked = options.columns;
    for (const ColumnOptions& column : options.column_options) asked.push_back(column.name);
    for (const std::string& name : asked) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        std::string message = "there is no column '" + name + "'; the data set has";
        for (const std::string& known : names) message += " " + known;
        return invalid_parameter(message);
    }
    return {};
}

bool is_wanted(const DatasetOptions& options, std::string_view column) {
    return options.columns.empty() || std::find(options.columns.begin(), options.columns.end(),
                                                column) != options.columns.end();
}

Result<void> apply_dtype(const ColumnOptions& wanted, ColumnInfo& column) {
    if (!wanted.dtype || *wanted.dtype == column.dtype) return {};
    const bool is_list = column.encoding.starts_with("list:");
    if (!column.fixed && !is_list)
        return invalid_parameter("column '" + column.name + "' (" + column.encoding +
                                 ") holds no numbers that could become " +
                                 std::string(dtype_name(*wanted.dtype)));
    const std::string from(dtype_name(column.dtype));
    const std::string to(dtype_name(*wanted.dtype));
    if (!wanted.allows_narrowing && !holds_every_value(*wanted.dtype, column.dtype))
        return invalid_parameter("column '" + column.name + "' is stored as " + from + ", and " +
                                 to +
                                 " does not hold every value of it; allow narrowing if "
                                 "values may be rounded or clamped");
    if (column.stored.empty()) column.stored = from;
    if (column.fixed)
        column.sample_bytes =
            column.sample_bytes / dtype_bytes(column.dtype) * dtype_bytes(*wanted.dtype);
    column.dtype = *wanted.dtype;
    if (const std::size_t at = column.encoding.find(from); at != std::string::npos)
        column.encoding.replace(at, from.size(), to);
    else
        column.encoding = to;  // "int"
    return {};
}

Result<void> refuse_table_options(const DatasetOptions& options, std::string_view format) {
    if (!options.filters.empty())
        return invalid_parameter("filters need a table of Parquet or Delta; this data set is " +
                                 std::string(format));
    if (options.version || !options.timestamp.empty())
        return invalid_parameter("only a Delta table has versions; this data set is " +
                                 std::string(format));
    return {};
}

std::string digest_of(std::string_view text) {
    return hash_hex("xxh3_128", std::as_bytes(std::span(text))).value();
}

}  // namespace tune::loader
