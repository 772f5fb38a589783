#pragma once
// Whether the server answers this agent, and when it has been away for so long that it must have
// given the agent's trials to others.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "tuner/protocol.h"
#include "worker/agent/loop.h"

namespace tune::worker {

class ServerContact {
public:
    /// The loop outlives it. `grace_ms`: beyond a lease's time to live. `away` is called on the
    /// loop with the time since the last answer, once an absence.
    ServerContact(Loop& loop, std::int64_t grace_ms,
                  std::function<void(std::int64_t away_ms)> away);

    // From any thread:
    /// A call was answered or has failed. Whether it was otherwise before.
    bool note(bool is_answered);
    void set_lease_ttl(std::int64_t ttl_ms) { lease_ttl_ms_ = ttl_ms; }
    [[nodiscard]] bool is_connected() const { return is_connected_; }
    /// An absence that nobody has noted yet counts from now on.
    void begin() { last_contact_ms_ = loop_.now_ms(); }

    /// On the loop, after each change.
    void update();

private:
    void check();

    Loop& loop_;
    const std::int64_t grace_ms_;
    const std::function<void(std::int64_t away_ms)> away_;
    Loop::TimerId timer_ = Loop::kNoTimer;          // of the loop
    std::atomic<std::int64_t> last_contact_ms_{0};  // of Loop::now_ms
    std::atomic<std::int64_t> lease_ttl_ms_{tuner::kLeaseTtl_ms};
    std::atomic<bool> is_connected_{false};
};

}  // namespace tune::worker
