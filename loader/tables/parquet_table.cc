// Opening reads the footers, drops row groups that statistics or partitions rule out, evaluates the
// filters on the rest, and so knows the number of rows of each shard before the first epoch. A
// shard is a row group and the rows of it that count. Decoding one is reading its columns with
// Arrow and pointing into what Arrow gives.

#include "loader/tables/parquet_table.h"

#include <arrow/array.h>

#include <algorithm>
#include <set>

#include "base/text/counted.h"
#include "loader/cache/parallel.h"
#include "loader/rows/table_decoder.h"
#include "loader/rows/time_value.h"
#include "loader/tables/arrow_file.h"
#include "loader/tables/column_block.h"
#include "loader/tables/parquet_file.h"
#include "loader/tables/row_filter.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kBlockSamplesMin = 1024;

struct GroupShard {
    std::size_t file = 0;
    int group = 0;
    RowSelection selection = {};
    std::int64_t samples = 0;
};

/// Immutable after open(); decoded by many threads.
class TableReaderState {
public:
    explicit TableReaderState(ParquetTable table) : table_(std::move(table)) {}

    [[nodiscard]] Result<void> open(const DatasetOptions& options);
    [[nodiscard]] Catalogue catalogue(const DatasetOptions& options) const;
    [[nodiscard]] Result<ShardCache::ShardPtr> load(std::size_t shard) const;
    /// Which column chunks each shard is decoded from. REQUIRES: open() before.
    [[nodiscard]] UnitNeeds needs() const;
    [[nodiscard]] CachedSource* cache() const { return table_.cache.get(); }

private:
    [[nodiscard]] Result<void> open_files();
    [[nodiscard]] Result<void> keep_chunks();
    void find_columns();
    [[nodiscard]] Result<void> plan_columns(const DatasetOptions& options);
    [[nodiscard]] Result<bool> holds_npy(const TableColumn& column) const;
    [[nodiscard]] Result<std::vector<GroupShard>> plan_file(std::size_t file) const;
    [[nodiscard]] bool may_match_group(std::size_t file, int group) const;
    [[nodiscard]] Result<std::vector<std::uint32_t>> filtered_rows(std::size_t file,
                                                                   int group) const;
    [[nodiscard]] Result<ColumnBlock> block_of(const OutputColumn& column, const TableFile& file,
                                               const std::shared_ptr<arrow::Array>& array,
                                               const RowSelection& selection) const;
    [[nodiscard]] const TableColumn& column_named(const std::string& name) const;
    [[nodiscard]] std::optional<std::string> partition_text(const TableColumn& column,
                                                            const TableFile& file) const;
    [[nodiscard]] std::uint64_t bytes_per_row() const;

    ParquetTable table_;
    std::vector<std::shared_ptr<const ParquetFile>> files_;
    std::shared_ptr<const ExtentUnits> chunks_;  // of all files, where they are kept in a cache
    std::vector<OutputColumn> columns_;
    Filters filters_;
    std::vector<GroupShard> shards_;
};

Result<void> TableReaderState::open_files() {
    files_.resize(table_.files.size());
    return for_each_parallel(table_.files.size(), [&](std::size_t i) -> Result<void> {
        TableFile& file = table_.files[i];
        if (file.object.bytes == 0) {
            TUNE_TRY(object, table_.source->stat(file.object.path));
            file.object = std::move(object);
        }
        TUNE_TRY(opened, ParquetFile::open(table_.source, file.object));
        files_[i] = std::move(opened);
        return {};
    });
}

