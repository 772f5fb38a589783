#pragma once
// The agents of one study on an engine, kept at the number that its trials need, on a thread of its
// own. What `tune run --on` has in the place of an agent of its own.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "tuner/cli/launch/engine_choice.h"
#include "tuner/config/study_config.h"
#include "worker/launch/fleet.h"

namespace tune::cli {

/// Whose agents they are.
struct FleetPlace {
    std::string url;    ///< of the server, as we reach it
    std::string where;  ///< what stays the same when the address does not: the data folder
    std::string study;  ///< empty: of any study
};

/// What of a study the number of agents depends on.
struct FleetDemand {
    std::int64_t trials = 0;  ///< that could run now
    std::int64_t done = 0;    ///< that have ended
};

/// From the study as the API gives it.
[[nodiscard]] FleetDemand demand_of(const Json& study);

/// A token of scope agent in the name of the group, from the file that the settings name or made by
/// the server. Empty: the server asks for none.
[[nodiscard]] Result<std::string> token_for_agents(const std::string& url, const std::string& group,
                                                   const launch::AgentSettings& settings);
/// Revokes what token_for_agents made for the group.
void revoke_tokens(const std::string& url, const std::string& group);

class AgentFleet {
public:
    /// Checks everything that can be checked before a trial waits for it (launch::Engine::prepare)
    /// and makes a token. `changed` is called on the fleet's thread when view() gives something
    /// new. Errors: one sentence.
    [[nodiscard]] static Result<std::unique_ptr<AgentFleet>> open(const EngineChoice& choice,
                                                                  const FleetPlace& place,
                                                                  const tuner::StudyConfig& config,
                                                                  std::function<void()> changed);
    /// Ends the thread; agents that are left stay. Waits for a call of the engine to end.
    ~AgentFleet();
    AgentFleet(const AgentFleet&) = delete;
    AgentFleet& operator=(const AgentFleet&) = delete;

    /// Looks after them from now on. The first look knows the demand: agents of an earlier launcher
    /// are found by it, and ended where nothing is to be done.
    void start(FleetDemand demand);
    void set_demand(FleetDemand demand);
    /// Ends all agents, from then on; a second call may be more urgent.
    void stop(launch::StopKind kind);
    /// Waits until a stop is complete: no agent is left, the token is revoked. Gives up after
    /// `patience_ms` without progress. True: none is left.
    bool wait(std::int64_t patience_ms = 120'000);

    [[nodiscard]] launch::FleetView view() const;

private:
    /// Whose token is revoked at the end.
    struct TokenOwner {
        std::string url;
        std::string group;
    };
    AgentFleet(std::unique_ptr<launch::Engine> engine, launch::AgentSettings settings, int machines,
               TokenOwner owner, std::function<void()> changed);
    [[nodiscard]] std::int64_t slots_wanted(const FleetDemand& demand) const;
    void run();
    void publish(launch::FleetView view);

    launch::AgentSettings settings_;
    launch::Fleet fleet_;  // of the thread
    int machines_;         // that a trial takes
    TokenOwner owner_;
    std::function<void()> changed_;
    mutable std::mutex mutex_;
    std::condition_variable news_;
    FleetDemand demand_;                    // guarded by mutex_
    launch::FleetView view_;                // guarded by mutex_
    std::optional<launch::StopKind> stop_;  // guarded by mutex_
    bool has_demand_ = false;               // guarded by mutex_: it changed since the last look
    bool quit_ = false;                     // guarded by mutex_
    bool over_ = false;                     // guarded by mutex_
    std::thread thread_;
};

}  // namespace tune::cli
