#pragma once
// The model registry as plain values: registered models, their versions, tags and aliases. Names
// and rules follow MLflow 3.17.2. A prompt is a registered model with the tag
// mlflow.prompt.is_prompt = true.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/store/types.h"

namespace tune::tracker {

/// A registered model with this tag "true" (any case) is a prompt.
inline constexpr std::string_view kIsPromptTag = "mlflow.prompt.is_prompt";
/// On the versions of a prompt: its text.
inline constexpr std::string_view kPromptTextTag = "mlflow.prompt.text";
/// On a logged model: the versions made of it, JSON [{"name", "version"}].
inline constexpr std::string_view kModelVersionsTag = "mlflow.modelVersions";

/// kDeleted is MLflow's "Deleted_Internal": the number stays taken, the rest is redacted.
enum class ModelStage { kNone = 0, kStaging = 1, kProduction = 2, kArchived = 3, kDeleted = 4 };
/// "None", "Staging", "Production", "Archived", "Deleted_Internal".
[[nodiscard]] std::string_view stage_name(ModelStage stage);
/// The stage of this name in any case. Errors: kInvalidParameterValue "Invalid Model Version stage:
/// x. Value must be one of None, Staging, Production, Archived.".
[[nodiscard]] Result<ModelStage> parse_stage(std::string_view name);

/// The numbers are MLflow's protobuf enum. Versions made here are ready at once.
enum class ModelVersionStatus { kPending = 1, kFailed = 2, kReady = 3 };
/// "PENDING_REGISTRATION", "FAILED_REGISTRATION", "READY".
[[nodiscard]] std::string_view model_version_status_name(ModelVersionStatus status);

/// Optional texts: absent and empty are two things on the wire.
struct ModelVersion {
    std::string name;
    std::int64_t version = 0;
    std::int64_t creation_time_ms = 0;
    std::int64_t last_updated_time_ms = 0;
    std::optional<std::string> description;
    std::optional<std::string> user_id;
    ModelStage stage = ModelStage::kNone;
    std::string source;
    /// Where the files lie: the artifact location of the logged model or of the version that
    /// `source` names ("models:/..."), otherwise `source`.
    std::string storage_location;
    std::optional<std::string> run_id;
    std::optional<std::string> run_link;
    ModelVersionStatus status = ModelVersionStatus::kReady;
    std::string status_message;
    std::vector<Tag> tags;  // sorted by key
    std::vector<std::string>
        aliases;  // sorted; empty in searches and latest_versions, as in MLflow
};

struct ModelAlias {
    std::string alias;
    std::int64_t version = 0;
    bool operator==(const ModelAlias&) const = default;
};

struct RegisteredModel {
    std::string name;
    std::int64_t creation_time_ms = 0;
    std::int64_t last_updated_time_ms = 0;
    std::string description;
    std::vector<ModelVersion> latest_versions;  // one a stage
    std::vector<Tag> tags;                      // sorted by key
    std::vector<ModelAlias> aliases;            // sorted by alias
};

/// True if the last tag mlflow.prompt.is_prompt of `tags` is "true" in any case.
[[nodiscard]] bool is_prompt(const std::vector<Tag>& tags);

}  // namespace tune::tracker
