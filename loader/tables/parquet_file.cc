// The footer is parsed once and shared; each read makes a light reader over it, because Arrow's
// readers are not thread-safe. What Parquet throws ends here.

#include "loader/tables/parquet_file.h"

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/io/caching.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>

#include <algorithm>

#include "loader/tables/arrow_file.h"

namespace tune::loader {
namespace {

void collect_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
    if (field.children.empty()) leaves.push_back(field.column_index);
    for (const parquet::arrow::SchemaField& child : field.children) collect_leaves(child, leaves);
}

/// Runs `work`; what Parquet throws becomes a status.
template <class Work>
arrow::Status catching(Work work) {
    try {
        return work();
    } catch (const parquet::ParquetStatusException& error) {
        return error.status();
    } catch (const std::bad_alloc&) {
        return arrow::Status::OutOfMemory("no memory to read it");
    } catch (const std::exception& error) {
        return arrow::Status::IOError(error.what());
    }
}

}  // namespace

arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> ParquetFile::make_reader(
    const std::vector<int>& coded_leaves) const {
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(make_arrow_file(source_, object_),
                                     parquet::default_reader_properties(), metadata_));
    parquet::ArrowReaderProperties properties;
    properties.set_use_threads(false);
    for (const int leaf : coded_leaves) properties.set_read_dictionary(leaf, true);
    // Nothing between two columns is read: of a table that lies afar it would have to be fetched.
    arrow::io::CacheOptions ranges = properties.cache_options();
    ranges.hole_size_limit = 0;
    properties.set_cache_options(ranges);
    properties.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);
    builder.properties(properties);
    return builder.Build();
}

arrow::Status ParquetFile::read_footer() {
    ARROW_ASSIGN_OR_RAISE(auto reader, make_reader({}));
    metadata_ = reader->parquet_reader()->metadata();
    ARROW_RETURN_NOT_OK(reader->GetSchema(&schema_));
    for (const parquet::arrow::SchemaField& field : reader->manifest().schema_fields)
        collect_leaves(field, leaves_.emplace_back());
    group_begins_.push_back(0);
    for (int group = 0; group < metadata_->num_row_groups(); ++group) {
        const auto row_group = metadata_->RowGroup(group);
        if (row_group->num_columns() != metadata_->num_columns())
            return arrow::Status::IOError("row group ", group, " has ", row_group->num_columns(),
                                          " columns, the schema ", metadata_->num_columns());
        // Arrow checks a column's entry when it is asked for, and throws: here, where that is
        // caught, and not wherever somebody looks at one later.
        for (int leaf = 0; leaf < row_group->num_columns(); ++leaf)
            static_cast<void>(row_group->ColumnChunk(leaf));
        const std::int64_t rows = row_group->num_rows();
        if (rows < 0 || rows > std::int64_t{1} << 32)
            return arrow::Status::IOError("row group ", group, " states ", rows, " rows");
        group_begins_.push_back(group_begins_.back() + rows);
    }
    return arrow::Status::OK();
}

Result<std::vector<ParquetFile::Chunk>> ParquetFile::chunks() const {
    std::vector<Chunk> chunks;
    const auto size = static_cast<std::int64_t>(object_.bytes);
    const arrow::Status status = catching([&] {
        ARROW_ASSIGN_OR_RAISE(auto reader, make_reader({}));
        for (int group = 0; group < metadata_->num_row_groups(); ++group)
            for (int leaf = 0; leaf < metadata_->num_columns(); ++leaf) {
                ARROW_ASSIGN_OR_RAISE(const auto ranges,
                                      reader->parquet_reader()->GetReadRanges({group}, {leaf}, 0));
                const arrow::io::ReadRange range =
                    ranges.size() == 1 ? ranges.front() : arrow::io::ReadRange{0, 0};
                const bool is_possible = range.offset >= 0 && range.length > 0 &&
                                         range.offset <= size &&
                                         range.length <= size - range.offset;
                chunks.push_back(is_possible ? Chunk{static_cast<std::uint64_t>(range.offset),
                                                     static_cast<std::uint64_t>(range.length)}
                                             : Chunk{});
            }
        return arrow::Status::OK();
    });
    if (!status.ok()) return in_file(arrow_error(status), *source_, object_.path);
    return chunks;
}

