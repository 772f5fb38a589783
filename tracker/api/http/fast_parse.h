#pragma once
// The two requests that training scripts send thousands of times per second, parsed by simdjson
// without building a tree.

#include <optional>
#include <string>

#include "tracker/api/http/http_types.h"
#include "tracker/store/commands/commands.h"

namespace tune::tracker {

/// Whether the request's body is tried the fast way first. It decides what a body means, so all
/// that looks into one asks this.
[[nodiscard]] bool takes_fast_way(const Request& request);

/// A runs/log-metric body in its usual form: plain field names, numbers as numbers (or the strings
/// "NaN", "Infinity", "-Infinity"). Nothing for anything else, also for invalid requests: those
/// take the slow way, which knows all forms and names each error. `body` may be given more
/// capacity.
[[nodiscard]] std::optional<LogMetric> parse_log_metric_fast(std::string& body);

/// The same for runs/log-batch.
[[nodiscard]] std::optional<LogBatch> parse_log_batch_fast(std::string& body);

}  // namespace tune::tracker
