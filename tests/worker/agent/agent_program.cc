// An agent in a process of its own, for the tests that kill one: agent_program URL STATE_DIR.

#include <unistd.h>

#include "base/log.h"
#include "worker/agent/agent.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    tune::set_log_level(tune::LogLevel::kError);
    tune::worker::AgentOptions options;
    options.server_url = argv[1];
    options.state_dir = argv[2];
    options.slots = 4;
    options.use_gpus = false;
    tune::Result<std::unique_ptr<tune::worker::Agent>> agent =
        tune::worker::Agent::create(std::move(options));
    if (!agent || !agent.value()->start()) return 1;
    while (true) pause();
}
