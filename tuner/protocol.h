#pragma once
// What the server and an agent say to each other (/api/2.0/tune/agents/...): plain structs and
// their JSON. No I/O and no state here, so that both sides share exactly one definition.
//
// Rules of the protocol:
//  - `(run_id, attempt)` is the fencing token of everything an agent says about a trial. A call
//    with a token that is no longer the trial's current one gets RESOURCE_CONFLICT and changes
//    nothing; the agent then kills that process group.
//  - `request_id` makes a call idempotent: the same id gets the same answer again, so a reply lost
//    on the way costs nothing. The agent makes a new random id for each new call and repeats it
//    only when it repeats the call.
//  - Field names on the wire are those of the structs (`params_json` is the object `params`).
//  - Readers ignore fields they do not know and take the defaults below for absent ones; a field
//    of the wrong type is kInvalidParameterValue with the field's name.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/checkpoint_policy.h"
#include "tuner/log_rule.h"

namespace tune::tuner {

/// Lease and heartbeat of a server that was not told otherwise: an agent may miss three heartbeats.
inline constexpr std::int64_t kHeartbeat_ms = 10'000;
inline constexpr std::int64_t kLeaseTtl_ms = 40'000;

/// Time between SIGTERM and SIGKILL unless the study says otherwise.
inline constexpr std::int64_t kStopGrace_ms = 30'000;

/// What the credential of every attempt begins with (tuner/study/registry/attempt_credentials.h).
inline constexpr std::string_view kAttemptTokenPrefix = "tune-attempt.";

/// One try of a trial; the fencing token.
struct AttemptId {
    std::string run_id = {};
    int attempt = 0;

    friend bool operator==(const AttemptId&, const AttemptId&) = default;
};

/// A GPU, or a slice of one (MIG).
struct GpuFacts {
    std::string uuid = {};
    std::int64_t bytes = 0;  ///< of its memory; 0: unknown
    std::string name = {};
    int index = 0;  ///< in the driver's list

    friend bool operator==(const GpuFacts&, const GpuFacts&) = default;
};

/// POST agents/register. Sent at start and again whenever the server answers that it does not know
/// the agent.
struct RegisterRequest {
    std::string agent_id = {};  ///< chosen by the agent and kept on its disk
    std::string host = {};
    std::int64_t pid = 0;
    int slots = 1;  ///< trials at once
    int cpus = 1;
    std::vector<std::string> gpus = {};  ///< UUIDs
    std::vector<GpuFacts> devices = {};  ///< what is known of `gpus`
    std::int64_t memory_bytes = 0;       ///< for trials; 0: unknown
    std::vector<std::string> labels = {};
    /// Where other machines reach the processes of its trials; empty: under `host`.
    std::string address = {};
    std::string version = {};
    /// Attempts this agent still answers for: processes that run (re-adopted after a restart), and
    /// ended ones whose finish has not been acknowledged. The server ends this agent's others.
    std::vector<AttemptId> running = {};
    /// Of an agent that polls: PollRequest::session and ack. What the server gave in an answer that
    /// did not arrive stays the agent's, and comes with its next poll.
    std::string session = {};
    std::int64_t ack = 0;
    /// GPUs that are not used any more, or "this machine", each with the reason; for people.
    std::vector<std::string> excluded = {};
    /// The agent ends: with `slots` 0 it is forgotten, unless it answers for attempts.
    bool leaving = false;

    friend bool operator==(const RegisterRequest&, const RegisterRequest&) = default;
};
struct RegisterReply {
    std::string agent_id = {};
    std::int64_t heartbeat_ms = kHeartbeat_ms;
    std::int64_t lease_ttl_ms = kLeaseTtl_ms;
    std::vector<AttemptId> lost = {};  ///< kill these: they are not this agent's any more

    friend bool operator==(const RegisterReply&, const RegisterReply&) = default;
};

/// A pattern that turns a line of output into a metric: `name` absent means the pattern has the
/// named groups itself. The agent documents its syntax.
struct ScrapePattern {
    std::string name = {};
    std::string pattern = {};

    friend bool operator==(const ScrapePattern&, const ScrapePattern&) = default;
};

struct EnvironmentVariable {
    std::string name = {};
    std::string value = {};

