#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// Folders deep that a path may be, and its bytes; far beyond what any client writes, far below
/// what the system refuses in odd ways.
inline constexpr std::size_t kArtifactDepthMax = 64;
inline constexpr std::size_t kArtifactPathBytesMax = 2048;

/// Uploads in progress may have such names; clients may not use them.
inline constexpr std::string_view kUploadPrefix = ".artifact.uploading.";

/// The folder in the root where what is not whole yet lies: emptied at the next start, except for
/// multipart uploads that can be resumed.
inline constexpr const char* kStagingFolder = ".artifact.uploading.parts";

/// The path in its normal form: segments joined by single slashes, no "." segments, no slash at
/// either end; empty for the root. `path` has been percent-decoded once; since other systems decode
/// again, it must also be harmless after every further decoding (MLflow's rule): no ".." segment,
/// not absolute (POSIX or Windows), no '#', no control characters, no file: URI. Errors:
/// kInvalidParameterValue "Invalid path" (MLflow's text).
[[nodiscard]] Result<std::string> normal_artifact_path(std::string_view path);

/// The same, and not empty nor ending in '/': the name of a file to be written.
[[nodiscard]] Result<std::string> artifact_file_path(std::string_view path);

/// `base` and `path` joined by a slash; either may be empty.
[[nodiscard]] std::string join_artifact_path(std::string_view base, std::string_view path);

/// The part after the last slash.
[[nodiscard]] std::string_view artifact_name(std::string_view path);

}  // namespace tune::tracker
