#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace tune::cli {

/// Prints the error to stderr as "tune: ..."; with `json` also {"error_code", "message"} to stdout.
/// The exit code for it: usage for kInvalidParameterValue and kResourceConflict, else failed.
[[nodiscard]] int fail(const Error& error, bool json = false);

/// Prints to stdout and flushes.
void print(const std::string& text);
void print_json(const Json& value);

}  // namespace tune::cli
