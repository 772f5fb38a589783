#pragma once
// Reads of the model registry on a connection: shared by the writer and the store's readers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/registry/registry.h"
#include "tracker/store/registry/registry_types.h"

namespace tune::tracker {

/// "Registered Model with name=x not found".
[[nodiscard]] Error no_registered_model(std::string_view name);

/// Checks the name first. Errors: no_registered_model.
[[nodiscard]] Result<std::int64_t> find_registered_row(sqlite::Connection& connection,
                                                       std::string_view name);

/// In which order a model's latest versions stand.
enum class LatestOrder {
    kByFirstVersion,  // stages as the model's versions came to them: get, rename, ...
    kByStageName,     // searches
};

/// Tags, aliases and the latest version of each stage.
[[nodiscard]] Result<RegisteredModel> load_registered_model(sqlite::Connection& connection,
                                                            std::int64_t registered_row,
                                                            LatestOrder order);
/// The tag of that key.
[[nodiscard]] Result<std::optional<std::string>> find_registered_tag(sqlite::Connection& connection,
                                                                     std::int64_t registered_row,
                                                                     std::string_view key);
/// The model's tag mlflow.prompt.is_prompt is "true" in any case.
[[nodiscard]] Result<bool> is_prompt_row(sqlite::Connection& connection,
                                         std::int64_t registered_row);

/// Whether the model of this name is a prompt; nothing when there is none.
[[nodiscard]] Result<std::optional<bool>> find_is_prompt(sqlite::Connection& connection,
                                                         std::string_view name);

struct VersionRow {
    std::int64_t version_row = 0;
    std::int64_t registered_row = 0;
    std::int64_t version = 0;
};

/// Checks name, then version. Errors: "Model Version (name=x, version=9) not found", also for a
/// deleted one.
[[nodiscard]] Result<VersionRow> find_version(sqlite::Connection& connection, std::string_view name,
                                              std::string_view version);

[[nodiscard]] Result<ModelVersion> load_version(sqlite::Connection& connection,
                                                std::int64_t version_row, bool with_aliases);

[[nodiscard]] Result<std::vector<ModelVersion>> latest_versions(sqlite::Connection& connection,
                                                                std::int64_t registered_row,
                                                                LatestOrder order,
                                                                bool with_aliases);
[[nodiscard]] Result<std::vector<ModelVersion>> latest_versions_of_stages(
    sqlite::Connection& connection, std::string_view name, std::span<const std::string> stages);

[[nodiscard]] Result<ModelVersion> version_by_alias(sqlite::Connection& connection,
                                                    std::string_view name, std::string_view alias);

// search_registry.cc
[[nodiscard]] Result<Page<RegisteredModel>> search_registered_models(
    sqlite::Connection& connection, const SearchRegisteredModels& query);
[[nodiscard]] Result<Page<ModelVersion>> search_model_versions(sqlite::Connection& connection,
                                                               const SearchModelVersions& query);

}  // namespace tune::tracker
