#pragma once
// The header lines that libcurl hands to CURLOPT_HEADERFUNCTION.

#include <optional>
#include <string_view>

#include "base/text/text.h"

namespace tune::tracker {

/// The value of "name: value", without the spaces and the line end around it; nothing for another
/// field's line. A view of `line`.
[[nodiscard]] inline std::optional<std::string_view> header_value(std::string_view line,
                                                                  std::string_view name) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !equals_ignoring_case(line.substr(0, colon), name))
        return std::nullopt;
    return trimmed(line.substr(colon + 1), " \r\n");
}

}  // namespace tune::tracker
