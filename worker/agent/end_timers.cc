#include "worker/agent/end_timers.h"

#include <algorithm>
#include <utility>

namespace tune::worker {

EndTimers::EndTimers(Loop& loop, std::int64_t idle_exit_ms, std::int64_t time_limit_ms,
                     EndEvents events)
    : loop_(loop),
      idle_exit_ms_(idle_exit_ms),
      limit_{.begin_ms = loop.now_ms(), .limit_ms = time_limit_ms},
      events_(std::move(events)) {}

void EndTimers::update() {
    const AgentLoad load = events_.load();
    arm_idle(load);
    arm_limit(load);
}

void EndTimers::arm_idle(const AgentLoad& load) {
    const bool is_due = load.is_idle && idle_exit_ms_ > 0 && !load.is_draining && !load.is_stopping;
    if (is_due == (idle_timer_ != Loop::kNoTimer)) return;
    loop_.cancel(idle_timer_);
    idle_timer_ = is_due ? loop_.at(loop_.now_ms() + idle_exit_ms_, events_.idle) : Loop::kNoTimer;
}

void EndTimers::arm_limit(const AgentLoad& load) {
    loop_.cancel(limit_timer_);
    limit_timer_ = Loop::kNoTimer;
    if (limit_.limit_ms <= 0 || load.is_stopping) return;
    std::int64_t at = limit_.stop_ms(load.grace_ms);
    if (!load.is_draining) at = std::min(at, limit_.last_lease_ms(load.expected_ms, load.grace_ms));
    limit_timer_ = loop_.at(std::max(at, loop_.now_ms() + 1), [this] { check_limit(); });
}

void EndTimers::check_limit() {
    const AgentLoad load = events_.load();
    const std::int64_t now = loop_.now_ms();
    if (now >= limit_.stop_ms(load.grace_ms))
        events_.limit();
    else if (!load.is_draining && now >= limit_.last_lease_ms(load.expected_ms, load.grace_ms))
        events_.last_lease();
    arm_limit(load);
}

}  // namespace tune::worker