    friend bool operator==(const EnvironmentVariable&, const EnvironmentVariable&) = default;
};

/// A GPU that a lease grants, or a part of its memory.
struct GrantedGpu {
    std::string uuid = {};
    std::int64_t bytes = 0;  ///< 0: the whole GPU

    friend bool operator==(const GrantedGpu&, const GrantedGpu&) = default;
};

/// A machine of an attempt of several processes.
struct GangNode {
    std::string address = {};
    int port = 0;  ///< LeaseRequest::port of its agent

    friend bool operator==(const GangNode&, const GangNode&) = default;
};

/// The place of one machine in an attempt of several processes. Each machine runs `nproc` of them;
/// this one those with the ranks from node * nproc on.
struct Gang {
    int nproc = 1;
    int node = 0;  ///< of this machine, from 0
    std::vector<GangNode> nodes = {};

    [[nodiscard]] int size() const { return nproc * static_cast<int>(nodes.size()); }

    friend bool operator==(const Gang&, const Gang&) = default;
};

/// The process in which an attempt of a pooled study runs, beside others of the study.
struct PoolPlace {
    std::string name = {};  ///< of the process on its agent; attempts with the same one share it
    int size = 1;           ///< attempts in it at once

    friend bool operator==(const PoolPlace&, const PoolPlace&) = default;
};

/// Everything an agent needs to run one attempt.
struct Lease {
    std::string study = {};
    std::int64_t number = 0;  ///< of the trial, from 0
    int attempt = 1;          ///< from 1
    std::string run_id = {};
    std::string experiment_id = {};
    std::string params_json = "{}";         ///< JSON object: the active parameters, typed
    std::uint64_t seed = 0;                 ///< of this trial; the same in each attempt
    std::vector<std::string> command = {};  ///< argv, placeholders already filled
    std::vector<EnvironmentVariable> env = {};
    std::string working_dir = {};  ///< empty: the agent's own
    std::string checkpoint_dir =
        {};  ///< a key, the same for all attempts of the trial; the agent
             ///< places it under its own state directory unless it is absolute
    std::string resume_from = {};  ///< the `checkpoint_dir` of the trial whose checkpoint this one
                                   ///< starts from; empty: from nothing
    std::string resume_run_id = {};  ///< the run of that trial
    CheckpointPolicy checkpoints = {};
    bool is_continued = false;  ///< other trials may start from its checkpoint
    std::int64_t grace_ms = kStopGrace_ms;
    std::int64_t timeout_ms = 0;  ///< of the attempt; 0: none
    std::string metric = {};      ///< the objective's name
    std::vector<ScrapePattern> scrape = {};
    std::vector<LogRule> log_rules = {};
    double cpus_per_trial = 0;  ///< 0: the agent's cores divided by its slots
    double gpus_per_trial = 0;
    /// The GPUs that are meant; empty: the agent chooses `gpus_per_trial` of them.
    std::vector<GrantedGpu> devices = {};
    std::int64_t memory_bytes = 0;  ///< of the machine's memory, for all its processes; 0: any
    std::optional<Gang> gang = {};  ///< an attempt of several processes
    /// `command` is a pool (docs/pools.md), and the attempt one of its trials.
    std::optional<PoolPlace> pool = {};
    /// The attempt's credential, for MLFLOW_TRACKING_TOKEN: the server knows its hash only. Empty:
    /// none was made, since the agent or the study has a login of its own.
    std::string token = {};

    [[nodiscard]] AttemptId id() const { return {run_id, attempt}; }

    friend bool operator==(const Lease&, const Lease&) = default;
};

/// Ports that an attempt of several processes may use on each machine: the first is that of the
/// meeting place (MASTER_PORT), the next ones are of its processes in order.
inline constexpr int kGangPorts = 64;

/// POST agents/{id}/lease: long-poll until a trial is there or `wait_ms` is over.
struct LeaseRequest {
    std::string request_id = {};
    int free_slots = 1;
    std::int64_t wait_ms = 0;
    /// The first of kGangPorts ports that are free on the agent's machine and stay so for the next
    /// attempt of several processes that it runs; 0: there are none.
    int port = 0;
    /// The agent passes Lease::token on to the trials. One that needs a login of its own to reach
    /// the server must pass that on instead and says no.
    bool wants_tokens = false;

    friend bool operator==(const LeaseRequest&, const LeaseRequest&) = default;
};
struct LeaseReply {
    std::vector<Lease> leases = {};

