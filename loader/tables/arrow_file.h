#pragma once
// A file of a source as Arrow reads files. Only files of this folder name Arrow.

#include <arrow/io/interfaces.h>
#include <arrow/status.h>

#include <memory>

#include "base/result.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Thread-safe; keeps the source.
[[nodiscard]] std::shared_ptr<arrow::io::RandomAccessFile> make_arrow_file(
    std::shared_ptr<const ObjectSource> source, ObjectInfo object);

/// Arrow's reason in our vocabulary: damage in a file is kDataLoss; an error of the source comes
/// out as it went in.
[[nodiscard]] Error arrow_error(const arrow::Status& status);

/// `text` about the file `path` of `source`.
[[nodiscard]] Error in_file(Error error, const ObjectSource& source, const std::string& path);

}  // namespace tune::loader
