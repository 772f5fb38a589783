#pragma once
// URIs as texts, split as Python's urllib.parse does it: what MLflow's rules for sources are
// written in.

#include <string>
#include <string_view>
#include <vector>

namespace tune::tracker {

/// Query and fragment are left out.
struct UriParts {
    std::string scheme;     // in lower case; empty: a path
    std::string authority;  // in lower case
    std::string path;       // still encoded
};
[[nodiscard]] UriParts split_uri(std::string_view uri);

/// Undoes %-encoding until nothing changes, in one pass: what a decoded character completes is
/// decoded at once. With `plus_is_space`, as in forms. Cost: O(text).
[[nodiscard]] std::string unquote_all(std::string_view text, bool plus_is_space);
/// Undoes one layer of %-encoding.
[[nodiscard]] std::string unquote_once(std::string_view text);

/// The parts between slashes that are not empty.
[[nodiscard]] std::vector<std::string> path_parts(std::string_view path);

/// path_parts without "." and with ".." undone, as far as there is something to undo.
[[nodiscard]] std::vector<std::string> resolved_parts(std::string_view path);

/// `inner` begins with all of `outer`.
[[nodiscard]] bool is_beneath(const std::vector<std::string>& inner,
                              const std::vector<std::string>& outer);

}  // namespace tune::tracker
