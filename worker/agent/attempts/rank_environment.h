#pragma once
// What the processes of an attempt of several find in their environments, beside what all trials
// find there: who they are and where they meet, in the words of torchrun, TensorFlow, Open MPI,
// PMI and Horovod. Pure.

#include <string>
#include <vector>

#include "tuner/protocol.h"

namespace tune::worker {

/// "NAME=value" of each variable of the process `local_rank` on this machine.
/// torchrun's are those of torch/distributed/elastic/agent/server/local_elastic_agent.py; the
/// meeting place (MASTER_ADDR, MASTER_PORT) is for the process with rank 0 to open, so
/// TORCHELASTIC_USE_AGENT_STORE is False. TF_CONFIG is there where each process has a port of its
/// own: up to kGangPorts - 2 a machine. Horovod's are those of horovod/runner/gloo_run.py; the last
/// port of the first machine is its meeting place. `interface`: of this machine's address in the
/// gang, for Horovod; may be empty. REQUIRES: lease.gang.
[[nodiscard]] std::vector<std::string> rank_environment(const tuner::Lease& lease, int local_rank,
                                                        const std::string& interface);

/// Where the output of the process goes: "" of the first on its machine, else "rank-<rank>.log".
[[nodiscard]] std::string rank_log(const tuner::Gang& gang, int local_rank);

/// The content of kRanksFile (worker/agent/supervisor/supervisor.h). REQUIRES: lease.gang.
[[nodiscard]] std::string ranks_file(const tuner::Lease& lease, const std::string& interface);

}  // namespace tune::worker
