#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// An http or https URL of a server.
struct UrlParts {
    bool is_tls = false;
    std::string host;
    std::string port;
    /// In front of every path, without a slash at its end.
    std::string prefix;
    /// The Host header: host and, unless it is the scheme's own, port.
    std::string authority;
};

/// Errors: kInvalidParameterValue for anything but http[s]://host[:port][/prefix].
[[nodiscard]] Result<UrlParts> parse_url(std::string_view url);

}  // namespace tune::tracker
