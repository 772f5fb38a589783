#pragma once
// MLflow's rules for values that are stored, with its sentences (mlflow/utils/validation.py and
// server/handlers.py, 3.17.2). Errors are kInvalidParameterValue.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Lengths of mlflow/utils/validation.py that only the store needs.
inline constexpr std::size_t kExperimentNameCharsMax = 500;
inline constexpr std::size_t kArtifactLocationCharsMax = 2048;
inline constexpr std::size_t kDatasetNameCharsMax = 500;
inline constexpr std::size_t kDatasetDigestCharsMax = 36;
inline constexpr std::size_t kDatasetSourceCharsMax = 65'535;
inline constexpr std::size_t kDatasetSchemaCharsMax = 1'048'575;
inline constexpr std::size_t kDatasetProfileCharsMax = 16'777'215;
inline constexpr std::size_t kInputTagKeyCharsMax = 255;
inline constexpr std::size_t kInputTagValueCharsMax = 500;
inline constexpr std::size_t kCustomViewsMax = 50;

/// "'x' exceeds the maximum length of n characters".
[[nodiscard]] Error too_long(std::string_view name, std::size_t characters_max);

/// "Missing value for required parameter 'x'."
[[nodiscard]] Error missing_value(std::string_view name);

/// Characters and path of a key; `path` is the parameter's name in the sentence.
[[nodiscard]] Result<void> validate_key(std::string_view key, const std::string& path);
/// Errors: `name`, taken for a path, is another one: "Invalid value ... for parameter 'path' ...".
[[nodiscard]] Result<void> validate_unique_path(std::string_view name, const std::string& path);

/// Refuses URIs that name a host to connect to; `field` is the parameter's name in the sentence.
[[nodiscard]] Result<void> validate_uri_names_no_host(std::string_view uri,
                                                      const std::string& field);

[[nodiscard]] Result<void> validate_run_id(std::string_view run_id);
[[nodiscard]] Result<void> validate_experiment_name(std::string_view name);
[[nodiscard]] Result<void> validate_experiment_tag(const Tag& tag);
/// Not more than kCustomViewsMax tags "mlflow.customView.view...".
[[nodiscard]] bool is_custom_view_tag(std::string_view key);
[[nodiscard]] Error too_many_custom_views(std::string_view experiment_id);
[[nodiscard]] Result<void> validate_artifact_location(std::string_view location);
/// A relative path or `file:` URI made absolute against the server's working folder, as MLflow does
/// when it stores one; every other location as it is.
[[nodiscard]] std::string absolute_location(std::string location);

/// `path` is the parameter's name in the sentence, e.g. "metrics[3]" or "" for a single metric.
[[nodiscard]] Result<void> validate_metric(const Metric& metric, const std::string& path);
/// A long value is cut when `truncate` is set, otherwise an error.
[[nodiscard]] Result<void> validate_param(Param& param, const std::string& path, bool truncate);
[[nodiscard]] Result<void> validate_tag(Tag& tag, const std::string& path, bool truncate);

/// All of a log-batch: each item, the limits on their numbers, no param twice.
[[nodiscard]] Result<void> validate_batch(const std::vector<Metric>& metrics,
                                          std::vector<Param>& params, std::vector<Tag>& tags,
                                          bool truncate);

[[nodiscard]] Result<void> validate_dataset_input(const DatasetInput& input);
/// Empty is fine: it means "generate one".
[[nodiscard]] Result<void> validate_logged_model_name(std::string_view name);

/// Infinities become +-DBL_MAX.
[[nodiscard]] double clamp_metric_value(double value);

}  // namespace tune::tracker
