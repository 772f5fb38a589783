#pragma once
// Rows whose payloads are files, or parts of files, that are read only when a batch wants them.
// Internal to the loader.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loader/rows/row_set.h"
#include "loader/rows/row_shard.h"
#include "loader/source/mapped_file.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Where one payload lies.
struct Extent {
    /// Among FileShard::objects; kMissing: the row has none.
    std::uint32_t object = kMissing;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    static constexpr std::uint32_t kMissing = 0xffffffff;
};

/// A column of such rows: one of the three is filled.
struct FileColumn {
    ColumnInfo info = {};
    ColumnOptions options = {};
    /// Payloads as they are; or, where `info` is fixed, whole numbers as text.
    std::vector<Extent> extents = {};
    std::vector<std::string> texts = {};
    std::vector<std::int64_t> numbers = {};
};

class FileShard final : public RowShard {
public:
    std::shared_ptr<const ObjectSource> source;
    std::vector<ObjectInfo> objects;
    /// For an archive on this machine: its bytes, in place of reads.
    std::shared_ptr<const MappedFile> mapped;
    std::vector<FileColumn> columns;

    /// Nothing that could be dropped.
    [[nodiscard]] std::size_t bytes() const override { return 0; }
    void payload_sizes(std::size_t column, const RowCopies& rows,
                       std::span<std::uint64_t> sizes) const override;
    [[nodiscard]] Result<void> copy(std::size_t column, const RowCopies& rows,
                                    BatchSlot::ColumnBuffer& target) const override;

private:
    [[nodiscard]] Result<void> read(const Extent& extent, std::span<std::byte> bytes) const;
    [[nodiscard]] Result<void> copy_number(const FileColumn& column, const RowCopy& row,
                                           std::byte* target) const;
    [[nodiscard]] bool is_missing(const FileColumn& column, std::uint32_t row) const {
        return !column.extents.empty() && column.extents[row].object == Extent::kMissing;
    }
};

/// A column of bytes in files ("jpeg", "bytes", "str", ...), of texts or of int64, with its options
/// applied. Errors: those of apply_dtype.
[[nodiscard]] Result<FileColumn> file_column(const DatasetOptions& options, std::string name,
                                             std::string encoding);

/// The encoding of files with this extension (in small letters, without the dot).
[[nodiscard]] std::string encoding_of_extension(std::string_view extension);

}  // namespace tune::loader
