#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::tracker::search {

/// The strings of `('a', "b",)`, read as a Python tuple (MLflow uses ast.literal_eval). Errors:
/// kInvalidParameterValue for an empty list, other kinds of values, or bad syntax.
[[nodiscard]] Result<std::vector<std::string>> parse_value_list(std::string_view text);

}  // namespace tune::tracker::search
