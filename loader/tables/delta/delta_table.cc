// A snapshot of the log becomes a list of Parquet files with partitions and deleted rows, which are
// then read like any other folder of Parquet.

#include "loader/tables/delta/delta_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "loader/cache/parallel.h"
#include "loader/cache/remote_set.h"
#include "loader/delta/deletion_vector.h"
#include "loader/delta/snapshot.h"
#include "loader/tables/arrow_file.h"
#include "loader/tables/delta/delta_schema.h"
#include "loader/tables/json_value.h"
#include "loader/tables/parquet_file.h"
#include "loader/tables/parquet_table.h"

namespace tune::loader {
namespace {

/// A deletion vector of 1 GiB would name eight thousand million rows.
constexpr std::int64_t kVectorBytesMax = std::int64_t{1} << 30;

/// Borrows a source for as long as a call lasts.
std::shared_ptr<const ObjectSource> borrowed(const ObjectSource& source) {
    return {std::shared_ptr<const ObjectSource>(), &source};
}

/// Checkpoints hold each action as a column of structs; a row of it is the same JSON as in a
/// commit.
Result<std::vector<DeltaAction>> read_checkpoint(const ObjectSource& source, std::string path) {
    TUNE_TRY(object, source.stat(path));
    TUNE_TRY(file, ParquetFile::open(borrowed(source), object));
    std::vector<std::string> names;
    std::vector<int> fields;
    for (const char* name : {"add", "remove", "metaData", "protocol", "sidecar"}) {
        const int field = file->schema()->GetFieldIndex(name);
        if (field < 0) continue;
        names.emplace_back(name);
        fields.push_back(field);
    }
    std::vector<DeltaAction> actions;
    for (int group = 0; group < file->metadata().num_row_groups(); ++group) {
        TUNE_TRY(arrays, file->read(group, fields));
        for (std::size_t k = 0; k < arrays.size(); ++k)
            for (std::int64_t row = 0; row < arrays[k]->length(); ++row) {
                if (arrays[k]->IsNull(row)) continue;
                Result<DeltaAction> action =
                    parse_action(Json{{names[k], json_value(*arrays[k], row)}});
                if (!action)
                    return Error{action.error().code,
                                 "row " + std::to_string(row) + ": " + action.error().message};
                actions.push_back(*std::move(action));
            }
    }
    return actions;
}

Result<std::vector<std::uint64_t>> read_deleted(const ObjectSource& source,
                                                const DeletionVector& vector) {
    if (vector.storage == 'i') return rows_inline(vector);
    if (vector.bytes > kVectorBytesMax) return data_loss("a deletion vector of impossible size");
    TUNE_TRY(path, deletion_file(vector));
    TUNE_TRY(object, source.stat(path));
    const BlockRange range = deletion_block(vector);
    std::vector<std::uint64_t> rows;
    if (range.offset > object.bytes || range.bytes > object.bytes - range.offset)
        return in_file(data_loss("the deletion vector lies beyond the end of its file"), source,
                       path);
    std::vector<std::byte> block(static_cast<std::size_t>(range.bytes));
    TUNE_TRY_VOID(source.read(object, range.offset, block));
    Result<std::vector<std::uint64_t>> parsed = rows_of_block(vector, block);
    if (!parsed) return in_file(std::move(parsed).error(), source, path);
    return parsed;
}

Result<TableFile> table_file(const ObjectSource& source, const DeltaFile& file,
                             const std::vector<TableColumn>& columns) {
    TableFile entry;
    Result<ObjectInfo> object = source.stat(file.path);
    if (!object) {
        Error error = std::move(object).error();
        if (error.code == Code::kResourceDoesNotExist)
            error.message += "; the table's log names it: it was removed since (vacuum)";
        return error;
    }
    entry.object = *std::move(object);
    for (const TableColumn& column : columns) {
        const auto value = file.partition.find(column.stored_name);
        if (column.is_partition && value != file.partition.end())
            entry.partition[column.name] = value->second;
    }
    if (file.deletion) {
        Result<std::vector<std::uint64_t>> rows = read_deleted(source, *file.deletion);
        if (!rows) return in_file(std::move(rows).error(), source, file.path);
        entry.deleted = std::make_shared<const std::vector<std::uint64_t>>(*std::move(rows));
    }
    return entry;
}

}  // namespace

Result<RowSet> open_delta(const DatasetOptions& options) {
    TUNE_TRY(place, open_data(options));
    const std::shared_ptr<const ObjectSource>& source = place.source;
    TUNE_TRY(snapshot, read_snapshot(*source, options.version, options.timestamp, read_checkpoint));
    ParquetTable table{.format = "delta", .source = source, .cache = place.cache};
    Result<std::vector<TableColumn>> columns =
        delta_columns(snapshot.metadata, snapshot.protocol, options.columns);
    if (!columns) return in_file(std::move(columns).error(), *source, "_delta_log");
    table.columns = *std::move(columns);
    table.files.resize(snapshot.files.size());
    TUNE_TRY_VOID(for_each_parallel(snapshot.files.size(), [&](std::size_t i) -> Result<void> {
        TUNE_TRY(entry, table_file(*source, snapshot.files[i], table.columns));
        table.files[i] = std::move(entry);
        return {};
    }));
    if (table.files.empty())
        return Error{Code::kInvalidParameterValue,
                     "version " + std::to_string(snapshot.version) + " of the table has no rows",
                     "'" + source->url() + "'"};
    return open_parquet_table(options, std::move(table));
}

}  // namespace tune::loader
