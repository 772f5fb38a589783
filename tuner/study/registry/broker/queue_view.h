#pragma once
// What runs where, and why the rest waits: for `tune top` and GET tune/queue.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/study/placement/room.h"
#include "tuner/study/placement/usage.h"
#include "tuner/study/registry/scheduling/quotas.h"

namespace tune::tuner {

/// A running attempt on one agent.
struct LeaseView {
    std::string study = {};
    std::uint64_t number = 0;
    int attempt = 0;
    std::string run_id = {};
    Part part = {};
    int node = 0;   ///< which of its machines this is, from 0
    int nodes = 1;  ///< its machines
    bool is_ending = false;
    std::optional<std::int64_t> expires_in_ms = {};  ///< nothing: it has not been handed out yet
};

struct AgentView {
    std::string agent_id = {};
    std::string host = {};
    std::string version = {};
    std::int64_t silent_ms = 0;
    Room room = {};
    std::vector<GpuFacts> gpus = {};         ///< as the agent described them
    std::vector<std::string> excluded = {};  ///< RegisterRequest::excluded
    bool is_waiting = false;                 ///< for a trial, in a long-poll
    std::string held_for = {};               ///< the study for whose trial it is kept
    std::vector<LeaseView> leases = {};
};

/// A study that is not over.
struct QueuedStudyView {
    std::string study = {};
    std::size_t queued = 0;  ///< trials that wait to be run, those that nobody asked for not
    std::size_t running = 0;
    TrialNeeds needs = {};
    std::string user = {};
    int priority = 0;  ///< as it counts
    double share = 0;  ///< dominant share of what all agents have, 0..1
    Usage held = {};
    /// Why it starts no trial now, as a sentence without a full stop; empty: it does.
    std::string waits_for = {};
};

/// A user who has a study that is not over, or a quota.
struct UserView {
    std::string user = {};
    double share = 0;
    Usage held = {};
    std::optional<Quota> quota = {};  ///< the user's own
};

struct QueueView {
    std::vector<AgentView> agents = {};  ///< by id
    std::vector<QueuedStudyView> studies = {};
    std::vector<UserView> users = {};  ///< by name; "*" stands for whoever has no quota of his own
    std::size_t agents_left_out = 0;
};

}  // namespace tune::tuner
