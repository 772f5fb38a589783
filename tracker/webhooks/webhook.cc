// A webhook is stored as a JSON document. Reading one checks it like a request, because the
// document may come from an older version or a restored backup; one that cannot be read is
// reported, not ignored.

#include "tracker/webhooks/webhook.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text/python_text.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kNameCharsMax = 63;

constexpr EnumName kEntities[] = {
    {"REGISTERED_MODEL", 1},
    {"MODEL_VERSION", 2},
    {"MODEL_VERSION_TAG", 3},
    {"MODEL_VERSION_ALIAS", 4},
    {"PROMPT", 5},
    {"PROMPT_VERSION", 6},
    {"PROMPT_TAG", 7},
    {"PROMPT_VERSION_TAG", 8},
    {"PROMPT_ALIAS", 9},
    {"BUDGET_POLICY", 10},
    {"RUN", 100},
};
constexpr EnumName kActions[] = {
    {"CREATED", 1},    {"UPDATED", 2},  {"DELETED", 3},  {"SET", 4},       {"EXCEEDED", 5},
    {"FINISHED", 100}, {"FAILED", 101}, {"KILLED", 102}, {"ALERTED", 103},
};
constexpr EnumName kStatuses[] = {{"ACTIVE", 1}, {"DISABLED", 2}};

/// Entity -> its actions (mlflow/entities/webhook.py, VALID_ENTITY_ACTIONS, of 3.17.2; RUN: ours).
const std::map<int, std::vector<int>> kValid = {
    {1, {1}},
    {2, {1}},
    {3, {4, 3}},
    {4, {1, 3}},
    {5, {1}},
    {6, {1}},
    {7, {4, 3}},
    {8, {4, 3}},
    {9, {1, 3}},
    {10, {5}},
    {100, {1, 100, 101, 102, 103}},
};

std::string_view name_of(std::span<const EnumName> names, int number) {
    for (const EnumName& one : names)
        if (one.number == number) return one.name;
    return {};
}

int number_of(std::span<const EnumName> names, std::string_view name) {
    for (const EnumName& one : names)
        if (one.name == name) return one.number;
    throw std::invalid_argument("unknown name " + std::string(name));
}

bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Json events_json(const std::vector<WebhookEvent>& events, bool with_runs) {
    Json list = Json::array();
    for (const WebhookEvent& event : events) {
        if (!with_runs && !event.is_of_mlflow()) continue;
        list.push_back(
            {{"entity", entity_name(event.entity)}, {"action", action_name(event.action)}});
    }
    return list;
}

Webhook read_document(const Json& json) {
    Webhook webhook;
    webhook.webhook_id = json.at("webhook_id").get<std::string>();
    webhook.name = json.at("name").get<std::string>();
    webhook.description = json.value("description", "");
    webhook.url = json.at("url").get<std::string>();
    webhook.secret = json.value("secret", "");
    webhook.is_active = json.at("status").get<std::string>() == "ACTIVE";
    webhook.creation_ms = json.at("creation_timestamp").get<std::int64_t>();
    webhook.last_updated_ms = json.at("last_updated_timestamp").get<std::int64_t>();
    for (const Json& event : json.at("events"))
        webhook.events.push_back({number_of(kEntities, event.at("entity").get<std::string>()),
                                  number_of(kActions, event.at("action").get<std::string>())});
    return webhook;
}

}  // namespace

std::span<const EnumName> entity_names() {
    return kEntities;
}

std::span<const EnumName> action_names() {
    return kActions;
}

std::span<const EnumName> status_names() {
    return kStatuses;
}

std::string_view entity_name(int entity) {
    return name_of(kEntities, entity);
}

std::string_view action_name(int action) {
    return name_of(kActions, action);
}

std::string lower_name(std::string_view name) {
    std::string out(name);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

Result<void> check_event(const WebhookEvent& event) {
    const auto found = kValid.find(event.entity);
    const std::vector<int>& valid = found == kValid.end() ? std::vector<int>() : found->second;
    if (std::find(valid.begin(), valid.end(), event.action) != valid.end()) return {};
    std::vector<std::string> names;
    for (const int action : valid) names.push_back(lower_name(action_name(action)));
    std::sort(names.begin(), names.end());
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
    return Error{Code::kInvalidParameterValue,
                 "Invalid action '" + lower_name(action_name(event.action)) + "' for entity '" +
                     lower_name(entity_name(event.entity)) + "'. Valid actions are: [" + list +
                     "]"};
}

Result<void> check_webhook_name(const std::string& name) {
    const bool is_good = !name.empty() && name.size() <= kNameCharsMax &&
                         is_alphanumeric(name.front()) && is_alphanumeric(name.back()) &&
                         std::all_of(name.begin(), name.end(), [](char c) {
                             return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
                         });
    if (is_good) return {};
    return Error{Code::kInvalidParameterValue,
                 "Webhook name " + python_repr(name) +
                     " is invalid. It must start and end with a letter or digit, be less than 63 "
                     "characters long, and contain only letters, digits, dots (.), underscores "
                     "(_), and hyphens (-)."};
}

bool Webhook::wants(const WebhookEvent& event) const {
    return is_active && std::find(events.begin(), events.end(), event) != events.end();
}

bool Webhook::has_mlflow_events() const {
    return std::any_of(events.begin(), events.end(),
                       [](const WebhookEvent& event) { return event.is_of_mlflow(); });
}

void sort_events(std::vector<WebhookEvent>& events) {
    const auto key = [](const WebhookEvent& event) {
        return std::pair(entity_name(event.entity), action_name(event.action));
    };
    std::sort(events.begin(), events.end(),
              [&](const WebhookEvent& a, const WebhookEvent& b) { return key(a) < key(b); });
    events.erase(std::unique(events.begin(), events.end()), events.end());
}

std::string webhook_document(const Webhook& webhook) {
    Json json = webhook_response(webhook, true);
    if (!webhook.secret.empty()) json["secret"] = webhook.secret;
    return to_text(json);
}

Result<Webhook> webhook_from_document(std::string_view json_text) {
    TUNE_TRY(json, parse_json(json_text));
    try {
        return read_document(json);
    } catch (const std::exception& error) {
        return Error{Code::kDataLoss,
                     "the document of a webhook cannot be read: " + std::string(error.what())};
    }
}

Json webhook_response(const Webhook& webhook, bool with_runs) {
    Json json = {{"webhook_id", webhook.webhook_id},
                 {"name", webhook.name},
                 {"url", webhook.url},
                 {"events", events_json(webhook.events, with_runs)},
                 {"status", webhook.is_active ? "ACTIVE" : "DISABLED"},
                 {"creation_timestamp", webhook.creation_ms},
                 {"last_updated_timestamp", webhook.last_updated_ms}};
    if (!webhook.description.empty()) json["description"] = webhook.description;
    return json;
}

}  // namespace tune::tracker
