#pragma once
// Numbers of things in sentences.

#include <cstdint>
#include <string>
#include <string_view>

namespace tune {

/// "1 row", "2 rows", "0 rows". `many`: the plural where it is not `one` with an s ("studies").
[[nodiscard]] std::string counted(std::int64_t count, std::string_view one,
                                  std::string_view many = {});

}  // namespace tune
