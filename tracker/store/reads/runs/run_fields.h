#pragma once
// Which parts of runs a reader wants, so that a search of 20,000 runs with 400 metrics need not
// read and send 8,000,000 numbers.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::tracker {

/// More than a person lists; each costs a look-up per run.
inline constexpr std::size_t kRunFieldsMax = 500;

/// Some keys of metrics, params or tags.
struct KeySelection {
    bool is_all = true;
    std::vector<std::string> names = {};
    std::vector<std::string> prefixes = {};

    [[nodiscard]] bool is_none() const { return !is_all && names.empty() && prefixes.empty(); }
    /// Cost: O(names + prefixes).
    [[nodiscard]] bool holds(std::string_view key) const;
};

/// Default: everything. A run's info is always read.
struct RunFields {
    bool inputs = true;
    bool outputs = true;
    KeySelection metrics = {};
    KeySelection params = {};
    KeySelection tags = {};
    bool model_links = true;  ///< logged models among the inputs and outputs
};

/// From names such as "info", "data", "metrics", "metrics.*", "metrics.loss", "metrics.val_*",
/// "params.lr", "tags.mlflow.runName", "inputs", "outputs". What follows the first dot is a key,
/// dots and all; no key has a '*'. No names: everything. Errors: kInvalidParameterValue for an
/// unknown name, an empty key, or more than kRunFieldsMax.
[[nodiscard]] Result<RunFields> parse_run_fields(std::span<const std::string> names);

}  // namespace tune::tracker
