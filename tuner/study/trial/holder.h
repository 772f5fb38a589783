#pragma once
// Who runs an attempt: a client that asked over REST, an agent, or several agents together.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/protocol.h"
#include "tuner/study/placement/room.h"

namespace tune::tuner {

/// When a lease ends that is not in its holder's hands yet; monotonic.
inline constexpr std::int64_t kNotHandedOut_ms = std::numeric_limits<std::int64_t>::max();

/// One agent's part of a running attempt. It has the attempt's token like the others; what they do
/// ends when all their parts have ended.
struct Member {
    std::string agent_id = {};
    std::string host = {};
    std::string request_id = {};  ///< of the lease that began it
    Part part = {};
    GangNode node = {};               ///< several members: where its processes can be reached
    std::int64_t expires_ms = 0;      ///< monotonic clock
    bool is_directed = false;         ///< the attempt's directives stood in a reply to it
    bool is_ending = false;           ///< its end was reported and waits for metrics before it
    bool has_ended = false;           ///< its processes are gone
    std::string finish_request = {};  ///< request_id of the finish that said so
};

/// Who holds the running attempt, and until when.
struct Holder {
    std::string agent_id = {};    ///< of the first member; empty: a client that asked over REST
    std::string request_id = {};  ///< of the lease or ask that started the attempt
    std::int64_t ttl_ms = 0;      ///< 0: the lease has no end
    std::int64_t expires_ms = 0;  ///< monotonic clock; of an attempt without members
    /// SHA-256 of the attempt's credential in hex digits; empty: it has none.
    std::string credential_hash = {};
    std::vector<Member> members = {};  ///< none: a client; the first one has rank 0
    /// Several members: what those that have ended say together.
    std::optional<FinishRequest> verdict = {};

    [[nodiscard]] bool is_gang() const { return members.size() > 1; }
    /// Of the members that have not ended; nullptr: none.
    [[nodiscard]] Member* find_running(const std::string& id);
    [[nodiscard]] const Member* find_running(const std::string& id) const;
    [[nodiscard]] bool has_running() const;
    /// When the first lease ends that still counts; nothing: none does.
    [[nodiscard]] std::optional<std::int64_t> first_expiry_ms() const;
};

/// Takes a member's end into what the attempt's end will be. What explains the others' ends counts:
/// a lost machine before a preemption, both before faults of the program, the first of equals.
void add_verdict(Holder& holder, const Member& member, FinishRequest finish);

/// As it stands in a trial's document, and back. Errors of the second: Json::exception.
[[nodiscard]] Json holder_to_json(const Holder& holder);
[[nodiscard]] Holder holder_from_json(const Json& json);

}  // namespace tune::tuner
