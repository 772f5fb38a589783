#pragma once
// One line of JSONL: an object whose members become columns.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

enum class JsonKind { kNull, kBoolean, kNumber, kText, kNested };

struct JsonMember {
    std::string_view name;
    JsonKind kind = JsonKind::kNull;
    /// Text without its quotes and escapes; numbers, booleans and nested values as they stand.
    std::string_view text;
};

/// Takes the members of the object in `line` (Python's NaN and Infinity are numbers). Views point
/// into `line`, or into `unescaped` where a text held escapes. Errors: kDataLoss with the column of
/// the line.
[[nodiscard]] Result<void> parse_json_row(std::string_view line, std::vector<JsonMember>& members,
                                          std::deque<std::string>& unescaped);

}  // namespace tune::loader
