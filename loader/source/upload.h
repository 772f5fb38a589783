#pragma once
// Folders into object stores.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/source/open_source.h"

namespace tune::loader {

/// Writes every file beneath `folder` to `url` (what open_source reads by Arrow: s3, gs, az, ...),
/// each index.json last, so that who reads sees a data set whole or not at all. Errors: those of
/// the store, with the file's name; kNotImplemented for a URL that cannot be written to.
[[nodiscard]] Result<void> upload(const std::filesystem::path& folder, const std::string& url,
                                  const SourceOptions& options = {});

}  // namespace tune::loader
