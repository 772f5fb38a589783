#pragma once
// From a lease that has its devices to a supervisor that runs: the attempt's folder and record, its
// checkpoint folders, ports, limits and environment. What was taken for a start that fails is given
// back, the devices too.

#include <filesystem>
#include <memory>
#include <string>

#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/output/trial_output.h"
#include "worker/agent/start/spare_folders.h"
#include "worker/agent/start/start_queue.h"

namespace tune::worker {

/// What reads the output: of several machines only the first one's counts. Errors: those of
/// MetricLines::create.
[[nodiscard]] Result<MetricLines> metric_lines_of(const tuner::Lease& lease);

/// Not thread-safe.
class AttemptStart {
public:
    /// `boot_id`: of this boot. The references outlive it.
    AttemptStart(const SharedParts& shared, std::string boot_id, SpareFolders& spare_folders);

    /// The attempt as it is noted before it starts, with ports if it is of several processes.
    /// Errors, outcome_of_failed_start says whose: kInvalidParameterValue, kResourceExhausted.
    [[nodiscard]] Result<std::unique_ptr<Attempt>> make(const tuner::Lease& lease,
                                                        Assignment assignment) const;

    struct Running {
        Process supervisor;
        TrialOutput output;
    };
    /// Starts it. Errors: as of make; the attempt cannot be used any more.
    [[nodiscard]] Result<Running> run(Attempt& attempt) const;

private:
    [[nodiscard]] Result<int> take_ports(tuner::Lease& lease) const;
    [[nodiscard]] Result<TrialOutput> prepare(Attempt& attempt, LaunchSpec& spec) const;
    [[nodiscard]] Result<Running> try_to_run(Attempt& attempt) const;

    const SharedParts& shared_;
    const std::string boot_id_;
    SpareFolders& spare_folders_;
};

}  // namespace tune::worker