/// The unit of a cache is a column of a row group, of every column: so trials that read other
/// columns share what they have in common, and nothing else is fetched.
Result<void> TableReaderState::keep_chunks() {
    if (!table_.cache) return {};
    std::vector<ObjectInfo> objects;
    std::vector<std::vector<ExtentUnits::Extent>> extents(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i) {
        objects.push_back(files_[i]->object());
        TUNE_TRY(chunks, files_[i]->chunks());
        for (const ParquetFile::Chunk& chunk : chunks)
            if (chunk.bytes > 0) extents[i].push_back({chunk.offset, chunk.bytes});
        std::ranges::sort(extents[i], {}, &ExtentUnits::Extent::offset);
    }
    chunks_ = std::make_shared<const ExtentUnits>(std::move(objects), std::move(extents));
    return table_.cache->keep(chunks_, chunks_->digest());
}

UnitNeeds TableReaderState::needs() const {
    std::vector<std::int64_t> samples;
    std::vector<std::uint32_t> begins = {0};
    std::vector<std::uint32_t> wanted;
    std::size_t known = files_.size();
    Result<std::vector<ParquetFile::Chunk>> chunks = std::vector<ParquetFile::Chunk>();  // of it
    for (const GroupShard& shard : shards_) {
        samples.push_back(shard.samples);
        const ParquetFile& file = *files_[shard.file];
        if (std::exchange(known, shard.file) != shard.file) chunks = file.chunks();
        for (const OutputColumn& column : columns_) {
            const int field = column.table.is_partition ? -1 : file.find_field(column.table);
            if (field < 0 || !chunks) continue;
            for (const int leaf : file.leaves(field)) {
                const ParquetFile::Chunk& chunk = (*chunks)[file.chunk_number(shard.group, leaf)];
                chunks_->add_units(file.object().path, chunk.offset, chunk.bytes, wanted);
            }
        }
        begins.push_back(static_cast<std::uint32_t>(wanted.size()));
    }
    return {samples, std::move(begins), std::move(wanted)};
}

/// The columns of the first file and of all partitions; int64 where every value of a partition is a
/// whole number, text otherwise.
void TableReaderState::find_columns() {
    if (!table_.columns.empty()) return;
    std::set<std::string> partitions;
    for (const TableFile& file : table_.files)
        for (const auto& [name, value] : file.partition) partitions.insert(name);
    for (const auto& field : files_.front()->schema()->fields())
        if (!partitions.contains(field->name()))
            table_.columns.push_back({field->name(), field->name(), {}, field->type()});
    for (const std::string& name : partitions) {
        bool is_whole = true;
        for (const TableFile& file : table_.files) {
            const auto value = file.partition.find(name);
            if (value == file.partition.end() || !value->second) continue;
            const auto number = partition_value(*arrow::int64(), *value->second);
            is_whole = is_whole && number && std::holds_alternative<std::int64_t>(*number);
        }
        table_.columns.push_back({name, name, {}, is_whole ? arrow::int64() : arrow::utf8(), true});
    }
}

/// Whether the first value of a column of bytes is a .npy or .npz file.
Result<bool> TableReaderState::holds_npy(const TableColumn& column) const {
    const bool is_bytes = column.type->id() == arrow::Type::BINARY;
    if (!table_.may_hold_npy || !is_bytes || column.is_partition) return false;
    for (const auto& file : files_) {
        const int field = file->find_field(column);
        if (field < 0 || file->metadata().num_row_groups() == 0) continue;
        TUNE_TRY(arrays, file->read(0, {field}));
        const auto* values = dynamic_cast<const arrow::BinaryArray*>(arrays.front().get());
        for (std::int64_t row = 0; values && row < values->length(); ++row) {
            if (values->IsNull(row)) continue;
            const std::string_view value = values->GetView(row);
            return value.starts_with("\x93NUMPY") || value.starts_with("PK\x03\x04");
        }
    }
    return false;
}