    friend bool operator==(const LeaseReply&, const LeaseReply&) = default;
};

enum class Action { kPrune, kStop, kCheckpointStop, kProfile };

/// Steps in a trace of a running trial.
inline constexpr std::int64_t kProfileSteps = 5;
inline constexpr std::int64_t kProfileStepsMax = 1'000;

/// What the server wants done with a running attempt. The agent ends the process group and then
/// calls finish with `pruned` (kPrune), `cancelled` (kStop) or `preempted` (kCheckpointStop). With
/// kProfile it only passes on that a trace is wanted (docs/agents.md).
struct Directive {
    std::string run_id = {};
    int attempt = 0;
    Action action = Action::kStop;
    std::string reason = {};
    // Of kProfile:
    std::int64_t steps = 0;  ///< to trace
    std::int64_t turn = 0;   ///< of this attempt's requests, from 1; one that is known says nothing

    friend bool operator==(const Directive&, const Directive&) = default;
};

/// POST agents/{id}/heartbeat: long-poll; extends the leases of `running`. A directive is repeated
/// in each reply until the attempt is finished.
struct HeartbeatRequest {
    std::int64_t wait_ms = 0;
    std::vector<AttemptId> running = {};

    friend bool operator==(const HeartbeatRequest&, const HeartbeatRequest&) = default;
};
struct HeartbeatReply {
    std::vector<Directive> directives = {};
    std::vector<AttemptId> lost = {};  ///< kill these: they are not this agent's any more
    bool draining = false;             ///< the server is stopping: ask for no more leases

    friend bool operator==(const HeartbeatReply&, const HeartbeatReply&) = default;
};

/// POST agents/{id}/poll: lease and heartbeat in one long-poll. It renews the leases of `running`
/// and is answered when there are trials, directives or lost attempts, or when `wait_ms` is over.
///
/// Answers that say something are numbered within a session. What an answer said that the agent
/// never got is said again: a poll whose `ack` is below the number of the last answer gets its
/// leases once more, as the same attempts with new tokens, and its directives at once.
struct PollRequest {
    std::string session = {};  ///< random; another one each time the agent starts
    std::int64_t turn = 0;     ///< 1, 2, 3 ...: every poll of the session, repeated ones too
    std::int64_t ack = 0;      ///< PollReply::sequence of the last answer that arrived; 0: none
    std::int64_t wait_ms = 0;
    std::vector<AttemptId> running = {};
    /// Trials wanted. Each attempt of the agent that ends while the poll waits, other than as
    /// `lost`, counts as one more.
    int free_slots = 0;
    int port = 0;                          ///< as LeaseRequest::port
    bool wants_tokens = false;             ///< as LeaseRequest::wants_tokens
    std::vector<AttemptId> declined = {};  ///< leased, and not wanted any more: for other agents
    /// It takes no more trials: a place that becomes free is for none.
    bool leaving = false;
    /// No poll of its own: the one that waits, with this turn or an earlier one, is answered at
    /// once, because the agent has something else to say by now.
    bool interrupts = false;

    friend bool operator==(const PollRequest&, const PollRequest&) = default;
};
struct PollReply {
    std::int64_t sequence = 0;  ///< to acknowledge; the request's `ack` where nothing is to be
    std::vector<Lease> leases = {};
    std::vector<Directive> directives = {};  ///< repeated in each answer until the attempt ended
    std::vector<AttemptId> lost = {};        ///< kill these: they are not this agent's any more
    std::string lease_error = {};            ///< why no trial can be had now; ask again later
    bool draining = false;                   ///< the server is stopping: ask for no more trials

    friend bool operator==(const PollReply&, const PollReply&) = default;
};

struct ReportedMetric {
    std::string key = {};
    double value = 0;
    std::int64_t step = 0;
    std::int64_t timestamp_ms = 0;

    friend bool operator==(const ReportedMetric&, const ReportedMetric&) = default;
};
struct ReportedParam {
    std::string key = {};
    std::string value = {};

    friend bool operator==(const ReportedParam&, const ReportedParam&) = default;
};

struct ReportedTag {
    std::string key = {};
    std::string value = {};

