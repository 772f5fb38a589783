#include "worker/agent/server/server_contact.h"

#include <algorithm>
#include <utility>

namespace tune::worker {

ServerContact::ServerContact(Loop& loop, std::int64_t grace_ms,
                             std::function<void(std::int64_t away_ms)> away)
    : loop_(loop), grace_ms_(grace_ms), away_(std::move(away)) {}

bool ServerContact::note(bool is_answered) {
    if (is_answered) begin();
    return is_connected_.exchange(is_answered) != is_answered;
}

void ServerContact::update() {
    loop_.cancel(timer_);
    timer_ = Loop::kNoTimer;
    if (is_connected_) return;
    const std::int64_t at = last_contact_ms_ + lease_ttl_ms_ + grace_ms_;
    timer_ = loop_.at(std::max(at, loop_.now_ms() + 1), [this] { check(); });
}

void ServerContact::check() {
    timer_ = Loop::kNoTimer;
    if (is_connected_) return;
    const std::int64_t away_ms = loop_.now_ms() - last_contact_ms_;
    if (away_ms < lease_ttl_ms_ + grace_ms_) return update();
    away_(away_ms);
}

}  // namespace tune::worker
