#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/webhooks/webhook.h"

namespace tune::tracker {

/// All webhooks of a server in memory, by id. Thread-safe. Memory: kWebhooksMax webhooks.
class WebhookBook {
public:
    [[nodiscard]] std::optional<Webhook> find(std::string_view webhook_id) const;
    /// Newest first.
    [[nodiscard]] std::vector<Webhook> all() const;
    [[nodiscard]] std::size_t size() const;
    /// Ids of the active webhooks that want the event. Cost: one pass over all webhooks; nothing
    /// while there are none.
    [[nodiscard]] std::vector<std::string> wanting(const WebhookEvent& event) const;
    [[nodiscard]] bool is_empty() const { return is_empty_.load(std::memory_order_acquire); }

    void put(Webhook webhook);
    void remove(std::string_view webhook_id);

private:
    mutable std::mutex mutex_;
    std::map<std::string, Webhook, std::less<>> webhooks_;  // guarded by mutex_
    std::atomic<bool> is_empty_{true};
};

}  // namespace tune::tracker
