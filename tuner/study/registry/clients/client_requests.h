#pragma once
// What REST clients ask of a study's trials, and what they are answered.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// Most trials of one ask; keeps a transaction and an answer small.
inline constexpr int kAskCountMax = 1000;
/// Longest lease of an ask: 30 days. Who needs a longer one can renew it, or have none.
inline constexpr std::int64_t kAskLeaseMax_ms = std::int64_t{30} * 24 * 3600 * 1000;

struct AskRequest {
    std::string study = {};
    int count = 1;
    std::string request_id = {};
    std::string worker = {};  ///< what the client calls itself; shown to the user
    /// > 0: the attempt is lost without a report or a renewal for this long. 0: it is the client's
    /// until it ends.
    std::int64_t lease_ttl_ms = 0;
};

struct AskedTrial {
    std::uint64_t number = 0;
    int attempt = 0;
    std::string run_id = {};
    std::int64_t experiment_id = 0;
    /// The attempt's credential; empty for a trial that waits.
    std::string token = {};
    std::string params_json = {};
    std::uint64_t seed = 0;
    std::optional<Origin> origin = {};  ///< population based training
    Steps steps = {};                   ///< the same
};

/// Names a trial of a study to REST clients. `attempt` 0: the current one; only for trials without
/// a lease, for those with one may have been given to another client.
struct TrialName {
    std::string study = {};
    std::uint64_t number = 0;
    int attempt = 0;
};

struct ClientReport {
    TrialName trial = {};
    std::int64_t step = 0;
    double value = 0;
    /// One that the study measures, or the budget counts; empty: its only objective.
    std::string metric = {};
};

struct TellRequest {
    TrialName trial = {};
    std::string request_id = {};
    /// complete, pruned, failed or cancelled; nothing: complete.
    std::optional<TrialState> state = {};
    /// complete without a value: what was reported counts, as the study takes it.
    std::optional<double> value = {};
    std::string reason = {};
    /// Of the objectives after the first. REQUIRES: `value` is given.
    std::vector<double> more_values = {};
    /// Of metrics with bounds, by name; of the others what was reported counts.
    std::vector<std::pair<std::string, double>> constraints = {};
    /// Of the budget's cost metric; less than what was reported counts for nothing.
    std::optional<double> cost = {};
};

}  // namespace tune::tuner
