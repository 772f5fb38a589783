#pragma once
// Who may talk to the server through a browser: the Host check stops DNS rebinding, the Origin
// check stops other sites' pages from sending requests that change something.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// Immutable after construction.
class HostCheck {
public:
    /// `bound_host`: the name or address that the server listens on. The lists: see ServerOptions.
    HostCheck(std::string bound_host, std::vector<std::string> allowed_hosts,
              std::vector<std::string> allowed_origins);

    /// Whether a request with this Host header, which arrived at `local_address` (text of an IP),
    /// is for this server. Loopback and private IP literals are parsed as addresses: "10.evil.com"
    /// is a name.
    [[nodiscard]] bool host_allowed(std::string_view host, std::string_view local_address) const;

    /// Whether a page of `origin` may send a state-changing request to `host`: the page came from
    /// this server, or the origin is listed. `fetch_site` is Sec-Fetch-Site, which browsers send
    /// also where they leave Origin out.
    [[nodiscard]] bool origin_allowed(std::string_view origin, std::string_view fetch_site,
                                      std::string_view host) const;

    /// The refusal of a request that breaks one of the rules above; nothing: the request is
    /// accepted. /health and /version are answered to everybody.
    [[nodiscard]] std::optional<Response> objection(const Request& request,
                                                    std::string_view local_address) const;

private:
    std::string bound_host_;
    std::vector<std::string> allowed_hosts_;
    std::vector<std::string> allowed_origins_;
};

/// Whether requests of this method may change something.
[[nodiscard]] bool changes_state(Method method);

}  // namespace tune::tracker
