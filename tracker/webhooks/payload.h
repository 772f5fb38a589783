#pragma once
// What a webhook receives: MLflow 3.17.2's payloads (mlflow/webhooks/types.py), and ours of runs:
//
//   RUN CREATED, FINISHED, FAILED, KILLED  {run_id, experiment_id, run_name, user_id, status,
//                                           start_time, end_time}; CREATED also {tags}
//   RUN ALERTED                            {run_id, experiment_id, kind, message}

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tracker/store/commands/events.h"
#include "tracker/webhooks/webhook.h"

namespace tune::tracker {

/// Tags with this prefix are alerts: the rest of the key is the kind, the value the message.
inline constexpr std::string_view kAlertTagPrefix = "tune.alert.";

/// One event of a webhook; `data` makes its payload when somebody wants it.
struct OutgoingEvent {
    WebhookEvent event;
    std::function<std::string()> data;
};

/// Those of a store's event; mostly none. Valid while `event` is.
[[nodiscard]] std::vector<OutgoingEvent> outgoing_events(const Event& event);

/// {"entity", "action", "timestamp", "data"}: what is sent, and signed, byte for byte.
[[nodiscard]] std::string delivery_body(const WebhookEvent& event, std::int64_t now_ms,
                                        const std::string& data_json);

/// The data that MLflow sends for a test.
[[nodiscard]] std::string example_data(const WebhookEvent& event);

}  // namespace tune::tracker
