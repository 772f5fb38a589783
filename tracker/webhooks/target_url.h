#pragma once
// The rules for a webhook's URL, with MLflow 3.17.2's sentences.

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// What the operator of the server allows.
struct TargetPolicy {
    bool allow_private = false;  ///< also addresses that are not public
    bool allow_http = false;     ///< also http, not only https
};

/// Longest URL of a webhook in bytes. MLflow's column has 500, but its database does not look.
inline constexpr std::size_t kUrlBytesMax = 2048;

/// The host of `url`, lower case, without brackets. Errors: kInvalidParameterValue for an empty
/// URL, another scheme, no host, or characters that do not belong into a URL. Cost: no look-up.
[[nodiscard]] Result<std::string> target_host(const std::string& url, const TargetPolicy& policy);

/// target_host, and unless the policy allows private ones, each address of the host must be public.
/// Blocks while the name is looked up: a few seconds when no name server answers. What is checked
/// here is for the user's sake; what counts is the check of the connected peer (PostClient).
/// Errors: also a host that has no address.
[[nodiscard]] Result<void> check_target(const std::string& url, const TargetPolicy& policy);

}  // namespace tune::tracker
