#pragma once
// Artifacts as HTTP answers.

#include <string_view>

#include "tracker/api/http/http_types.h"
#include "tracker/artifacts/artifact_store.h"

namespace tune::tracker {

/// The type that MLflow guesses from a file's name: text-like files (also json, yaml, csv, MLmodel)
/// are text/plain; unknown ones application/octet-stream.
[[nodiscard]] std::string_view artifact_content_type(std::string_view file_name);

/// The file as a download: Content-Disposition, Last-Modified, ETag, and a policy under which a
/// browser that opens an uploaded page runs none of its scripts.
[[nodiscard]] Response file_response(OpenArtifact opened, std::string_view path);

}  // namespace tune::tracker
