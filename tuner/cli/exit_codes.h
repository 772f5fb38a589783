#pragma once
// What the exit codes of options.h mean, and which verb ends with which.

#include <string>
#include <string_view>
#include <vector>

namespace tune::cli {

/// The codes besides ok, failed and usage, which every verb has.
[[nodiscard]] std::vector<int> codes_of_verb(std::string_view verb);

/// The part of the help: a line a code, or one line where there are only the three. `more`: those
/// besides ok, failed and usage.
[[nodiscard]] std::string exit_codes(const std::vector<int>& more);

}  // namespace tune::cli