Result<void> TableReaderState::plan_columns(const DatasetOptions& options) {
    std::vector<std::string> names;
    for (const TableColumn& column : table_.columns) names.push_back(column.name);
    TUNE_TRY_VOID(check_names(options, names));
    for (const TableColumn& column : table_.columns) {
        if (!is_wanted(options, column.name)) continue;
        TUNE_TRY(is_npy, holds_npy(column));
        TUNE_TRY(output, output_column(column, options_of(options, column.name), is_npy));
        columns_.push_back(std::move(output));
    }
    std::sort(columns_.begin(), columns_.end(), [](const OutputColumn& a, const OutputColumn& b) {
        return a.info.name < b.info.name;
    });
    for (std::size_t i = 1; i < columns_.size(); ++i)
        if (columns_[i].info.name == columns_[i - 1].info.name)
            return data_loss("two columns are named '" + columns_[i].info.name + "'");
    return {};
}

Result<void> TableReaderState::open(const DatasetOptions& options) {
    TUNE_TRY_VOID(open_files());
    if (files_.empty()) return Error{Code::kInvalidParameterValue, "the table has no files"};
    TUNE_TRY_VOID(keep_chunks());
    find_columns();
    TUNE_TRY_VOID(plan_columns(options));
    TUNE_TRY(filters, bind_filters(options.filters, table_.columns));
    filters_ = std::move(filters);
    std::vector<std::vector<GroupShard>> planned(files_.size());
    TUNE_TRY_VOID(for_each_parallel(files_.size(), [&](std::size_t i) -> Result<void> {
        TUNE_TRY(shards, plan_file(i));
        planned[i] = std::move(shards);
        return {};
    }));
    for (std::vector<GroupShard>& shards : planned)
        shards_.insert(shards_.end(), std::make_move_iterator(shards.begin()),
                       std::make_move_iterator(shards.end()));
    return {};
}

const TableColumn& TableReaderState::column_named(const std::string& name) const {
    return *std::find_if(table_.columns.begin(), table_.columns.end(),
                         [&](const TableColumn& column) { return column.name == name; });
}

std::optional<std::string> TableReaderState::partition_text(const TableColumn& column,
                                                            const TableFile& file) const {
    const auto found = file.partition.find(column.name);
    return found == file.partition.end() ? std::nullopt : found->second;
}

bool TableReaderState::may_match_group(std::size_t i, int group) const {
    const auto metadata = files_[i]->metadata().RowGroup(group);
    return may_match_any(filters_, [&](const Filter& filter) {
        const TableColumn& column = column_named(filter.column);
        if (column.is_partition) {
            const auto text = partition_text(column, table_.files[i]);
            const auto value = text ? partition_value(*column.type, *text) : std::nullopt;
            return value ? matches(filter, *value) : filter.op == FilterOp::kNotIn;
        }
        const int field = files_[i]->find_field(column);
        if (field < 0) return filter.op == FilterOp::kNotIn;
        if (files_[i]->leaves(field).size() != 1) return true;
        const auto range = value_range(*metadata, files_[i]->leaves(field).front(), *column.type);
        if (!range || (range->may_have_nan && filter.op == FilterOp::kNotEqual)) return true;
        return may_match(filter, range->low, range->high);
    });
}

Result<std::vector<std::uint32_t>> TableReaderState::filtered_rows(std::size_t i, int group) const {
    std::map<std::string, FilterColumn> found;
    std::vector<std::string> names;
    std::vector<int> fields;
    for (const std::vector<Filter>& alternative : filters_)
        for (const Filter& filter : alternative) {
            if (found.contains(filter.column)) continue;
            const TableColumn& column = column_named(filter.column);
            FilterColumn& entry = found[filter.column];
            if (column.is_partition) {
                if (const auto text = partition_text(column, table_.files[i]))
                    entry.constant = partition_value(*column.type, *text);
                continue;
            }
            const int field = files_[i]->find_field(column);
            if (field < 0) continue;
            names.push_back(filter.column);
            fields.push_back(field);
        }
    TUNE_TRY(arrays, files_[i]->read(group, fields));
    for (std::size_t k = 0; k < names.size(); ++k) found[names[k]].array = arrays[k];
    const std::span<const std::int64_t> begins = files_[i]->group_begins();
    const auto at = static_cast<std::size_t>(group);
    return matching_rows(filters_, begins[at + 1] - begins[at],
                         [&](const std::string& name) { return found[name]; });
}

