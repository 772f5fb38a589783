#pragma once
// The server's address as the client that asks knows it: what absolute URLs in answers begin with.

#include <string>
#include <string_view>

#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// "http://host:port" + `static_prefix`, from the Host header that the request came with, or from
/// what a proxy in front says (X-Forwarded-Proto, -Host, -Prefix). Only the sender of the request
/// sees the URL, so that a forged header harms nobody else; what could not stand in a URL is
/// ignored.
[[nodiscard]] std::string base_url(const Request& request, std::string_view static_prefix);

}  // namespace tune::tracker