    friend bool operator==(const ReportedTag&, const ReportedTag&) = default;
};

/// How an attempt ended. Exit codes: 0 done, 10 pruned, 11 preempted, 12 oom, 13 bad_config, other
/// failed; `lost` is a fault of the machine or the agent, never of the user's code.
enum class Outcome { kDone, kPruned, kPreempted, kOom, kBadConfig, kFailed, kLost, kCancelled };

/// POST agents/{id}/attempts/{run_id}/{attempt}/finish. All metrics of the attempt were reported
/// before this call.
struct FinishRequest {
    std::string request_id = {};
    Outcome outcome = Outcome::kDone;
    std::optional<int> exit_code = {};  ///< absent when a signal ended it or it never started
    std::optional<int> signal = {};
    bool timed_out = false;   ///< `failed` because the lease's timeout_ms was over
    std::string reason = {};  ///< one sentence for the user; empty when done
    std::int64_t max_rss_kb = 0;
    std::int64_t cpu_ms = 0;
    std::int64_t wall_ms = 0;
    /// The most memory that its processes on this machine had together, as far as it is known; 0:
    /// unknown. Of GPUs: on the one where it had the most.
    std::int64_t peak_memory_bytes = 0;
    std::int64_t peak_gpu_memory_bytes = 0;

    friend bool operator==(const FinishRequest&, const FinishRequest&) = default;
};

/// Which checkpoints of a study may still be continued. The others of the trials from `from` to
/// below `below` are nobody's any more and never will be: an agent that holds such a folder
/// (`folder`/number, see Lease::checkpoint_dir) removes it. Any agent may be told any number of
/// times, in any order.
struct NeededCheckpoints {
    std::string folder = {};
    std::uint64_t from = 0;
    std::uint64_t below = 0;
    std::vector<std::uint64_t> trials = {};  ///< needed ones among them, ascending

    friend bool operator==(const NeededCheckpoints&, const NeededCheckpoints&) = default;
};
struct FinishReply {
    std::optional<NeededCheckpoints> checkpoints = {};  ///< population based training only

    friend bool operator==(const FinishReply&, const FinishReply&) = default;
};

/// POST agents/{id}/report: metrics read from the output of trials, what they ran in, and how they
/// ended.
struct AttemptReport {
    std::string run_id = {};
    int attempt = 0;
    std::vector<ReportedMetric> metrics = {};
    std::vector<ReportedParam> params = {};
    std::vector<ReportedTag> tags = {};
    /// As a call of finish after this report.
    std::optional<FinishRequest> finish = {};

    friend bool operator==(const AttemptReport&, const AttemptReport&) = default;
};
struct ReportRequest {
    std::vector<AttemptReport> reports = {};

    friend bool operator==(const ReportRequest&, const ReportRequest&) = default;
};
struct ReportResult {
    std::string run_id = {};
    int attempt = 0;
    bool ok = true;
    std::string error_code = {};  ///< RESOURCE_CONFLICT for a stale attempt; empty when ok
    std::string message = {};
    bool finished = false;  ///< the report's finish was taken; `ok` is false where it failed
    /// FinishReply::checkpoints of it.
    std::optional<NeededCheckpoints> checkpoints = {};

    friend bool operator==(const ReportResult&, const ReportResult&) = default;
};
struct ReportReply {
    std::vector<ReportResult> results = {};  ///< one for each report, in order

    friend bool operator==(const ReportReply&, const ReportReply&) = default;
};

[[nodiscard]] std::string_view action_name(Action action);
[[nodiscard]] std::string_view outcome_name(Outcome outcome);
[[nodiscard]] Result<Outcome> outcome_from_name(std::string_view name);

template <class T, class... Bodies>
concept IsOneOf = (std::same_as<T, Bodies> || ...);

/// What travels as a JSON object of its own.
template <class T>
concept ProtocolBody = IsOneOf<T, AttemptId, RegisterRequest, RegisterReply, Lease, LeaseRequest,
                               LeaseReply, HeartbeatRequest, HeartbeatReply, PollRequest, PollReply,
                               ReportRequest, ReportReply, FinishRequest, FinishReply>;

template <ProtocolBody T>
[[nodiscard]] Json to_json(const T& message);

/// The struct in a JSON object, e.g. `from_json<LeaseReply>(body)`. Errors: kInvalidParameterValue
/// with the name of the field.
template <ProtocolBody T>
[[nodiscard]] Result<T> from_json(const Json& value);

}  // namespace tune::tuner
