#pragma once
// MLflow's JSON answers as records. Numbers may come as numbers or as texts (protobuf's int64),
// what is absent is empty.

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "tracker/store/registry/registry_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// The field if it is there and of that kind; else empty. References live as long as `json`.
[[nodiscard]] std::string json_text(const Json& json, const char* name);
[[nodiscard]] std::optional<std::int64_t> json_integer(const Json& json, const char* name);
[[nodiscard]] const Json& json_object(const Json& json, const char* name);
[[nodiscard]] const Json& json_list(const Json& json, const char* name);

/// The "value" of a metric: a number, "NaN", "Infinity" or "-Infinity". Errors: kDataLoss.
[[nodiscard]] Result<double> metric_value(const Json& metric);

// Errors: kDataLoss for ids, statuses and values that cannot be understood.
[[nodiscard]] Result<Experiment> experiment_of(const Json& json);
[[nodiscard]] Result<Run> run_of(const Json& json);
[[nodiscard]] Result<LoggedModel> logged_model_of(const Json& json);
/// Without latest_versions.
[[nodiscard]] Result<RegisteredModel> registered_model_of(const Json& json);
/// Without aliases and storage_location.
[[nodiscard]] Result<ModelVersion> model_version_of(const Json& json);

}  // namespace tune::tracker
