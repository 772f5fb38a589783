#pragma once
// The token of a data folder: who can read the folder's file `token` is its owner.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tune::tracker {

/// Name of the file in the data folder.
inline constexpr const char* kTokenFile = "token";

/// The token of the folder, which is there; made on the first call, 256 random bits as hex in a
/// file of mode 0600. One that others could read, or that is no token, is replaced. Errors:
/// kPermissionDenied with path and reason.
[[nodiscard]] Result<std::string> own_token(const std::filesystem::path& data);

}  // namespace tune::tracker
