#pragma once

#include <cstdint>

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// What X-MLflow-Signature holds: "v1," + base64(HMAC-SHA256(secret, "<delivery>.<time>.<body>")).
/// `timestamp`: seconds since 1970 as text. Source: mlflow/webhooks/delivery.py of 3.17.2. Errors:
/// those of CurlLibrary::get.
[[nodiscard]] Result<std::string> webhook_signature(std::string_view secret,
                                                    std::string_view delivery_id,
                                                    std::string_view timestamp,
                                                    std::string_view body);

/// A UUID of version 7: later ones sort behind earlier ones, to the millisecond.
[[nodiscard]] std::string ordered_uuid(std::int64_t now_ms);
/// A UUID of version 4.
[[nodiscard]] std::string random_uuid();

}  // namespace tune::tracker
