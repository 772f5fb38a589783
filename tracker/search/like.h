#pragma once

#include <string_view>

namespace tune::tracker::search {

/// SQL's LIKE: `%` any text, `_` one character (of UTF-8), no escape, case-sensitive. Iterative;
/// cost at most O(value x pattern), which SQLite's own LIKE does not promise.
[[nodiscard]] bool is_like(std::string_view value, std::string_view pattern);

/// The same, ASCII letters of either case being equal.
[[nodiscard]] bool is_ilike(std::string_view value, std::string_view pattern);

}  // namespace tune::tracker::search
