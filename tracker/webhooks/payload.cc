// Payloads are signed as bytes, so their text is fixed when the delivery is written: fields in
// MLflow's order, and stored with the delivery rather than made again for a retry.

#include "tracker/webhooks/payload.h"

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text/time_text.h"
#include "tracker/store/registry/registry_types.h"

namespace tune::tracker {
namespace {

/// The order of MLflow's fields.
using Ordered = nlohmann::ordered_json;

constexpr int kRun = 100;
constexpr int kCreated = 1;

std::string text(const Ordered& fields) {
    return fields.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

Ordered tags_object(const std::vector<Tag>& tags) {
    Ordered object = Ordered::object();
    for (const Tag& tag : tags) object[tag.key] = tag.value;
    return object;
}

std::string run_data(const RunInfo& info, const std::vector<Tag>* tags) {
    Ordered fields = {{"run_id", info.run_id},
                      {"experiment_id", std::to_string(info.experiment_id)},
                      {"run_name", info.run_name},
                      {"user_id", info.user_id},
                      {"status", status_name(info.status)},
                      {"start_time", info.start_time_ms},
                      {"end_time", nullptr}};
    if (info.end_time_ms) fields["end_time"] = *info.end_time_ms;
    if (tags != nullptr) fields["tags"] = tags_object(*tags);
    return text(fields);
}

std::optional<int> action_of(RunStatus status) {
    switch (status) {
        case RunStatus::kFinished: return 100;
        case RunStatus::kFailed: return 101;
        case RunStatus::kKilled: return 102;
        case RunStatus::kRunning:
        case RunStatus::kScheduled: break;
    }
    return std::nullopt;
}

std::vector<OutgoingEvent> alerts_of(const TagsSet& set) {
    std::vector<OutgoingEvent> alerts;
    for (const Tag& tag : set.tags) {
        if (!tag.key.starts_with(kAlertTagPrefix)) continue;
        alerts.push_back({{kRun, 103}, [&set, &tag] {
                              return text({{"run_id", set.run_id},
                                           {"experiment_id", std::to_string(set.experiment_id)},
                                           {"kind", tag.key.substr(kAlertTagPrefix.size())},
                                           {"message", tag.value}});
                          }});
    }
    return alerts;
}

/// Tags by which MLflow knows prompts; its payloads leave them out.
constexpr std::string_view kPromptTypeTag = "_mlflow_prompt_type";

Ordered text_or_null(const std::string& value) {
    return value.empty() ? Ordered(nullptr) : Ordered(value);
}

/// The tags of a prompt or of its version without MLflow's own.
Ordered prompt_tags(const std::vector<Tag>& tags) {
    Ordered object = Ordered::object();
    for (const Tag& tag : tags)
        if (tag.key != kIsPromptTag && tag.key != kPromptTypeTag && tag.key != kPromptTextTag)
            object[tag.key] = tag.value;
    return object;
}

std::string version_data(const RegistryChanged& change) {
    Ordered fields = {{"name", change.name}, {"version", std::to_string(change.version)}};
    if (change.is_prompt) {
        fields["template"] = nullptr;
        for (const Tag& tag : change.tags)
            if (tag.key == kPromptTextTag) fields["template"] = tag.value;
        fields["tags"] = prompt_tags(change.tags);
    } else {
        fields["source"] = change.source;
        fields["run_id"] = text_or_null(change.run_id);
        fields["tags"] = tags_object(change.tags);
    }
    fields["description"] = text_or_null(change.description);
    return text(fields);
}

std::string registry_data(const RegistryChanged& change) {
    const bool is_set = change.action == RegistryAction::kSet;
    switch (change.entity) {
        case RegistryEntity::kModel:
            return text(
                {{"name", change.name},
                 {"tags", change.is_prompt ? prompt_tags(change.tags) : tags_object(change.tags)},
                 {"description", change.description}});
        case RegistryEntity::kVersion: return version_data(change);
        case RegistryEntity::kModelTag:
        case RegistryEntity::kVersionTag: {
            Ordered fields = {{"name", change.name}};
            if (change.entity == RegistryEntity::kVersionTag)
                fields["version"] = std::to_string(change.version);
            fields["key"] = change.key;
            if (is_set) fields["value"] = change.value;
            return text(fields);
        }
        case RegistryEntity::kAlias: {
            Ordered fields = {{"name", change.name}, {"alias", change.alias}};
            if (change.action == RegistryAction::kCreated)
                fields["version"] = std::to_string(change.version);
            return text(fields);
        }
    }
    return "{}";
}

/// MLflow's event for a change of the registry; nothing for those that MLflow does not send
/// (updates, stages, deletions of models and versions, tags of models that are no prompts).
std::optional<WebhookEvent> registry_event(const RegistryChanged& change) {
    const auto choose = [&](int model, int prompt, int action) {
        return WebhookEvent{change.is_prompt ? prompt : model, action};
    };
    const bool is_created = change.action == RegistryAction::kCreated;
    const bool is_deleted = change.action == RegistryAction::kDeleted;
    const int tag_action = is_deleted ? 3 : 4;
    switch (change.entity) {
        case RegistryEntity::kModel:
            if (is_created) return choose(1, 5, kCreated);
            break;
        case RegistryEntity::kVersion:
            if (is_created) return choose(2, 6, kCreated);
            break;
        case RegistryEntity::kModelTag:
            if (change.is_prompt) return WebhookEvent{7, tag_action};
            break;
        case RegistryEntity::kVersionTag: return choose(3, 8, tag_action);
        case RegistryEntity::kAlias: return choose(4, 9, is_deleted ? 3 : kCreated);
    }
    return std::nullopt;
}

Ordered example_fields(const WebhookEvent& event) {
    const bool is_set = event.action == 4;
    const bool is_created = event.action == kCreated;
    switch (event.entity) {
        case 1:
            return {{"name", "example_model"},
                    {"tags", {{"example_key", "example_value"}}},
                    {"description", "An example registered model"}};
        case 2:
            return {{"name", "example_model"},
                    {"version", "1"},
                    {"source", "models:/123"},
                    {"run_id", "abcd1234abcd5678"},
                    {"tags", {{"example_key", "example_value"}}},
                    {"description", "An example model version"}};
        case 3:
        case 8: {
            Ordered fields = {{"name", event.entity == 3 ? "example_model" : "example_prompt"},
                              {"version", "1"},
                              {"key", "example_key"}};
            if (is_set) fields["value"] = "example_value";
            return fields;
        }
        case 4:
        case 9: {
            Ordered fields = {{"name", event.entity == 4 ? "example_model" : "example_prompt"},
                              {"alias", "example_alias"}};
            if (is_created) fields["version"] = "1";
            return fields;
        }
        case 5:
            return {{"name", "example_prompt"},
                    {"tags", {{"example_key", "example_value"}}},
                    {"description", "An example prompt"}};
        case 6:
            return {{"name", "example_prompt"},
                    {"version", "1"},
                    {"template", "Hello {{name}}!"},
                    {"tags", {{"example_key", "example_value"}}},
                    {"description", "An example prompt version"}};
        case 7: {
            Ordered fields = {{"name", "example_prompt"}, {"key", "example_key"}};
            if (is_set) fields["value"] = "example_value";
            return fields;
        }
        default:
            return {{"budget_policy_id", "bp-abc123"}, {"budget_unit", "USD"},
                    {"budget_amount", 100.0},          {"current_spend", 105.5},
                    {"duration_unit", "MONTHS"},       {"duration_value", 1},
                    {"target_scope", "ENDPOINT"},      {"workspace", "default"},
                    {"target_value", "ep-abc123"},     {"window_start", 1704067200000}};
    }
}

}  // namespace

std::vector<OutgoingEvent> outgoing_events(const Event& event) {
    if (const auto* created = std::get_if<RunCreated>(&event))
        return {{{kRun, kCreated}, [created] { return run_data(created->info, &created->tags); }}};
    if (const auto* updated = std::get_if<RunUpdated>(&event)) {
        const std::optional<int> action = action_of(updated->info.status);
        if (!updated->status_changed || !action) return {};
        return {{{kRun, *action}, [updated] { return run_data(updated->info, nullptr); }}};
    }
    if (const auto* set = std::get_if<TagsSet>(&event)) return alerts_of(*set);
    if (const auto* change = std::get_if<RegistryChanged>(&event)) {
        const std::optional<WebhookEvent> event_type = registry_event(*change);
        if (event_type) return {{*event_type, [change] { return registry_data(*change); }}};
    }
    return {};
}

std::string delivery_body(const WebhookEvent& event, std::int64_t now_ms,
                          const std::string& data_json) {
    Ordered head = {{"entity", lower_name(entity_name(event.entity))},
                    {"action", lower_name(action_name(event.action))},
                    {"timestamp", iso_time(now_ms)}};
    std::string body = text(head);
    body.back() = ',';
    return body + "\"data\":" + data_json + "}";
}

std::string example_data(const WebhookEvent& event) {
    if (event.entity != kRun) return text(example_fields(event));
    if (event.action == 103)
        return text({{"run_id", "0123456789abcdef0123456789abcdef"},
                     {"experiment_id", "0"},
                     {"kind", "nan"},
                     {"message", "loss is NaN at step 7"}});
    RunInfo info{.run_id = "0123456789abcdef0123456789abcdef",
                 .experiment_id = 0,
                 .run_name = "example-run-1",
                 .user_id = "example",
                 .status = RunStatus::kRunning,
                 .start_time_ms = 1704067200000,
                 .end_time_ms = {},
                 .artifact_uri = "",
                 .lifecycle_stage = LifecycleStage::kActive};
    if (event.action != kCreated) {
        info.end_time_ms = 1704067260000;
        info.status = event.action == 100   ? RunStatus::kFinished
                      : event.action == 101 ? RunStatus::kFailed
                                            : RunStatus::kKilled;
    }
    return run_data(info, nullptr);
}

}  // namespace tune::tracker
