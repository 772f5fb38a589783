// What is in a data set, as JSON and as text for people. Counts, sizes and columns come from the
// index alone; only the first rows are read from shards.

#include "loader/tools/inspect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "loader/format/mds/encoding.h"
#include "loader/format/mds/shard.h"
#include "loader/source/shard_store.h"
#include "loader/tools/progress.h"

namespace tune::loader {
namespace {

/// Memory that decompressed shards may take while the first rows are read.
constexpr std::size_t kDecompressedBytesMax = std::size_t{1} << 30;

const FileInfo& stored_file(const ShardInfo& shard) {
    return shard.zip_data ? *shard.zip_data : shard.raw_data;
}

Json columns_json(const ShardInfo& shard) {
    Json columns = Json::array();
    for (std::size_t i = 0; i < shard.column_names.size(); ++i)
        columns.push_back(
            {{"name", shard.column_names[i]},
             {"encoding", shard.column_encodings[i]},
             {"bytes", shard.column_sizes[i] ? Json(*shard.column_sizes[i]) : Json(nullptr)}});
    return columns;
}

Json shards_json(const Index& index) {
    Json shards = Json::array();
    for (const ShardInfo& shard : index.shards)
        shards.push_back(
            {{"name", stored_file(shard).basename},
             {"samples", shard.samples},
             {"bytes", stored_file(shard).bytes},
             {"raw_bytes", shard.raw_data.bytes},
             {"compression", shard.compression.empty() ? Json(nullptr) : Json(shard.compression)},
             {"hashes", stored_file(shard).hashes}});
    return shards;
}

Result<Json> row_json(const ShardInfo& info, std::span<const std::byte> sample,
                      const InspectOptions& options) {
    std::vector<std::span<const std::byte>> payloads(info.column_names.size());
    if (!SampleLayout(info.column_sizes).split(sample, payloads))
        return Error{Code::kDataLoss, "it does not match its columns"};
    Json row = Json::object();
    for (std::size_t c = 0; c < payloads.size(); ++c) {
        TUNE_TRY(encoding, parse_encoding(info.column_encodings[c]));
        TUNE_TRY(value, describe_payload(encoding, payloads[c], options.elements_max));
        row[info.column_names[c]] = std::move(value);
    }
    return row;
}

Result<Json> rows_json(const DataSet& set, const InspectOptions& options) {
    const std::unique_ptr<ShardStore> store = set.open(false, kDecompressedBytesMax);
    Json rows = Json::array();
    for (std::size_t s = 0; s < set.index.shards.size() && rows.size() < options.rows; ++s) {
        TUNE_TRY(shard, store->get(s));
        const ShardInfo& info = set.index.shards[s];
        for (std::size_t i = 0; i < shard->sample_count() && rows.size() < options.rows; ++i) {
            Result<Json> row = row_json(info, shard->sample(i), options);
            if (!row)
                return Error{row.error().code,
                             "sample " + std::to_string(i) + ": " + row.error().message,
                             "shard '" + stored_file(info).basename + "'"};
            rows.push_back(*std::move(row));
        }
    }
    return rows;
}

std::uint64_t stored_bytes(const Index& index) {
    std::uint64_t bytes = 0;
    for (const ShardInfo& shard : index.shards) bytes += stored_file(shard).bytes;
    return bytes;
}

std::string padded(std::string text, std::size_t width, bool to_the_right = false) {
    if (text.size() < width) text.insert(to_the_right ? 0 : text.size(), width - text.size(), ' ');
    return text;
}

std::string columns_text(const ShardInfo& shard) {
    std::size_t name_width = 6;
    std::size_t encoding_width = 8;
    for (std::size_t i = 0; i < shard.column_names.size(); ++i) {
        name_width = std::max(name_width, shard.column_names[i].size());
        encoding_width = std::max(encoding_width, shard.column_encodings[i].size());
    }
    std::string text = "  " + padded("column", name_width) + "  " +
                       padded("encoding", encoding_width) + "  bytes\n";
    for (std::size_t i = 0; i < shard.column_names.size(); ++i) {
        const auto& size = shard.column_sizes[i];
        text += "  " + padded(shard.column_names[i], name_width) + "  " +
                padded(shard.column_encodings[i], encoding_width) + "  " +
                (size ? grouped(*size) : "varies") + "\n";
    }
    return text;
}

std::string shards_text(const Index& index, std::size_t shards_max) {
    std::string text = "  shard                         samples       bytes  hashes\n";
    const std::size_t shown = std::min(index.shards.size(), shards_max);
    for (std::size_t i = 0; i < shown; ++i) {
        const ShardInfo& shard = index.shards[i];
        std::string hashes;
        for (const std::string& name : shard.hashes) hashes += (hashes.empty() ? "" : " ") + name;
        text += "  " + padded(stored_file(shard).basename, 28) +
                padded(grouped(shard.samples), 9, true) + "  " +
                padded(readable_bytes(stored_file(shard).bytes), 10, true) + "  " +
                (hashes.empty() ? "none" : hashes) + "\n";
    }
    if (shown < index.shards.size())
        text +=
            "  and " + grouped(static_cast<std::int64_t>(index.shards.size() - shown)) + " more\n";
    return text;
}

}  // namespace

Result<Json> inspect_json(const DataSet& set, const InspectOptions& options) {
    TUNE_TRY(rows, rows_json(set, options));
    return Json{{"directory", set.directory.string()},
                {"samples", set.index.sample_count()},
                {"bytes", stored_bytes(set.index)},
                {"columns",
                 set.index.shards.empty() ? Json::array() : columns_json(set.index.shards.front())},
                {"shards", shards_json(set.index)},
                {"rows", std::move(rows)}};
}

Result<std::string> inspect_text(const DataSet& set, const InspectOptions& options) {
    const Index& index = set.index;
    const auto shard_count = static_cast<std::int64_t>(index.shards.size());
    std::string text = set.directory.string() + ": " + grouped(index.sample_count(), "sample") +
                       " in " + grouped(shard_count, "shard") + ", " +
                       readable_bytes(stored_bytes(index)) + "\n";
    if (index.shards.empty()) return text;
    if (!index.shards.front().compression.empty())
        text += "  compression " + index.shards.front().compression + "\n";
    text += "\n" + columns_text(index.shards.front());
    text += "\n" + shards_text(index, options.shards_max);
    if (options.rows == 0) return text;
    TUNE_TRY(rows, rows_json(set, options));
    text += "\n";
    for (std::size_t i = 0; i < rows.size(); ++i)
        text += "  sample " + std::to_string(i) + ": " + to_text(rows[i]) + "\n";
    return text;
}

}  // namespace tune::loader
