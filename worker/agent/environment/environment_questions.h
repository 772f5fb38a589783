#pragma once
// What attempts and pools run in, found out beside them (run_environment.h): who has asked and has
// no answer yet.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/environment/run_environment.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// Loop thread only.
class EnvironmentQuestions {
public:
    /// The parts outlive it. `capture`: nullptr where nobody asks. `gpus`, `driver_version`: what
    /// is known of the agent's.
    EnvironmentQuestions(Loop& loop, EnvironmentCapture* capture, std::vector<GpuFacts> gpus,
                         std::string driver_version);

    /// Asks what the lease's command runs in. `search_path`: its PATH; `gpus`: the UUIDs of those
    /// that it has. Calls `done` on the loop with the answer, is_answered() being true then; never
    /// where nobody asks. One question a serial.
    void ask(std::uint64_t serial, const tuner::Lease& lease, std::string search_path,
             const std::vector<std::string>& gpus, std::function<void(RunEnvironment)> done);
    /// Also true of one that was never asked.
    [[nodiscard]] bool is_answered(std::uint64_t serial) const { return !asked_.contains(serial); }

private:
    Loop& loop_;
    EnvironmentCapture* const capture_;
    const std::vector<GpuFacts> gpus_;
    const std::string driver_version_;
    std::set<std::uint64_t> asked_;
};

}  // namespace tune::worker
