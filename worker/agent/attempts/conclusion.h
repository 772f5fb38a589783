#pragma once
// The end of an attempt as the server and the user hear of it, from all that is known once its
// processes are gone and its output has been read.

#include <functional>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/output/trial_output.h"

namespace tune::worker {

/// As AttemptParts::exclude.
using Exclude = std::function<void(const std::string& uuid, const std::string& reason)>;

struct EndedAttempt {
    const Attempt& attempt;
    const TrialOutput& output;
    std::string gpu_fault = {};       ///< of one of its GPUs; empty: none
    std::int64_t peak_gpu_bytes = 0;  ///< 0: unknown
};

/// What is reported, by exit_class.h, the log rules and what of its output is missing.
[[nodiscard]] tuner::FinishRequest conclude(const EndedAttempt& ended,
                                            const AttemptSettings& settings,
                                            const Exclude& exclude);

/// What its user is told in agent.log beside the output.
void write_notes(const EndedAttempt& ended, const tuner::FinishRequest& request);

/// A log rule has the word about a failure: changes the outcome, and calls `exclude` for what the
/// rule takes out of use. `gpus`: those of the trial.
void follow_rule(const LogHit& hit, const tuner::Lease& lease, const std::vector<std::string>& gpus,
                 const Exclude& exclude, tuner::FinishRequest& request);

}  // namespace tune::worker
