#pragma once
// SQLite's result codes as sentences and codes of ours.

#include <string>
#include <string_view>

#include "base/error.h"

namespace tune::tracker::sqlite {

/// The error for an (extended) SQLite result code. `path`: the database file, named in the
/// sentence. A full disk and input/output errors are kTemporarilyUnavailable, so that clients
/// retry.
[[nodiscard]] Error make_error(int sqlite_code, std::string_view sqlite_message,
                               const std::string& path, std::string_view what);

}  // namespace tune::tracker::sqlite
