#pragma once
// Long work of a server (garbage collection, backup, import), followed to its end.

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "tuner/cli/backend.h"

namespace tune::cli {

/// Starts a job by POST of `body` to `path` and waits for its end; its result. `show` is told how
/// far it is (`total` 0: unknown), about once a second, and `is_cancelled` is asked as often: then
/// the wait ends with kCancelled, and the job goes on. Errors: those of the job and of the server.
[[nodiscard]] Result<Json> run_server_job(
    Backend& backend, const char* path, const Json& body,
    const std::function<void(const std::string& phase, std::int64_t done, std::int64_t total)>&
        show,
    const std::function<bool()>& is_cancelled);

}  // namespace tune::cli
