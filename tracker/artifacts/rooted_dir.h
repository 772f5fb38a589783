#pragma once
// Opening, making and deleting files under a folder, with the kernel as the guard.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::tracker {

/// openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS (O_CLOEXEC added):
/// `path` is relative to `directory` and never leads out of it nor over a link. Empty with errno
/// set on failure.
[[nodiscard]] UniqueFd open_rooted(int directory, const std::string& path, int flags);

/// Whether this errno of open_rooted means that nothing of ours is there: missing, a file where a
/// folder should be, or a link.
[[nodiscard]] bool is_missing(int reason);

/// The folder at `path` under `root`, made with all that lead to it, open for reading. What was
/// made is on disk. Errors: kInvalidParameterValue if a segment is a file or a link.
[[nodiscard]] Result<UniqueFd> make_directories(int root, std::string_view path);

/// The deepest folder on the way to the file `path` under `root` that is there already. Errors:
/// kInvalidParameterValue if a segment is a file or a link, or if `path` itself is a folder.
[[nodiscard]] Result<UniqueFd> nearest_folder(int root, const std::string& path);

/// What stands before the last slash; empty without one.
[[nodiscard]] std::string parent_path(const std::string& path);

/// All names in the folder but "." and "..".
[[nodiscard]] Result<std::vector<std::string>> names_in(int directory);

/// Deletes the file, link or whole folder `name` of `directory`. A missing one is fine.
[[nodiscard]] Result<void> remove_tree(int directory, const std::string& name);

/// Renames `from` to `name` of `directory`, replacing a file of that name at once; on disk when it
/// returns. Errors: kInvalidParameterValue if a folder has the name.
[[nodiscard]] Result<void> move_into_place(int from_directory, const std::string& from,
                                           int directory, const std::string& name);

/// kInvalidParameterValue "Artifact path refers to a directory ..." (MLflow's text).
[[nodiscard]] Error is_a_directory(std::string_view path);

/// kResourceExhausted for a full disk, quota or file-size limit; kInvalidParameterValue for a name
/// that is too long; else kInternalError.
[[nodiscard]] Error disk_error(std::string_view path, int reason);

}  // namespace tune::tracker
