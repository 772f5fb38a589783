#pragma once
// Heartbeats that have arrived. They are noted before their caller waits for the lock of Studies,
// so that no lease is judged to be over whose renewal is already here.

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tuner/protocol.h"

namespace tune::tuner {

struct Renewal {
    std::string agent_id;
    AttemptId attempt;
};

/// Thread-safe. Empty again once each caller has had the lock of Studies.
class Renewals {
public:
    void add(const std::string& agent_id, const std::vector<AttemptId>& attempts) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const AttemptId& attempt : attempts) waiting_.push_back({agent_id, attempt});
    }
    [[nodiscard]] std::vector<Renewal> take() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return std::exchange(waiting_, {});
    }

private:
    std::mutex mutex_;
    std::vector<Renewal> waiting_;  // guarded by mutex_
};

}  // namespace tune::tuner
