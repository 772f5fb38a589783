#pragma once
// Names of the files in _delta_log, and which of them make up a version of the table.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// The files from which a version is built.
struct LogSegment {
    std::int64_t version = 0;
    /// Files of one checkpoint (names within _delta_log); none: from the first commit on.
    std::vector<std::string> checkpoint = {};
    /// Versions of the commits after it, ascending.
    std::vector<std::int64_t> commits = {};
};

/// "00000000000000000007.json".
[[nodiscard]] std::string commit_name(std::int64_t version);

/// The version of a commit's name; nothing for another file.
[[nodiscard]] std::optional<std::int64_t> commit_version(std::string_view name);

/// Takes the newest complete checkpoint up to `version` (nothing: the newest version) and the
/// commits after it; checkpoints with a part missing are passed over. Errors: kResourceDoesNotExist
/// when there is no such version, or its commits are gone; kDataLoss for a gap.
[[nodiscard]] Result<LogSegment> choose_segment(const std::vector<std::string>& names,
                                                std::optional<std::int64_t> version);

}  // namespace tune::loader
