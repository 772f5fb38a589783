#pragma once
// A webhook as a value: where to send, for which events, signed with what.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tracker/api/http/message.h"

namespace tune::tracker {

/// Webhooks of one server. Each costs about 1 kB of memory and one delivery an event.
inline constexpr std::size_t kWebhooksMax = 1000;
inline constexpr std::size_t kSecretBytesMax = 1000;
inline constexpr std::size_t kDescriptionBytesMax = 5000;

/// What happened to what: two of the names below. Events of runs ("RUN") are ours; MLflow has
/// none, and its clients do not know the name.
struct WebhookEvent {
    int entity = 0;  ///< number of the entity, as in MLflow's protobuf enum; RUN is 100
    int action = 0;  ///< number of the action, likewise; FINISHED, FAILED, KILLED, ALERTED from 100
    bool operator==(const WebhookEvent&) const = default;

    [[nodiscard]] bool is_of_mlflow() const { return entity < 100; }
};

/// "REGISTERED_MODEL" and so on.
[[nodiscard]] std::span<const EnumName> entity_names();
[[nodiscard]] std::span<const EnumName> action_names();
[[nodiscard]] std::span<const EnumName> status_names();

/// "REGISTERED_MODEL"; empty for an unknown number.
[[nodiscard]] std::string_view entity_name(int entity);
[[nodiscard]] std::string_view action_name(int action);
/// "registered_model", as in payloads.
[[nodiscard]] std::string lower_name(std::string_view name);

/// Errors: kInvalidParameterValue "Invalid action 'deleted' for entity 'registered_model'. Valid
/// actions are: ['created']".
[[nodiscard]] Result<void> check_event(const WebhookEvent& event);

/// Letters, digits and inner "._-", at most 63. Errors: kInvalidParameterValue, MLflow's sentence.
[[nodiscard]] Result<void> check_webhook_name(const std::string& name);

struct Webhook {
    std::string webhook_id;
    std::string name;
    std::string description = {};
    std::string url;
    std::vector<WebhookEvent> events;  ///< sorted by name, each once
    std::string secret = {};           ///< empty: not signed; never answered to anybody
    bool is_active = true;
    std::int64_t creation_ms = 0;
    std::int64_t last_updated_ms = 0;

    [[nodiscard]] bool wants(const WebhookEvent& event) const;
    [[nodiscard]] bool has_mlflow_events() const;
};

/// In the order of MLflow's answers: by entity, then action, each once.
void sort_events(std::vector<WebhookEvent>& events);

/// As stored, with the secret.
[[nodiscard]] std::string webhook_document(const Webhook& webhook);
/// Errors: kDataLoss.
[[nodiscard]] Result<Webhook> webhook_from_document(std::string_view json_text);

/// As answered: without the secret, and unless `with_runs` without events of runs.
[[nodiscard]] Json webhook_response(const Webhook& webhook, bool with_runs);

}  // namespace tune::tracker
