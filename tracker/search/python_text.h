#pragma once
// Values as Python prints them: MLflow's sentences contain repr() of what they complain about.

#include <string>
#include <string_view>

namespace tune::tracker::search {

/// repr(str): single quotes unless the text has some and no double ones.
[[nodiscard]] std::string python_repr(std::string_view text);

}  // namespace tune::tracker::search
