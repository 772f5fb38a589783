#pragma once
// The one contract between `tune` and whatever starts its agents elsewhere: Slurm, hosts behind
// ssh, Kubernetes, a site's own script. An engine starts, places and ends agents; agents pull
// trials. What runs and what waits is asked of the engine each time and kept nowhere else, so that
// a launcher that was killed finds all of it again.
//
// Threads: an engine is used by one thread at a time. Its calls wait for programs and networks.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worker/launch/settings.h"

namespace tune::tuner {
class Fields;
class OptionTable;
}  // namespace tune::tuner

namespace tune::launch {

/// What is launched: agents that belong together, and the server that they work for.
struct Launch {
    /// Names them at the engine, e.g. "tune-resnet-1f09a3c2". Empty: all of this user, to list or
    /// to stop them.
    std::string group = {};
    std::string study = {};       ///< shown beside them; empty: agents for any study
    std::string server_url = {};  ///< as this machine reaches it
    std::string token = {};       ///< of scope agent; empty: the server needs none
    AgentSettings agents = {};
    /// The launcher lives as long as the agents are needed; false: it starts them and ends.
    bool stays = true;
};

/// What the engine starts and ends as one: an agent, or the agents of a gang.
struct AgentJob {
    enum class State {
        kPending,  ///< waits at the engine
        kRunning,
        kEnded,   ///< by itself, by us, or taken by the engine
        kFailed,  ///< the agent could not start or gave up
    };
    std::string id = {};  ///< the engine's
    std::string group = {};
    std::string study = {};
    State state = State::kPending;
    std::string host = {};
    std::string reason = {};       ///< why it waits or how it ended, for people
    std::string incarnation = {};  ///< tells two jobs of the same id apart; may be empty
    int agents = 1;
    bool is_unreachable = false;  ///< pending: the engine cannot say what is there
};

[[nodiscard]] std::string_view state_name(AgentJob::State state);

/// How agents are ended.
enum class StopKind {
    kDrain,  ///< SIGINT: no more trials are taken, those that run end; what waits is cancelled
    kStop,   ///< SIGTERM: running trials stop at their checkpoint and are run again elsewhere
    kKill,   ///< at once
};

class Engine {
public:
    virtual ~Engine() = default;

    /// Refuses at once what would fail or wait for ever: programs that are missing, a version that
    /// is not supported, a partition, host or queue that does not exist, a gang larger than the
    /// engine, a server that its hosts cannot reach. Starts nothing, but may open tunnels and copy
    /// files. Errors: one sentence with what was wrong and what to do.
    [[nodiscard]] virtual Result<void> prepare() = 0;

    /// Asks for `count` more: agents, or gangs of as many as the setting `nodes` says. Errors: the
    /// engine's own words.
    [[nodiscard]] virtual Result<void> start(int count) = 0;

    /// Whether start() counts agents also where they are to be in gangs: they have places of their
    /// own, and one that is lost is started again beside the others.
    [[nodiscard]] virtual bool starts_singly() const { return false; }

    /// All jobs of the group that wait or run, and those that ended lately, as far as the engine
    /// remembers them.
    [[nodiscard]] virtual Result<std::vector<AgentJob>> list() = 0;

    /// Ends these jobs; those that have ended are no error. Returns before they are gone.
    [[nodiscard]] virtual Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) = 0;

    /// The last lines that the agent printed; empty where there are none.
    [[nodiscard]] virtual std::string last_output(const AgentJob& job) = 0;

    /// Removes secrets and closes tunnels, once no job is left.
    virtual void clear() {}
};

/// A kind of engine: one file, one line in engine_kinds.cc.
struct EngineKind {
    std::string_view name;
    std::string_view help;
    /// Of its own settings, besides those of every engine.
    const tuner::OptionTable& (*options)();
    /// `fields` holds common and own settings. Errors: kInvalidParameterValue.
    Result<std::unique_ptr<Engine>> (*create)(const tuner::Fields& fields, Launch launch);
    /// It makes sure by itself that as many agents as `nodes` says are there together.
    bool starts_gangs = true;
};

[[nodiscard]] std::span<const EngineKind* const> engine_kinds();
/// Null if there is none of this name.
[[nodiscard]] const EngineKind* find_engine(std::string_view name);

/// An engine by the settings of engines.yaml: {"type": "slurm", ...}. `path`: where they stand, for
/// errors. Its common settings are put into `launch.agents`. Errors: kInvalidParameterValue.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_engine(const Json& settings,
                                                          const std::string& path, Launch launch);

/// The common settings alone. Errors: as above, also for those of the engine.
[[nodiscard]] Result<AgentSettings> read_agent_settings(const Json& settings,
                                                        const std::string& path);

/// "tune-<study>-<8 hex digits of where and study>": the same for the same study of the same
/// server, and a name that every engine takes.
[[nodiscard]] std::string group_name(std::string_view study, std::string_view where);

/// "drain", "stop", "kill".
[[nodiscard]] std::string_view stop_name(StopKind kind);

/// Whether only this machine reaches the server.
[[nodiscard]] bool is_loopback_url(const std::string& url);

/// The sentence for a server that the hosts of an engine cannot reach.
[[nodiscard]] Error unreachable_server(const std::string& url, const std::string& hosts);

}  // namespace tune::launch
