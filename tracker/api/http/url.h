#pragma once

#include <string>
#include <string_view>

#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// "a=1&b=x%20y" decoded, in order. A name without '=' has an empty value.
[[nodiscard]] Fields parse_query(std::string_view query);

/// The value of a `Content-Disposition: attachment` header for a file of this name: an ASCII
/// fallback and, for other names, RFC 5987's filename*.
[[nodiscard]] std::string attachment_disposition(std::string_view file_name);

}  // namespace tune::tracker
