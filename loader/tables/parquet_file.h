#pragma once
// One Parquet file of a table: its footer, and row groups read from it.

#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/metadata.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/source/object_source.h"
#include "loader/tables/output_column.h"

namespace tune::loader {

/// Immutable after open(), thread-safe: each read has a reader of its own over the shared footer.
class ParquetFile {
public:
    /// Errors: kDataLoss for a damaged footer, naming the file.
    [[nodiscard]] static Result<std::shared_ptr<const ParquetFile>> open(
        std::shared_ptr<const ObjectSource> source, ObjectInfo object);

    [[nodiscard]] const ObjectInfo& object() const { return object_; }
    [[nodiscard]] const parquet::FileMetaData& metadata() const { return *metadata_; }
    [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
    /// First row of each row group in the file, and the number of rows.
    [[nodiscard]] std::span<const std::int64_t> group_begins() const { return group_begins_; }

    /// Number of the field that holds `column`; -1: the file has none.
    [[nodiscard]] int find_field(const TableColumn& column) const;
    /// The leaf columns beneath a field.
    [[nodiscard]] const std::vector<int>& leaves(int field) const {
        return leaves_[static_cast<std::size_t>(field)];
    }

    struct Chunk {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    /// Where the leaf columns lie in the file, those of the first row group first, exactly as
    /// read() asks for them; 0 bytes where the footer names an impossible place. Worked out anew at
    /// each call. Errors: kDataLoss naming the file.
    [[nodiscard]] Result<std::vector<Chunk>> chunks() const;
    /// The place of a leaf column of a row group among them.
    [[nodiscard]] std::size_t chunk_number(int group, int leaf) const {
        return static_cast<std::size_t>(group) *
                   static_cast<std::size_t>(metadata_->num_columns()) +
               static_cast<std::size_t>(leaf);
    }

    /// The fields of one row group, each as one array, in the order of `fields`. Those of text or
    /// bytes that are also in `codable` come as dictionaries where every page of theirs is stored
    /// so; their codes are not checked. Errors: kDataLoss naming file and row group; those of the
    /// source.
    [[nodiscard]] Result<std::vector<std::shared_ptr<arrow::Array>>> read(
        int group, const std::vector<int>& fields, const std::vector<int>& codable = {}) const;

private:
    ParquetFile() = default;
    [[nodiscard]] arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> make_reader(
        const std::vector<int>& coded_leaves) const;
    [[nodiscard]] bool is_stored_coded(int group, int field) const;
    [[nodiscard]] arrow::Status read_footer();
    [[nodiscard]] arrow::Status read_checked(
        int group, const std::vector<int>& fields, const std::vector<int>& codable,
        std::vector<std::shared_ptr<arrow::Array>>& arrays) const;

    std::shared_ptr<const ObjectSource> source_;
    ObjectInfo object_;
    std::shared_ptr<parquet::FileMetaData> metadata_;
    std::shared_ptr<arrow::Schema> schema_;
    std::vector<std::vector<int>> leaves_;
    std::vector<std::int64_t> group_begins_;
};

}  // namespace tune::loader
