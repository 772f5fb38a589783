#pragma once
// Requests that failed for a reason which may pass are made again.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "loader/source/open_source.h"

namespace tune::loader {

/// How an attempt failed.
struct AttemptFailure {
    Error error = {};
    /// Another attempt may succeed.
    bool may_pass = false;
    /// What the server asked for; 0: nothing.
    double retry_after_s = 0;
};

/// Calls `attempt` until it gives nothing, or a failure that will not pass, or
/// options.download_retry + 1 were made. Before attempt n + 1 it waits a random time of up to
/// 0.2 s * 2^n, at most 20 s ("full jitter": clients that failed together do not come back
/// together), or what the server asked for if that is longer. Errors: the last failure's, with the
/// number of attempts and their time; kCancelled when options.stop is set.
[[nodiscard]] Result<void> with_retries(
    const SourceOptions& options, const std::function<std::optional<AttemptFailure>()>& attempt);

}  // namespace tune::loader
