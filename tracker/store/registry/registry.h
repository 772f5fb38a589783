#pragma once
// Reads of the model registry, each on one snapshot of the store. Any thread, blocking (disk):
// network threads go through Store::post_read.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/store/registry/registry_types.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// MLflow's limits of its two registry searches.
inline constexpr std::int64_t kRegisteredModelsResultsMax = 1'000;
inline constexpr std::int64_t kModelVersionsResultsMax = 200'000;

/// Ties are broken by name. Prompts are left out unless the filter asks for them by
/// tag.`mlflow.prompt.is_prompt` = 'true'.
struct SearchRegisteredModels {
    std::string filter = {};
    std::vector<std::string> order_by = {};
    std::int64_t max_results = 100;  // 1..kRegisteredModelsResultsMax
    std::string page_token = {};
    std::optional<Viewer> visible_to = {};  ///< nothing: all
};

/// Default order: last change, newest first; ties by name, then the higher version. A model with
/// one version tagged as a prompt is left out whole (as in MLflow), unless the filter asks for
/// prompts.
struct SearchModelVersions {
    std::string filter = {};
    std::vector<std::string> order_by = {};
    std::int64_t max_results = 10'000;  // 1..kModelVersionsResultsMax
    std::string page_token = {};
    std::optional<Viewer> visible_to = {};  ///< nothing: all
};

/// Errors of all: those of tracker/store/commands/registry_commands.h.
[[nodiscard]] Result<RegisteredModel> get_registered_model(const Store& store,
                                                           std::string_view name);
/// Errors: kInvalidParameterValue with MLflow's texts.
[[nodiscard]] Result<Page<RegisteredModel>> search_registered_models(
    const Store& store, const SearchRegisteredModels& query);
/// The highest version of each of `stages` (any case; none = all), in the order of stages' first
/// versions.
[[nodiscard]] Result<std::vector<ModelVersion>> get_latest_versions(
    const Store& store, std::string_view name, std::span<const std::string> stages);

[[nodiscard]] Result<ModelVersion> get_model_version(const Store& store, std::string_view name,
                                                     std::string_view version);
/// "latest" (any case) is the highest version of all stages. Errors: kInvalidParameterValue
/// "Registered model alias x not found.".
[[nodiscard]] Result<ModelVersion> get_model_version_by_alias(const Store& store,
                                                              std::string_view name,
                                                              std::string_view alias);
/// The version's storage location.
[[nodiscard]] Result<std::string> get_download_uri(const Store& store, std::string_view name,
                                                   std::string_view version);
[[nodiscard]] Result<Page<ModelVersion>> search_model_versions(const Store& store,
                                                               const SearchModelVersions& query);

}  // namespace tune::tracker
