#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// An http URL of a server.
struct UrlParts {
    std::string host;
    std::string port;
    /// In front of every path, without a slash at its end.
    std::string prefix;
    /// The Host header: host and, unless it is 80, port.
    std::string authority;
};

/// Errors: kInvalidParameterValue for anything but http://host[:port][/prefix].
[[nodiscard]] Result<UrlParts> parse_url(std::string_view url);

}  // namespace tune::tracker