/// Takes the rows out of `rows` that the file's deletion vector names.
void drop_deleted(const std::vector<std::uint64_t>& deleted, std::int64_t begin, std::int64_t end,
                  std::vector<std::uint32_t>& rows) {
    auto next = std::lower_bound(deleted.begin(), deleted.end(), static_cast<std::uint64_t>(begin));
    const auto last = std::lower_bound(next, deleted.end(), static_cast<std::uint64_t>(end));
    std::erase_if(rows, [&](std::uint32_t row) {
        const std::uint64_t place = static_cast<std::uint64_t>(begin) + row;
        while (next != last && *next < place) ++next;
        return next != last && *next == place;
    });
}

Result<std::vector<GroupShard>> TableReaderState::plan_file(std::size_t i) const {
    std::vector<GroupShard> shards;
    const std::span<const std::int64_t> begins = files_[i]->group_begins();
    const auto& deleted = table_.files[i].deleted;
    if (deleted && !deleted->empty() &&
        deleted->back() >= static_cast<std::uint64_t>(begins.back()))
        return in_file(
            data_loss("its deletion vector names row " + std::to_string(deleted->back()) +
                      ", but the file has " + counted(begins.back(), "row")),
            *table_.source, table_.files[i].object.path);
    for (int group = 0; group + 1 < static_cast<int>(begins.size()); ++group) {
        const std::int64_t begin = begins[static_cast<std::size_t>(group)];
        const std::int64_t end = begins[static_cast<std::size_t>(group) + 1];
        if (end == begin || !may_match_group(i, group)) continue;
        GroupShard shard{i, group, {}, end - begin};
        if (!filters_.empty() || (deleted && !deleted->empty())) {
            TUNE_TRY(rows, filtered_rows(i, group));
            if (deleted) drop_deleted(*deleted, begin, end, rows);
            shard.samples = static_cast<std::int64_t>(rows.size());
            if (shard.samples < end - begin)
                shard.selection.rows =
                    std::make_shared<const std::vector<std::uint32_t>>(std::move(rows));
        }
        if (shard.samples > 0) shards.push_back(std::move(shard));
    }
    return shards;
}

std::uint64_t TableReaderState::bytes_per_row() const {
    std::uint64_t fixed = 0;
    for (const OutputColumn& column : columns_)
        fixed += column.info.fixed ? column.info.sample_bytes : 8;
    std::uint64_t variable = 0;
    std::uint64_t rows = 1;
    for (const auto& file : files_) {
        rows += static_cast<std::uint64_t>(std::max<std::int64_t>(0, file->metadata().num_rows()));
        for (int group = 0; group < file->metadata().num_row_groups(); ++group)
            for (const OutputColumn& column : columns_) {
                const int field = column.info.fixed ? -1 : file->find_field(column.table);
                if (field < 0) continue;
                for (const int leaf : file->leaves(field))
                    variable += static_cast<std::uint64_t>(
                        std::max<std::int64_t>(0, file->metadata()
                                                      .RowGroup(group)
                                                      ->ColumnChunk(leaf)
                                                      ->total_uncompressed_size()));
            }
    }
    return std::max<std::uint64_t>(fixed + variable / rows, 1);
}

