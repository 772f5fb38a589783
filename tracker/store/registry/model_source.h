#pragma once
// What a model version may be made of: MLflow 3.17.2's rules for the source of
// model-versions/create (server/handlers.py). They keep a client from registering, and then
// reading, what it has no claim to:
//
//   runs:/<run>/path            run_id is <run>
//   models:/<model id>          model_id is <model id>
//   models:/<name>/<version>    also @alias, /stage, /latest; ids, when given, are the version's
//   mlflow-artifacts:/...       under the artifacts of the run or logged model that is named
//   a local path, file:/...     the same, validated by its text: the file system is not asked
//   s3://, gs://, ...           anywhere
//   schemes that name a host    never
//   prompts                     "dummy-source" or "prompt-template", nothing else

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/commands/registry_commands.h"

namespace tune::tracker {

/// A source that was found good, and what follows from it.
struct ModelSource {
    std::string source;  // as stored: models:/<name>/<version> of an alias or stage
    std::optional<std::string> run_id;
    std::optional<std::string> model_id;
};

/// Checks the source of `command` on the writer's connection. Errors: kInvalidParameterValue;
/// kResourceDoesNotExist for a registered model or version that is not there.
[[nodiscard]] Result<ModelSource> validate_model_source(sqlite::Connection& connection,
                                                        const CreateModelVersion& command);

struct ModelUri {
    std::string model_id;  // models:/<model id>, else empty
    std::string name;
    std::string version;
    std::string stage;
    std::string alias;
};
/// The parts of "models:/..."; nothing when it is not one.
[[nodiscard]] std::optional<ModelUri> parse_model_uri(std::string_view uri);

}  // namespace tune::tracker
