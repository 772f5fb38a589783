#pragma once
// From URLs of object stores to Arrow's file systems.

#include <arrow/filesystem/filesystem.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "loader/source/open_source.h"

namespace tune::loader {

/// Where the files of a URL lie.
struct StorePlace {
    std::shared_ptr<arrow::fs::FileSystem> files;
    /// The path of the URL itself in `files`.
    std::string root;
    /// Where the same URL's errors of S3 say whether they may pass; false: other file systems.
    bool is_s3 = false;
};

/// Opens the file system of a URL. Nothing is asked of it yet, but S3 for a bucket's region when
/// neither options nor environment name one. Errors: kInvalidParameterValue for a URL that lacks
/// something, kNotImplemented for a store that this build of Arrow does not know.
[[nodiscard]] Result<StorePlace> open_store(const std::string& url, const SourceOptions& options);

/// Whether the last request of this thread to S3 failed for a reason that may pass.
[[nodiscard]] bool last_s3_failure_may_pass();

}  // namespace tune::loader
