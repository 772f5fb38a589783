// `tune agent`.

#include <cstdio>
#include <string>

#include "base/log.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "worker/agent/agent.h"

namespace tune::cli {

/// The first signal stops the trials, which are run again elsewhere; the second kills them.
int run_agent(const AgentCommand& options) {
    Interrupts interrupts;
    const auto agent = worker::Agent::create({.server_url = options.server,
                                              .state_dir = options.state,
                                              .slots = options.slots,
                                              .cpus = options.cpus,
                                              .use_gpus = !options.no_gpus});
    if (!agent) return fail(agent.error());
    std::string last_error;
    bool connected = false;
    (*agent)->on_status([&last_error, &connected](const worker::AgentStatus& status) {
        if (!status.connected && !status.last_error.empty() && status.last_error != last_error)
            log_warning(status.last_error);
        if (status.connected && !connected) log_info("connected");
        connected = status.connected;
        last_error = status.last_error;
    });
    const Result<void> started = (*agent)->start();
    if (!started) return fail(started.error());
    print("agent " + (*agent)->id() + " takes trials of " + options.server + " (" +
          std::to_string((*agent)->status().slots) + " at a time, state: " + options.state + ")\n");
    while (interrupts.wait(-1) != Interrupts::Event::kSignal) {
    }
    (*agent)->stop(worker::StopMode::kStop);
    log_info("stopping; running trials will run again later. Press Ctrl-C again to kill them now");
    constexpr int kLook_ms = 100;
    while ((*agent)->status().running > 0)
        if (interrupts.wait(kLook_ms) == Interrupts::Event::kSignal)
            (*agent)->stop(worker::StopMode::kKill);
    return (*agent)->wait() ? kExitOk : kExitFailed;
}

}  // namespace tune::cli
