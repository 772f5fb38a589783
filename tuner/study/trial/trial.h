#pragma once
// A trial: one point of the space and what became of it.
//
//   queued -> running -> complete | pruned | failed | cancelled
//      ^         |
//      +---------+  the attempt ended (agent lost, preempted, an error that may be retried)
//
// Each time it starts running is an attempt, numbered from 1; (trial, attempt) is the fencing token
// of everything that is said about it afterwards.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/protocol.h"
#include "tuner/sampler/pbt/origin.h"
#include "tuner/space/space.h"
#include "tuner/study/trial/holder.h"
#include "tuner/study/trial/roll_back.h"
#include "tuner/study/trial/trial_results.h"

namespace tune::tuner {

enum class TrialState { kQueued, kRunning, kComplete, kPruned, kFailed, kCancelled };
inline constexpr std::size_t kTrialStateCount = 6;

/// "queued", "running", "complete", "pruned", "failed", "cancelled".
[[nodiscard]] std::string_view trial_state_name(TrialState state);
[[nodiscard]] Result<TrialState> trial_state_from_name(std::string_view name);

/// Complete, pruned, failed or cancelled: nothing changes it any more.
[[nodiscard]] bool is_ended(TrialState state);

/// What exists only while a trial is queued or running, and is rebuilt after a restart.
struct TrialProgress {
    explicit TrialProgress(const StudyConfig& config) : metrics(config) {}

    /// A row of the budget's cost metric.
    void note_cost(std::int64_t step, double value) {
        if (value > cost) cost = value;
        cost_step = std::max(cost_step, step);
    }

    ResultMetrics metrics;
    Holder holder;                       ///< running only
    std::optional<Directive> directive;  ///< how the agent is to end the attempt
    std::optional<Directive> profile;    ///< the last request for a trace of it
    bool is_rolled_back = false;         ///< `roll_backs` has changed and is to be written
    bool is_unmarked = false;            ///< without a mark, what comes is of the running attempt
    bool is_unheard = false;             ///< it has a credential, and no request has come with it
    std::vector<std::string> other_metrics;  ///< names that arrived besides those measured; a few
    double cost = 0;                         ///< the greatest value of the budget's cost metric
    std::int64_t cost_step = 0;              ///< the greatest step of that metric
};

/// How far the store knows the trial; see Journal.
struct TrialSync {
    bool run_requested = false;  ///< a CreateRun was submitted and has not failed
    bool run_confirmed = false;  ///< the run is on disk
    bool detached = false;       ///< the user deleted the run: only the document is kept
    bool unsynced = false;       ///< a write failed; the next one writes everything
};

struct Trial {
    std::uint64_t number = 0;
    TrialState state = TrialState::kQueued;
    int attempt = 0;  ///< of the running or last attempt; 0: never started
    std::string run_id;
    Point point;
    std::int64_t created_ms = 0;
    std::int64_t start_ms = 0;              ///< of the first attempt; 0: never started
    std::int64_t end_ms = 0;                ///< 0: not ended
    std::optional<double> value;            ///< of the (first) objective
    std::vector<double> more_values;        ///< complete: of the objectives after the first
    std::vector<double> constraint_values;  ///< complete: of the metrics with bounds, in order
    std::optional<std::int64_t> last_step;  ///< pruned: of the last report
    double last_value = 0;
    std::string reason;  ///< why it did not complete, or why it waits again; one sentence
    std::string worker;  ///< host of the agent, or what a client called itself
    int user_failures = 0;
    int lost_attempts = 0;
    int failed_attempt = 0;  ///< the last attempt that failed and was tried again; 0: none
    /// The study's log position at which the point was suggested and at which the end was reported
    /// to the sampler: the suggestion saw exactly the trials asked before, each ended if its end
    /// lies before. This is what makes a parallel study replayable.
    std::int64_t asked_at = 0;
    std::int64_t ended_at = 0;
    /// What an enqueue gave, inactive where the sampler filled it in; empty: nothing was given.
    Point fixed;
    /// Which of the study's spaces `point` lies in, counted from 0: a study may be extended.
    int epoch = 0;
    /// Its suggestion was lost with a server before it was on disk, and drawn without a history.
    bool is_redrawn = false;
    std::optional<Origin> origin;              ///< population based training: what it continues
    std::optional<std::uint64_t> reused_from;  ///< the trial whose value it got without running
    std::int64_t attempt_start_ms = 0;         ///< of the running or last attempt
    std::int64_t ran_ms = 0;  ///< of ended attempts together: not what it waited between them
    double cost = 0;          ///< of ended attempts, as the budget counts it; see CostBudget
    /// The most that a process of it had, and what it had of a GPU; 0: unknown.
    std::int64_t peak_memory_bytes = 0;
    std::int64_t peak_gpu_memory_bytes = 0;
    std::string ask_request;      ///< request_id of the REST ask that started it
    std::string enqueue_request;  ///< request_id of the enqueue that made it
    std::string finish_request;   ///< request_id of the last finish or tell that was accepted
    int finish_attempt = 0;
    std::vector<RollBack> roll_backs;  ///< what later attempts took back of earlier ones

    std::unique_ptr<TrialProgress> progress;
    TrialSync sync;
};

/// The trial as its journal document, and back. `point` holds internal values, null where inactive.
/// Errors: kDataLoss when it is not what trial_to_document wrote.
[[nodiscard]] std::string trial_to_document(const Trial& trial);
[[nodiscard]] Result<Trial> trial_from_document(std::string_view json_text);

}  // namespace tune::tuner
