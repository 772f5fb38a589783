// inspect and verify for every format but MDS, through the reader that all formats share. It asks
// the same questions as the MDS tools: what columns, which first rows, whether every row can be
// read. Long values are cut, so that a row stays a row on a terminal.

#include "loader/tools/rows_inspect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "loader/format/mds/encoding.h"
#include "loader/tools/progress.h"
#include "loader/tools/row_reader.h"

namespace tune::loader {
namespace {

Json rows_json(const std::vector<Json>& rows) {
    Json all = Json::array();
    for (const Json& row : rows) all.push_back(row);
    return all;
}

Result<std::vector<Json>> first_rows(const RowSet& rows, const InspectOptions& options) {
    std::vector<Json> shown;
    const std::int64_t end =
        std::min(static_cast<std::int64_t>(options.rows), rows.catalogue.sample_count());
    TUNE_TRY_VOID(read_rows(rows, 0, end, kRowsAtOnce, [&](const RowBatch& batch) -> Result<void> {
        for (std::size_t i = 0; i < batch.count; ++i) {
            Json row = Json::object();
            for (const Column& column : batch.columns)
                row[column.info->name] = value_json(column, i, options.elements_max);
            shown.push_back(std::move(row));
        }
        return {};
    }));
    return shown;
}

Json columns_json(const std::vector<ColumnInfo>& columns) {
    Json all = Json::array();
    for (const ColumnInfo& column : columns)
        all.push_back({{"name", column.name},
                       {"encoding", column.encoding},
                       {"stored", column.stored.empty() ? Json(nullptr) : Json(column.stored)},
                       {"bytes", column.fixed ? Json(column.sample_bytes) : Json(nullptr)}});
    return all;
}

}  // namespace

Json value_json(const Column& column, std::size_t row, std::size_t elements_max) {
    const ColumnInfo& info = *column.info;
    if (!is_valid(column, row)) return nullptr;
    const std::span<const std::byte> payload = column.sample(row);
    Encoding encoding{EncodingKind::kNdarray, info.encoding, info.dtype};
    if (info.encoding.starts_with("list:")) {
        const auto elements = static_cast<std::int64_t>(payload.size() / dtype_bytes(info.dtype));
        if (elements == 0) return Json::array();
        encoding.shape = {elements};
    } else {
        const Result<Encoding> parsed = parse_encoding(info.encoding);
        if (!parsed) return "<" + grouped(static_cast<std::int64_t>(payload.size())) + " bytes>";
        encoding = *parsed;
    }
    const Result<Json> described = describe_payload(encoding, payload, elements_max);
    return described ? *described : Json("<" + described.error().message + ">");
}

Result<Json> inspect_rows_json(const std::string& directory, const RowSet& rows,
                               const InspectOptions& options) {
    TUNE_TRY(shown, first_rows(rows, options));
    const Catalogue& catalogue = rows.catalogue;
    Json shards = Json::array();
    for (std::size_t i = 0; i < catalogue.shard_names.size(); ++i)
        shards.push_back(
            {{"name", catalogue.shard_names[i]}, {"samples", catalogue.shard_samples[i]}});
    return Json{{"directory", directory},
                {"format", catalogue.format},
                {"samples", catalogue.sample_count()},
                {"bytes", catalogue.bytes},
                {"columns", columns_json(catalogue.columns)},
                {"shards", std::move(shards)},
                {"rows", rows_json(shown)}};
}

Result<std::string> inspect_rows_text(const std::string& directory, const RowSet& rows,
                                      const InspectOptions& options) {
    TUNE_TRY(shown, first_rows(rows, options));
    const Catalogue& catalogue = rows.catalogue;
    std::string text = directory + " (" + catalogue.format +
                       "): " + grouped(catalogue.sample_count(), "sample") + " in " +
                       grouped(static_cast<std::int64_t>(catalogue.shard_samples.size()), "shard") +
                       ", " + readable_bytes(catalogue.bytes) + "\n";
    for (const ColumnInfo& column : catalogue.columns)
        text += "  " + column.name + ": " + column.encoding +
                (column.stored.empty() ? "" : " (stored as " + column.stored + ")") + "\n";
    const std::size_t listed = std::min(catalogue.shard_names.size(), options.shards_max);
    for (std::size_t i = 0; i < listed; ++i)
        text += "  " + catalogue.shard_names[i] + ": " +
                grouped(catalogue.shard_samples[i], "sample") + "\n";
    if (listed < catalogue.shard_names.size())
        text += "  and " +
                grouped(static_cast<std::int64_t>(catalogue.shard_names.size() - listed)) +
                " more\n";
    for (std::size_t i = 0; i < shown.size(); ++i)
        text += "  sample " + std::to_string(i) + ": " + to_text(shown[i]) + "\n";
    return text;
}

VerifyReport verify_rows(const RowSet& rows) {
    Progress progress;
    VerifyReport report;
    const std::vector<std::int64_t> begins = shard_begins(rows.catalogue);
    const auto check = [](const RowBatch& batch) -> Result<void> {
        for (const Column& column : batch.columns) {
            if (column.info->fixed) continue;
            const Result<Encoding> encoding = parse_encoding(column.info->encoding);
            for (std::size_t i = 0; encoding && i < batch.count; ++i) {
                if (!is_valid(column, i)) continue;
                if (Result<void> good = check_payload(*encoding, column.sample(i)); !good)
                    return data_loss(
                        "sample " + std::to_string(batch.first_id + static_cast<std::int64_t>(i)) +
                        ", column '" + column.info->name + "': " + good.error().message);
            }
        }
        return {};
    };
    for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
        ++report.shards;
        const Result<void> read = read_rows(rows, begins[s], begins[s + 1], kRowsAtOnce, check);
        if (read)
            report.samples += begins[s + 1] - begins[s];
        else
            report.errors.push_back(rows.catalogue.shard_names[s] + ": " + read.error().text());
        if (progress.is_due())
            progress.show("verified " + grouped(report.shards) + " of " +
                          grouped(static_cast<std::int64_t>(begins.size() - 1), "shard"));
    }
    return report;
}

}  // namespace tune::loader
