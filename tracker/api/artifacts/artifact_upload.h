#pragma once
// An upload from the network to the artifact store, piece by piece.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "tracker/api/http/http_types.h"
#include "tracker/artifacts/artifact_store.h"

namespace tune::tracker {

/// The part of a file that an upload brings: its bytes from `begin` up to `end`.
struct UploadRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

struct UploadTarget {
    /// Says where the file goes; runs on a pool thread before the first byte is written.
    std::function<Result<std::string>()> resolve_path;
    /// More bytes for a file that is there (ArtifactStore::begin_append); nothing: a whole file.
    std::optional<UploadRange> range = {};
    /// More is kInvalidParameterValue with `too_large`.
    std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
    std::string too_large = {};
    /// Whether an upload without a byte is refused with `empty`.
    std::string empty = {};
    /// Called with the path once the file is there, on a pool thread.
    std::function<void(const std::string&)> on_done = {};
};

/// A sink for Body::kStream routes. Memory: one chunk of the connection's, nothing here. All disk
/// work is done on `store`'s pool. Answers 200 with an empty body, as MLflow 3.17.2.
[[nodiscard]] std::unique_ptr<BodySink> make_upload_sink(ArtifactStore& store, UploadTarget target);

}  // namespace tune::tracker
