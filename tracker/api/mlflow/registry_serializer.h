#pragma once
// The model registry as MLflow 3.17.2 writes it, and the fields that its requests share.

#include <string>
#include <vector>

#include "tracker/api/http/json_writer.h"
#include "tracker/api/http/message.h"
#include "tracker/store/registry/registry.h"

namespace tune::tracker {

// Each appends one JSON object.
void write_registered_model(JsonWriter& out, const RegisteredModel& model);
void write_model_version(JsonWriter& out, const ModelVersion& version);

// Whole answers.
[[nodiscard]] std::string registered_models_response(const Page<RegisteredModel>& page);
[[nodiscard]] std::string model_versions_response(const std::vector<ModelVersion>& versions,
                                                  const std::string& next_page_token);

/// {key, value} of a list; what is missing is empty, and validated by the store.
[[nodiscard]] Result<std::vector<Tag>> registry_tags(const Message& message);

/// {key!, value} of set-tag requests.
[[nodiscard]] Result<Tag> registry_tag(const Message& message);

}  // namespace tune::tracker
