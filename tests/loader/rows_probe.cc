// Prints the samples of a data set of any format as lines of JSON, for comparison with the
// libraries that wrote it: rows_probe '{"directory": ..., "shuffle": true, ...}'. Bytes come out as
// hex.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text/hex.h"
#include "loader/dataset.h"
#include "loader/format/mds/encoding.h"
#include "loader/tables/formats.h"

namespace tune::loader {
namespace {

Json elements_json(const ColumnInfo& info, std::span<const std::byte> bytes) {
    Json list = Json::array();
    for (std::size_t at = 0; at < bytes.size(); at += dtype_bytes(info.dtype))
        list.push_back(element_to_json(info.dtype, bytes.data() + at));
    return list;
}

Json value_json(const Column& column, std::size_t row) {
    const ColumnInfo& info = *column.info;
    const std::span<const std::byte> bytes = column.sample(row);
    if (column.valid && column.valid[row] == 0) return nullptr;
    if (info.fixed && info.shape.empty()) return element_to_json(info.dtype, bytes.data());
    if (info.fixed || info.encoding.starts_with("list:")) return elements_json(info, bytes);
    const std::string_view text = column.text(row);
    if (info.encoding == "json") return Json::parse(text);
    if (info.encoding.starts_with("str")) return std::string(text);
    if (info.encoding == "ndarray") {
        const auto array = decode_array({EncodingKind::kNdarray, "ndarray"}, bytes).value();
        ColumnInfo elements;
        elements.dtype = array.dtype;
        return Json{{"dtype", dtype_name(array.dtype)},
                    {"shape", array.shape},
                    {"data", elements_json(elements, array.bytes)}};
    }
    return hex_encode({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
}

DatasetOptions options_of(const Json& json) {
    DatasetOptions options;
    options.directory = json.value("directory", "");
    options.remote = json.value("remote", "");
    options.local = json.value("local", "");
    options.cache_limit = json.value("cache_limit", std::uint64_t{0});
    options.predownload = json.value("predownload", std::int64_t{0});
    options.download_retry = json.value("retry", options.download_retry);
    options.download_timeout_s = json.value("timeout", options.download_timeout_s);
    options.format = json.value("format", "");
    options.batch_size = json.value("batch_size", 7);
    options.columns = json.value("columns", std::vector<std::string>());
    options.shuffle = json.value("shuffle", false);
    options.threads = json.value("threads", 2);
    options.decompressed_bytes_max = json.value("bytes_max", std::size_t{1} << 30);
    options.nulls = json.value("nulls", "refuse") == "mask" ? Nulls::kMask : Nulls::kRefuse;
    if (json.contains("version")) options.version = json["version"].get<std::int64_t>();
    options.timestamp = json.value("timestamp", "");
    for (const Json& alternative : json.value("filters", Json::array())) {
        std::vector<Filter>& filters = options.filters.emplace_back();
        for (const Json& text : alternative)
            filters.push_back(parse_filter(text.get<std::string>()).value());
    }
    for (const Json& given : json.value("column_options", Json::array())) {
        ColumnOptions& column = options.column_options.emplace_back();
        column.name = given.at("name").get<std::string>();
        if (given.contains("dtype"))
            column.dtype = dtype_from_name(given["dtype"].get<std::string>());
        column.allows_narrowing = given.value("allows_narrowing", false);
        column.shape = given.value("shape", std::vector<std::int64_t>());
        const std::string nulls = given.value("nulls", "refuse");
        column.nulls = nulls == "mask"   ? Nulls::kMask
                       : nulls == "fill" ? Nulls::kFill
                                         : Nulls::kRefuse;
        column.fill = given.value("fill", "");
    }
    return options;
}

int run(const char* text) {
    use_arrow_formats();
    const Json json = Json::parse(text);
    const auto dataset = Dataset::open(options_of(json));
    if (!dataset) {
        std::fprintf(stderr, "%s\n", dataset.error().text().c_str());
        return 1;
    }
    // Batches after which it ends, 0: none; what was moved is then told on the other stream.
    const std::int64_t batches_max = json.value("batches", std::int64_t{0});
    std::int64_t batches = 0;
    Json columns = Json::object();
    for (const ColumnInfo& column : (*dataset)->columns())
        columns[column.name] = column.encoding + (column.has_mask ? "?" : "");
    std::printf("%s\n", columns.dump().c_str());
    for (int epoch = 0; epoch < json.value("epochs", 1); ++epoch) {
        Batch batch;
        while (true) {
            const Result<bool> more = (*dataset)->next(batch);
            if (!more) {
                std::fprintf(stderr, "%s\n", more.error().text().c_str());
                return 1;
            }
            if (!*more) break;
            ++batches;
            for (std::size_t i = 0; i < batch.count; ++i) {
                Json row = {{"__id", batch.sample_ids[i]}};
                for (const Column& column : batch.columns)
                    row[column.info->name] = value_json(column, i);
                std::printf("%s\n",
                            row.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
            }
            if (batches == batches_max) break;
        }
    }
    const FetchStats stats = (*dataset)->fetch_stats();
    std::fprintf(stderr, "%s\n",
                 Json{{"bytes", stats.bytes}, {"units", stats.shards}}.dump().c_str());
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main(int argc, char** argv) {
    return argc == 2 ? tune::loader::run(argv[1]) : 2;
}
