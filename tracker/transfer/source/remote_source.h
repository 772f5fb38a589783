#pragma once
// A server of MLflow (or another tune) over REST.

#include <memory>
#include <string>

#include "base/result.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// `url`: http:// or https://; credentials and certificates as in mlflow_environment.h. Errors:
/// those of Client::create.
[[nodiscard]] Result<std::unique_ptr<Source>> open_remote(const std::string& url);

}  // namespace tune::tracker
