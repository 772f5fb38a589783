#pragma once
// Registry commands -> changes in the open transaction; apply.h has the rules.

#include "base/result.h"
#include "tracker/store/commands/registry_commands.h"
#include "tracker/store/writer/write_context.h"

namespace tune::tracker {

// apply_registered_models.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateRegisteredModel& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RenameRegisteredModel& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UpdateRegisteredModel& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteRegisteredModel& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SetRegisteredModelTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteRegisteredModelTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SetRegisteredModelAlias& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteRegisteredModelAlias& command);

// apply_model_versions.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateModelVersion& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UpdateModelVersion& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, TransitionModelVersionStage& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteModelVersion& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SetModelVersionTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteModelVersionTag& command);

/// Each key once, with its last value, in the order of first mention.
[[nodiscard]] std::vector<Tag> last_of_each_key(const std::vector<Tag>& tags);

/// Writes `last_updated_time_ms` of a registered model.
[[nodiscard]] Result<void> touch_registered(WriteContext& context, std::int64_t registered_row,
                                            std::int64_t now_ms);

}  // namespace tune::tracker
