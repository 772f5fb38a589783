#pragma once
// Changes of the model registry. Versions travel as text, as on the wire: what is not an integer is
// kInvalidParameterValue "Parameter 'version' must be an integer, got 'x'.", checked after the
// name as in MLflow.
//
// Errors common to them: kResourceDoesNotExist "Registered Model with name=x not found" and "Model
// Version (name=x, version=9) not found", also for a deleted version; kInvalidParameterValue for a
// name that is blank, holds '/' or ':' or is a path to another name.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tracker/store/registry/registry_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Outcome: RegisteredModel. Errors: kResourceAlreadyExists "Registered Model (name=x) already
/// exists.", or a sentence of its own when one of both is a prompt. Of several tags with one key
/// the last wins.
struct CreateRegisteredModel {
    std::string name;
    std::vector<Tag> tags = {};
    std::string description = {};
    std::int64_t owner_id = 0;  ///< the user who will manage it; 0: nobody in particular
};

/// Outcome: RegisteredModel. Takes all versions (deleted ones too), tags and aliases along.
struct RenameRegisteredModel {
    std::string name;
    std::string new_name;
};

/// Outcome: RegisteredModel.
struct UpdateRegisteredModel {
    std::string name;
    std::string description = {};
};

/// With its versions, tags and aliases, for good; the numbers of a later model of that name begin
/// at 1 again.
struct DeleteRegisteredModel {
    std::string name;
};

/// Creates or overwrites.
struct SetRegisteredModelTag {
    std::string name;
    Tag tag;
};

/// Fine when the model has no such tag.
struct DeleteRegisteredModelTag {
    std::string name;
    std::string key;
};

/// Creates or moves. Errors: kInvalidParameterValue for "latest", "v1" and characters that are not
/// of words.
struct SetRegisteredModelAlias {
    std::string name;
    std::string alias;
    std::string version;
};

/// Fine when there is no such alias.
struct DeleteRegisteredModelAlias {
    std::string name;
    std::string alias;
};

/// Outcome: ModelVersion, READY, with the next number. `source` obeys the rules in
/// model_source.h; whoever names a logged model (model_id) gets the version noted in its tag
/// mlflow.modelVersions. Absent ids are inherited from the version or logged model that `source`
/// names.
struct CreateModelVersion {
    std::string name;
    std::string source;
    std::optional<std::string> run_id = {};
    std::optional<std::string> model_id = {};
    std::vector<Tag> tags = {};
    std::string run_link = {};
    std::string description = {};
};

/// Outcome: ModelVersion. No description: it has none afterwards.
struct UpdateModelVersion {
    std::string name;
    std::string version;
    std::optional<std::string> description = {};
};

/// Outcome: ModelVersion. `archive_existing_versions` moves the others of that stage to Archived;
/// legal for Staging and Production only.
struct TransitionModelVersionStage {
    std::string name;
    std::string version;
    std::string stage;
    bool archive_existing_versions = false;
};

/// The number stays taken; source, run and description are redacted, aliases to it vanish.
struct DeleteModelVersion {
    std::string name;
    std::string version;
};

/// Creates or overwrites.
struct SetModelVersionTag {
    std::string name;
    std::string version;
    Tag tag;
};

/// Fine when the version has no such tag.
struct DeleteModelVersionTag {
    std::string name;
    std::string version;
    std::string key;
};

using RegistryCommandVariant =
    std::variant<CreateRegisteredModel, RenameRegisteredModel, UpdateRegisteredModel,
                 DeleteRegisteredModel, SetRegisteredModelTag, DeleteRegisteredModelTag,
                 SetRegisteredModelAlias, DeleteRegisteredModelAlias, CreateModelVersion,
                 UpdateModelVersion, TransitionModelVersionStage, DeleteModelVersion,
                 SetModelVersionTag, DeleteModelVersionTag>;

/// One change of the registry. Converts implicitly from each struct above.
struct RegistryCommand : RegistryCommandVariant {
    using RegistryCommandVariant::RegistryCommandVariant;
    RegistryCommand();
    RegistryCommand(const RegistryCommand&);
    RegistryCommand(RegistryCommand&&) noexcept;
    RegistryCommand& operator=(const RegistryCommand&);
    RegistryCommand& operator=(RegistryCommand&&) noexcept;
    ~RegistryCommand();
};

}  // namespace tune::tracker
