#pragma once
// Actions of a Delta log: one JSON object a line of a commit, one row of a checkpoint.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loader/delta/deletion_vector.h"

namespace tune::loader {

struct DeltaFile {
    /// Relative to the table, percent-decoded.
    std::string path = {};
    std::uint64_t bytes = 0;
    /// By physical column name; nothing: null.
    std::map<std::string, std::optional<std::string>> partition = {};
    std::optional<DeletionVector> deletion = {};

    /// What makes it another file of the log: path and deletion vector.
    [[nodiscard]] std::string key() const;
};

struct DeltaProtocol {
    std::int64_t reader_version = 1;
    std::vector<std::string> reader_features = {};
};

struct DeltaMetadata {
    std::string id = {};
    std::string provider = "parquet";
    std::string schema = {};
    std::vector<std::string> partition_columns = {};
    std::map<std::string, std::string> configuration = {};
};

/// What is read of one action; at most one is there. Others are left out.
struct DeltaAction {
    std::optional<DeltaFile> add = {};
    std::optional<DeltaFile> remove = {};
    std::optional<DeltaProtocol> protocol = {};
    std::optional<DeltaMetadata> metadata = {};
    std::optional<std::string> sidecar = {};
    /// Milliseconds since 1970 of commitInfo: inCommitTimestamp, else timestamp.
    std::optional<std::int64_t> commit_time_ms = {};
};

/// Errors: kDataLoss naming the action and the field.
[[nodiscard]] Result<DeltaAction> parse_action(const Json& json);

/// A commit, or a checkpoint written as JSON: an action a line. Errors: as parse_action, with the
/// line.
[[nodiscard]] Result<std::vector<DeltaAction>> parse_commit(std::string_view text);

/// The path of a file of the log: relative to the table. Errors: kDataLoss for one that leads out
/// of the table, kNotImplemented for an absolute one.
[[nodiscard]] Result<std::string> file_path(std::string_view encoded);

/// Errors: kNotImplemented naming the version or the feature that this reader does not know.
[[nodiscard]] Result<void> check_protocol(const DeltaProtocol& protocol);

}  // namespace tune::loader