Catalogue TableReaderState::catalogue(const DatasetOptions& options) const {
    Catalogue catalogue;
    catalogue.format = table_.format;
    std::string described = table_.format;
    for (const auto& file : files_) catalogue.bytes += file->object().bytes;
    for (const GroupShard& shard : shards_) {
        const ObjectInfo& object = files_[shard.file]->object();
        catalogue.shard_samples.push_back(shard.samples);
        catalogue.shard_names.push_back(object.path + (object.path.empty() ? "" : ", ") +
                                        "row group " + std::to_string(shard.group));
        described += "\n" + catalogue.shard_names.back() + " " + std::to_string(object.bytes) +
                     " " + std::to_string(shard.samples);
    }
    for (const OutputColumn& column : columns_) {
        catalogue.columns.push_back(column.info);
        described += "\n" + column.info.name + " " + column.info.encoding;
    }
    for (const std::vector<Filter>& alternative : filters_) {
        described += "\nor";
        for (const Filter& filter : alternative) described += "\n" + filter_text(filter);
    }
    catalogue.digest = digest_of(described);
    // A shuffle among fewer samples than a few row groups hold would hardly be one.
    const std::int64_t largest =
        catalogue.shard_samples.empty()
            ? 0
            : *std::max_element(catalogue.shard_samples.begin(), catalogue.shard_samples.end());
    catalogue.block_samples_max =
        std::max({kBlockSamplesMin, 2 * largest,
                  static_cast<std::int64_t>(options.decompressed_bytes_max / 2 / bytes_per_row())});
    return catalogue;
}

Result<ColumnBlock> TableReaderState::block_of(const OutputColumn& column, const TableFile& file,
                                               const std::shared_ptr<arrow::Array>& array,
                                               const RowSelection& selection) const {
    if (array) return column_block(column, array, selection);
    if (!column.table.is_partition) return constant_block(column, std::nullopt);
    const std::optional<std::string> text = partition_text(column.table, file);
    if (!text || !column.info.fixed) return constant_block(column, text);
    const auto value = partition_value(*column.table.type, *text);
    if (!value)
        return data_loss("the partition " + column.info.name + "='" + *text + "' is no " +
                         column.table.type->ToString());
    const auto* integer = std::get_if<std::int64_t>(&*value);
    const auto* flag = std::get_if<bool>(&*value);
    return constant_block(column, integer ? std::to_string(*integer)
                                  : flag  ? std::string(*flag ? "1" : "0")
                                          : *text);
}

Result<ShardCache::ShardPtr> TableReaderState::load(std::size_t number) const {
    const GroupShard& shard = shards_[number];
    const ParquetFile& file = *files_[shard.file];
    std::vector<int> fields;
    std::vector<int> codable;
    std::vector<std::size_t> places(columns_.size(), columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (columns_[c].table.is_partition) continue;
        const int field = file.find_field(columns_[c].table);
        if (field < 0) continue;
        places[c] = fields.size();
        fields.push_back(field);
        if (columns_[c].kind == ColumnKind::kBytes) codable.push_back(field);
    }
    TUNE_TRY(arrays, file.read(shard.group, fields, codable));
    std::vector<ColumnBlock> blocks;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        Result<ColumnBlock> block =
            block_of(columns_[c], table_.files[shard.file],
                     places[c] < arrays.size() ? arrays[places[c]] : nullptr, shard.selection);
        if (!block) {
            Error error = std::move(block).error();
            error.context = "row group " + std::to_string(shard.group);
            return in_file(std::move(error), *table_.source, file.object().path);
        }
        blocks.push_back(*std::move(block));
    }
    return ShardCache::ShardPtr(
        std::make_shared<const ColumnarShard>(std::move(blocks), shard.selection.rows));
}

}  // namespace

Result<RowSet> open_parquet_table(const DatasetOptions& options, ParquetTable table) {
    auto state = std::make_shared<TableReaderState>(std::move(table));
    if (Result<void> opened = state->open(options); !opened) {
        Error error = std::move(opened).error();
        // One about a column: of which table?
        const std::string place = data_place(options);
        if (error.context.empty() && error.message.find(place) == std::string::npos)
            error.context = place;
        return error;
    }
    RowSet rows;
    rows.catalogue = state->catalogue(options);
    if (rows.catalogue.shard_samples.empty())
        return Error{Code::kInvalidParameterValue, "no row of the table is left to read",
                     data_place(options)};
    decode_shards(
        options, state->cache(), [&] { return state->needs(); },
        [state](std::size_t shard) { return state->load(shard); }, rows);
    return rows;
}

}  // namespace tune::loader
