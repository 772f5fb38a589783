#pragma once
// A server of MLflow (or another tune) over REST.

#include <memory>
#include <string>

#include "base/result.h"
#include "tracker/transfer/source.h"

namespace tune::tracker {

/// Asks the server at once. Errors: kTemporarilyUnavailable when it does not answer;
/// kInvalidParameterValue for an address that cannot be used (https:// without TLS in the client).
[[nodiscard]] Result<std::unique_ptr<Source>> open_remote(const std::string& url);

}  // namespace tune::tracker
