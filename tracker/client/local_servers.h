#pragma once
// The servers of this user on this machine, by their ports: how programs find the token of a server
// of which they know the address. Each server leaves a file with its data folder in a folder that
// only this user can enter: TUNE_RUNTIME_DIR, else /tmp/tune-<user id>.
//
// Within a trial (TUNE_ATTEMPT and MLFLOW_RUN_ID are set) only servers that were started within the
// same attempt are its own: what it may do elsewhere, its credential says.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace tune::tracker {

/// Says that this process serves `data` at `url`. Errors: kPermissionDenied with path and reason,
/// when the folder cannot be made or is not this user's alone.
[[nodiscard]] Result<void> announce_server(const std::string& url,
                                           const std::filesystem::path& data);

/// Takes that back, if no other process has announced itself at this port since.
void withdraw_server(const std::string& url);

/// The token in a file that only its owner can read. Errors: kPermissionDenied when others can,
/// saying what to do; those of read_file; kInvalidParameterValue for an empty one.
[[nodiscard]] Result<std::string> read_token_file(const std::filesystem::path& path);

/// The Authorization header for the server at `url`: by the variable TUNE_TOKEN, else by the file
/// that TUNE_TOKEN_FILE names (read_token_file; nothing where that fails), else by the file
/// `token` in the data folder of a server of this user that lives and listens there; else empty.
/// Reads two small files.
[[nodiscard]] std::string local_authorization(const std::string& url);

/// The data folder of the server of this user that lives and listens at `url`; nothing where there
/// is none, or it belongs to another attempt. Reads a small file.
[[nodiscard]] std::optional<std::filesystem::path> data_of_local_server(const std::string& url);

}  // namespace tune::tracker
