#pragma once
// Where the files of a data set are written to: a folder or an object store.

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "loader/source/open_source.h"

namespace tune::loader {

/// Thread-safe.
class ObjectSink {
public:
    virtual ~ObjectSink() = default;

    /// Writes the file under `name`, in place of what was there; it appears whole. Errors: those of
    /// the store after its retries, with the name.
    [[nodiscard]] virtual Result<void> put(const std::filesystem::path& file,
                                           const std::string& name) const = 0;
};

/// `url`: a path, file://, or what open_source() reads of object stores (s3, gs, az, ...). Errors:
/// kNotImplemented for a URL that can only be read, and those of open_source().
[[nodiscard]] Result<std::shared_ptr<const ObjectSink>> open_sink(
    const std::string& url, const SourceOptions& options = {});

}  // namespace tune::loader
