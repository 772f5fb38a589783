#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "loader/dataset.h"

namespace tune::loader {

/// Writes batches of one set of columns as a Parquet file. Not thread-safe. Arrays become lists of
/// a fixed size (of all their elements), "list:" columns lists, text and JSON strings, everything
/// else bytes; nulls of masked columns stay nulls.
class ParquetWriter {
public:
    virtual ~ParquetWriter() = default;

    /// `columns` as of a Batch with `count` samples; one row group each call. Errors:
    /// kInternalError when the disk refuses.
    [[nodiscard]] virtual Result<void> write(const std::vector<Column>& columns,
                                             std::size_t count) = 0;
    /// The footer; the file is complete after it.
    [[nodiscard]] virtual Result<void> finish() = 0;
};

/// Replaces `path`. Errors: kNotImplemented in a build without Arrow.
[[nodiscard]] Result<std::unique_ptr<ParquetWriter>> open_parquet_writer(
    const std::filesystem::path& path, const std::vector<ColumnInfo>& columns);

}  // namespace tune::loader
