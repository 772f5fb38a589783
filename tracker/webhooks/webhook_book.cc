#include "tracker/webhooks/webhook_book.h"

#include <algorithm>

namespace tune::tracker {

std::optional<Webhook> WebhookBook::find(std::string_view webhook_id) const {
    const std::lock_guard lock(mutex_);
    const auto found = webhooks_.find(webhook_id);
    if (found == webhooks_.end()) return std::nullopt;
    return found->second;
}

std::vector<Webhook> WebhookBook::all() const {
    std::vector<Webhook> list;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, webhook] : webhooks_) list.push_back(webhook);
    }
    std::sort(list.begin(), list.end(), [](const Webhook& a, const Webhook& b) {
        if (a.creation_ms != b.creation_ms) return a.creation_ms > b.creation_ms;
        return a.webhook_id > b.webhook_id;
    });
    return list;
}

std::size_t WebhookBook::size() const {
    const std::lock_guard lock(mutex_);
    return webhooks_.size();
}

std::vector<std::string> WebhookBook::wanting(const WebhookEvent& event) const {
    std::vector<std::string> ids;
    if (is_empty()) return ids;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, webhook] : webhooks_)
        if (webhook.wants(event)) ids.push_back(id);
    return ids;
}

void WebhookBook::put(Webhook webhook) {
    const std::lock_guard lock(mutex_);
    std::string id = webhook.webhook_id;
    webhooks_.insert_or_assign(std::move(id), std::move(webhook));
    is_empty_.store(false, std::memory_order_release);
}

void WebhookBook::remove(std::string_view webhook_id) {
    const std::lock_guard lock(mutex_);
    if (const auto found = webhooks_.find(webhook_id); found != webhooks_.end())
        webhooks_.erase(found);
    is_empty_.store(webhooks_.empty(), std::memory_order_release);
}

}  // namespace tune::tracker
