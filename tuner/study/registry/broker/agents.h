#pragma once
// The agents that are registered: what they have, which trials they hold, and when each was last
// heard. Decides what fits where; grants nothing itself.
//
// Not thread-safe: part of what the lock of Studies guards. No step looks at all agents.

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/protocol.h"
#include "tuner/study/placement/room.h"
#include "tuner/study/placement/usage.h"
#include "tuner/study/registry/bookkeeping/study_book.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Agents known at once; one costs about 2 kB.
inline constexpr std::size_t kAgentsMax = 20'000;
/// Trials that an agent holds at once, whatever it registered; keeps a lease's answer and its
/// transaction small.
inline constexpr int kAgentSlotsMax = 1024;
/// GPUs that an agent may register; no machine has as many.
inline constexpr std::size_t kAgentGpusMax = 1024;
/// Bytes of each word of a registration: id, host, address, session, UUIDs, names of GPUs, labels.
/// A host's name has at most 253 (RFC 1035).
inline constexpr std::size_t kAgentWordBytesMax = 255;
/// Labels of one agent: a trial names the few it needs, and each is compared where it is placed.
inline constexpr std::size_t kAgentLabelsMax = 64;
/// Attempts that an agent names when it registers: those that it holds, and as many ends that were
/// not acknowledged for each place.
inline constexpr std::size_t kAgentAttemptsMax = 4 * kAgentSlotsMax;
/// Bytes of all registrations together. Of a machine with 8 GPUs one has about 1 kB, so that
/// kAgentsMax of them need a tenth of it.
inline constexpr std::size_t kAgentsBytesMax = 256u << 20;
/// Of what it says of those that it does not use.
inline constexpr std::size_t kAgentExcludedMax = 64;
inline constexpr std::size_t kExcludedBytesMax = 1000;
/// An agent that holds nothing and is silent for so long is forgotten. It registers again when it
/// calls again.
inline constexpr std::int64_t kAgentForgotten_ms = 10 * 60 * 1000;

/// Whether a registration keeps within the limits for each of its fields; slots and GPUs beyond
/// theirs are cut instead. Errors: kInvalidParameterValue naming field and limit.
[[nodiscard]] Result<void> check_registration(const RegisterRequest& facts);
/// What it takes in memory, about.
[[nodiscard]] std::size_t registration_bytes(const RegisterRequest& facts);

/// What a call of an agent gets that did not register.
[[nodiscard]] Error unknown_agent(const std::string& agent_id);

struct Agent {
    RegisterRequest facts;
    std::set<std::string> reported_lost;  ///< tokens it was sent to kill and still names
    std::int64_t heard_ms = 0;            ///< monotonic
    std::string session = {};             ///< of its polls (PollRequest); empty: none came yet
    std::int64_t answered = 0;            ///< number of the last answer to them
    std::int64_t interrupted = 0;         ///< polls up to this turn are answered at once
    std::list<std::string>::iterator place;
    Room room;  ///< what it has, less what the trials that it holds take
};

class Agents {
public:
    [[nodiscard]] Agent* find(const std::string& id);
    [[nodiscard]] bool contains(const std::string& id) const { return agents_.contains(id); }
    [[nodiscard]] bool is_full() const { return agents_.size() >= kAgentsMax; }
    [[nodiscard]] std::size_t size() const { return agents_.size(); }
    /// Whether there is memory for the registration, in place of the same agent's earlier one.
    [[nodiscard]] bool has_room_for(const RegisterRequest& facts);

    /// Registers the agent, or takes its new facts, cut to the limits above. True if a trial may
    /// have got a place that it could not have before.
    bool add(RegisterRequest facts, std::int64_t now_ms);
    /// It has called.
    void heard(Agent& agent, std::int64_t now_ms);
    /// It has left. True if a trial may have lost its place.
    bool forget(const std::string& id);
    /// Forgets those that are silent for too long. True if a trial may have lost its place.
    bool forget_silent(std::int64_t now_ms);
    /// When forget_silent has something to do; Timers::kNever_ms: never.
    [[nodiscard]] std::int64_t next_forgotten_ms() const;

    /// Brings what agents hold in line with the trial. To be called after each of its changes.
    void follow(Study& study, Trial& trial);
    /// The running trials that an agent holds, known or not; nullptr: none.
    [[nodiscard]] std::map<std::string, TrialRef>* held_by(const std::string& id);

    /// The first shape for which there are agents, if they had nothing else to do; nothing: there
    /// are none. O(kinds of agents).
    [[nodiscard]] std::optional<Shape> possible_shape(const TrialNeeds& needs) const;
    /// What stands in the way, as a sentence without a full stop; empty: nothing.
    [[nodiscard]] std::string obstacle(const TrialNeeds& needs) const;
    /// Agents of which something was taken or given back since the last call.
    [[nodiscard]] std::set<std::string> take_changed() { return std::exchange(changed_, {}); }

    /// All that the registered agents have.
    [[nodiscard]] const Usage& capacity() const { return capacity_; }
    /// What the running trials of a study hold of agents; of all studies of a user.
    [[nodiscard]] Usage held_of(const Study& study) const;
    [[nodiscard]] Usage held_by_user(const std::string& user) const;

    /// Agents with the same left, by room_text: what fits one fits all of them.
    using Groups = std::map<std::string, std::set<std::string>>;
    /// All agents with places. Cost: O(changes since the last call * log agents).
    [[nodiscard]] const Groups& groups();
    /// Calls `look` for each agent, in the order of their ids: for views.
    void each(const std::function<void(const Agent&)>& look) const;

private:
    using Kind = std::tuple<std::size_t, int, std::string>;  // GPUs, cores, all of it
    struct Alike {
        std::size_t count = 0;
        Room room;
    };
    /// What one agent has of a trial.
    struct Share {
        std::string agent_id;
        Part part;

        friend bool operator==(const Share&, const Share&) = default;
    };
    struct Shares {
        std::vector<Share> all;
        Usage used;  ///< as it was counted when they began, so that the same is taken away
    };
    [[nodiscard]] static Kind kind_of(const RegisterRequest& facts);
    bool add_kind(const RegisterRequest& facts);
    bool remove_kind(const RegisterRequest& facts);
    [[nodiscard]] std::size_t count_serving(const TrialNeeds& needs, int nproc) const;
    void begin_share(TrialRef ref, const Share& share);
    void end_share(const TrialRef& ref, const Share& share);
    [[nodiscard]] Usage used_by(const std::vector<Share>& shares);
    void count(const Study& study, const Usage& used, bool is_taken);
    void note_room(const std::string& id);

    std::unordered_map<std::string, Agent> agents_;  // by id
    std::list<std::string> by_silence_;              // ids, the longest silent first
    std::map<Kind, Alike> kinds_;
    /// By agent, also of agents that have not registered since the server started.
    std::unordered_map<std::string, std::map<std::string, TrialRef>> held_;
    std::unordered_map<const Trial*, Shares> shares_;
    std::set<std::string> changed_;
    Usage capacity_;
    std::size_t bytes_ = 0;  // of all registrations
    std::unordered_map<const Study*, Usage> held_of_;
    std::unordered_map<std::string, Usage> held_by_user_;
    Groups groups_;
    std::unordered_map<std::string, std::string> group_of_;  // the text, by agent
    std::set<std::string> ungrouped_;                        // changed since groups()
};

}  // namespace tune::tuner