Result<std::shared_ptr<const ParquetFile>> ParquetFile::open(
    std::shared_ptr<const ObjectSource> source, ObjectInfo object) {
    std::shared_ptr<ParquetFile> file(new ParquetFile());
    file->source_ = std::move(source);
    file->object_ = std::move(object);
    const arrow::Status status = catching([&] { return file->read_footer(); });
    if (!status.ok()) return in_file(arrow_error(status), *file->source_, file->object_.path);
    return std::shared_ptr<const ParquetFile>(std::move(file));
}

int ParquetFile::find_field(const TableColumn& column) const {
    if (!column.field_id) return schema_->GetFieldIndex(column.stored_name);
    const std::string wanted = std::to_string(*column.field_id);
    for (int i = 0; i < schema_->num_fields(); ++i) {
        const auto& metadata = schema_->field(i)->metadata();
        const int key = metadata ? metadata->FindKey("PARQUET:field_id") : -1;
        if (key >= 0 && metadata->value(key) == wanted) return i;
    }
    return -1;
}

/// Whether a text of the row group is always a number in the dictionary of its column.
bool ParquetFile::is_stored_coded(int group, int field) const {
    const arrow::Type::type type = schema_->field(field)->type()->id();
    if ((type != arrow::Type::STRING && type != arrow::Type::BINARY) || leaves(field).size() != 1)
        return false;
    const auto row_group = metadata_->RowGroup(group);
    const auto chunk = row_group->ColumnChunk(leaves(field).front());
    const std::vector<parquet::PageEncodingStats>& pages = chunk->encoding_stats();
    return chunk->type() == parquet::Type::BYTE_ARRAY && !pages.empty() &&
           std::ranges::all_of(pages, [](const parquet::PageEncodingStats& page) {
               return page.page_type == parquet::PageType::DICTIONARY_PAGE ||
                      page.encoding == parquet::Encoding::RLE_DICTIONARY ||
                      page.encoding == parquet::Encoding::PLAIN_DICTIONARY;
           });
}

arrow::Status ParquetFile::read_checked(int group, const std::vector<int>& fields,
                                        const std::vector<int>& codable,
                                        std::vector<std::shared_ptr<arrow::Array>>& arrays) const {
    // Each field once, in the order of the file, as the reader gives them.
    std::vector<int> ordered = fields;
    std::sort(ordered.begin(), ordered.end());
    ordered.erase(std::unique(ordered.begin(), ordered.end()), ordered.end());
    std::vector<int> leaf_columns;
    for (const int field : ordered)
        leaf_columns.insert(leaf_columns.end(), leaves(field).begin(), leaves(field).end());
    std::vector<int> coded_leaves;
    for (const int field : codable)
        if (is_stored_coded(group, field)) coded_leaves.push_back(leaves(field).front());
    ARROW_ASSIGN_OR_RAISE(auto reader, make_reader(coded_leaves));
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Table> table,
                          reader->ReadRowGroup(group, leaf_columns));
    const std::int64_t rows = group_begins_[static_cast<std::size_t>(group) + 1] -
                              group_begins_[static_cast<std::size_t>(group)];
    for (const int field : fields) {
        const auto at = std::lower_bound(ordered.begin(), ordered.end(), field) - ordered.begin();
        const std::shared_ptr<arrow::ChunkedArray>& column = table->column(static_cast<int>(at));
        if (column->length() != rows)
            return arrow::Status::IOError("column '", schema_->field(field)->name(), "' holds ",
                                          column->length(), " of ", rows, " rows");
        if (column->num_chunks() == 1) {
            arrays.push_back(column->chunk(0));
        } else if (column->num_chunks() == 0) {
            ARROW_ASSIGN_OR_RAISE(auto empty, arrow::MakeEmptyArray(column->type()));
            arrays.push_back(std::move(empty));
        } else {
            ARROW_ASSIGN_OR_RAISE(auto whole, arrow::Concatenate(column->chunks()));
            arrays.push_back(std::move(whole));
        }
        // Untrusted bytes: lengths and offsets are compared before anything points by them.
        ARROW_RETURN_NOT_OK(arrays.back()->Validate());
    }
    return arrow::Status::OK();
}

Result<std::vector<std::shared_ptr<arrow::Array>>> ParquetFile::read(
    int group, const std::vector<int>& fields, const std::vector<int>& codable) const {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    if (fields.empty()) return arrays;
    const arrow::Status status =
        catching([&] { return read_checked(group, fields, codable, arrays); });
    if (status.ok()) return arrays;
    Error error = arrow_error(status);
    error.context = "row group " + std::to_string(group);
    return in_file(std::move(error), *source_, object_.path);
}

}  // namespace tune::loader
