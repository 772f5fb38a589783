#pragma once
// https:// through libcurl, which is loaded when it is first needed (tracker/curl).

#include <memory>

#include "base/result.h"
#include "tracker/client/client.h"
#include "tracker/client/transport.h"
#include "tracker/client/url_parts.h"

namespace tune::tracker {

/// Proxies of the environment (https_proxy, no_proxy) are used. Does not connect yet. Errors:
/// kNotImplemented without libcurl; kInvalidParameterValue when a file of `tls` cannot be read.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_curl_transport(const UrlParts& url,
                                                                     TransportOptions options,
                                                                     TlsOptions tls);

}  // namespace tune::tracker
