#include "tuner/study/registry/broker/broker.h"

#include <algorithm>

namespace tune::tuner {

void Broker::tick(LockedBatch& locked, std::int64_t now_ms) {
    attempts.expire(locked);
    if (agents.forget_silent(now_ms)) turns.note_obstacles();
    backfill.expire(locked);
}

std::int64_t Broker::next_ms() const {
    return std::min(
        {waiting.next_ms(), attempts.next_ms(), agents.next_forgotten_ms(), backfill.next_ms()});
}

bool Broker::names(const Study& study) const {
    return leases.names(study) || backfill.holds().count_of(study) > 0 ||
           !(agents.held_of(study) == Usage());
}

void Broker::forget(const Study& study) {
    backfill.forget(study);
    gangs.forget(study);
}

}  // namespace tune::tuner
