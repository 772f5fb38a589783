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

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tune::tuner {

/// Lease and heartbeat of a server that was not told otherwise: an agent may miss three heartbeats.
inline constexpr std::int64_t kHeartbeat_ms = 10'000;
inline constexpr std::int64_t kLeaseTtl_ms = 40'000;

/// Time between SIGTERM and SIGKILL unless the study says otherwise.
inline constexpr std::int64_t kStopGrace_ms = 30'000;

/// One try of a trial; the fencing token.
struct AttemptId {
    std::string run_id = {};
    int attempt = 0;

    friend bool operator==(const AttemptId&, const AttemptId&) = default;
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
    std::string version = {};
    /// Attempts this agent still answers for: processes that run (re-adopted after a restart), and
    /// ended ones whose finish has not been acknowledged. The server ends this agent's others.
    std::vector<AttemptId> running = {};
};
struct RegisterReply {
    std::string agent_id = {};
    std::int64_t heartbeat_ms = kHeartbeat_ms;
    std::int64_t lease_ttl_ms = kLeaseTtl_ms;
    std::vector<AttemptId> lost = {};  ///< kill these: they are not this agent's any more
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
    std::int64_t grace_ms = kStopGrace_ms;
    std::int64_t timeout_ms = 0;  ///< of the attempt; 0: none
    std::string metric = {};      ///< the objective's name
    std::vector<ScrapePattern> scrape = {};
    double cpus_per_trial = 0;  ///< 0: the agent's cores divided by its slots
    double gpus_per_trial = 0;
};

/// POST agents/{id}/lease: long-poll until a trial is there or `wait_ms` is over.
struct LeaseRequest {
    std::string request_id = {};
    int free_slots = 1;
    std::int64_t wait_ms = 0;
};
struct LeaseReply {
    std::vector<Lease> leases = {};
};

enum class Action { kPrune, kStop, kCheckpointStop };

/// What the server wants done with a running attempt. The agent ends the process group and then
/// calls finish with `pruned` (kPrune), `cancelled` (kStop) or `preempted` (kCheckpointStop).
struct Directive {
    std::string run_id = {};
    int attempt = 0;
    Action action = Action::kStop;
    std::string reason = {};
};

/// POST agents/{id}/heartbeat: long-poll; extends the leases of `running`. A directive is repeated
/// in each reply until the attempt is finished.
struct HeartbeatRequest {
    std::int64_t wait_ms = 0;
    std::vector<AttemptId> running = {};
};
struct HeartbeatReply {
    std::vector<Directive> directives = {};
    std::vector<AttemptId> lost = {};  ///< kill these: they are not this agent's any more
    bool draining = false;             ///< the server is stopping: ask for no more leases
};

struct ReportedMetric {
    std::string key = {};
    double value = 0;
    std::int64_t step = 0;
    std::int64_t timestamp_ms = 0;
};
struct ReportedParam {
    std::string key = {};
    std::string value = {};
};

/// POST agents/{id}/report: metrics read from the output of trials.
struct AttemptReport {
    std::string run_id = {};
    int attempt = 0;
    std::vector<ReportedMetric> metrics = {};
    std::vector<ReportedParam> params = {};
};
struct ReportRequest {
    std::vector<AttemptReport> reports = {};
};
struct ReportResult {
    std::string run_id = {};
    int attempt = 0;
    bool ok = true;
    std::string error_code = {};  ///< RESOURCE_CONFLICT for a stale attempt; empty when ok
    std::string message = {};
};
struct ReportReply {
    std::vector<ReportResult> results = {};  ///< one for each report, in order
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
};
struct FinishReply {
    std::optional<NeededCheckpoints> checkpoints = {};  ///< population based training only
};

[[nodiscard]] std::string_view action_name(Action action);
[[nodiscard]] std::string_view outcome_name(Outcome outcome);
[[nodiscard]] Result<Outcome> outcome_from_name(std::string_view name);

[[nodiscard]] Json to_json(const AttemptId& value);
[[nodiscard]] Json to_json(const RegisterRequest& value);
[[nodiscard]] Json to_json(const RegisterReply& value);
[[nodiscard]] Json to_json(const Lease& value);
[[nodiscard]] Json to_json(const LeaseRequest& value);
[[nodiscard]] Json to_json(const LeaseReply& value);
[[nodiscard]] Json to_json(const HeartbeatRequest& value);
[[nodiscard]] Json to_json(const HeartbeatReply& value);
[[nodiscard]] Json to_json(const ReportRequest& value);
[[nodiscard]] Json to_json(const ReportReply& value);
[[nodiscard]] Json to_json(const FinishRequest& value);
[[nodiscard]] Json to_json(const FinishReply& value);

/// The struct in a JSON object, e.g. `from_json<LeaseReply>(body)`. There is one for each struct
/// above that has a to_json. Errors: kInvalidParameterValue with the name of the field.
template <class T>
[[nodiscard]] Result<T> from_json(const Json& value);

template <>
Result<AttemptId> from_json<AttemptId>(const Json& value);
template <>
Result<RegisterRequest> from_json<RegisterRequest>(const Json& value);
template <>
Result<RegisterReply> from_json<RegisterReply>(const Json& value);
template <>
Result<Lease> from_json<Lease>(const Json& value);
template <>
Result<LeaseRequest> from_json<LeaseRequest>(const Json& value);
template <>
Result<LeaseReply> from_json<LeaseReply>(const Json& value);
template <>
Result<HeartbeatRequest> from_json<HeartbeatRequest>(const Json& value);
template <>
Result<HeartbeatReply> from_json<HeartbeatReply>(const Json& value);
template <>
Result<ReportRequest> from_json<ReportRequest>(const Json& value);
template <>
Result<ReportReply> from_json<ReportReply>(const Json& value);
template <>
Result<FinishRequest> from_json<FinishRequest>(const Json& value);
template <>
Result<FinishReply> from_json<FinishReply>(const Json& value);

}  // namespace tune::tuner
