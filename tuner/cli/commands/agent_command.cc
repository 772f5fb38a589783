// `tune agent`.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "tracker/client/local_servers.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/options/bytes.h"
#include "worker/agent/agent.h"
#include "worker/agent/devices/devices.h"
#include "worker/launch/grant.h"

namespace tune::cli {

namespace {

/// What an engine gave bounds what the agent hands out.
AgentCommand within_grant(AgentCommand options, const launch::Grant& grant) {
    if (const std::string text = launch::grant_text(grant); !text.empty()) log_info(text);
    const int allowed = static_cast<int>(worker::allowed_cores().size());
    if (grant.cpus && *grant.cpus < allowed)
        options.cpus = options.cpus > 0 ? std::min(options.cpus, *grant.cpus) : *grant.cpus;
    if (options.cpus > allowed) options.cpus = 0;  // narrowed by the engine's own mask
    if (grant.has_gpus && !*grant.has_gpus) options.no_gpus = true;
    return options;
}

/// "UUID" or "UUID=80GB".
Result<tuner::GpuFacts> gpu_from(const std::string& text) {
    const std::size_t equals = text.find('=');
    tuner::GpuFacts gpu{.uuid = text.substr(0, equals)};
    if (gpu.uuid.empty())
        return Error{Code::kInvalidParameterValue,
                     "--gpus: expected UUID or UUID=MEMORY, found '" + text + "'"};
    if (equals == std::string::npos) return gpu;
    TUNE_TRY(bytes, tuner::parse_bytes(text.substr(equals + 1)));
    gpu.bytes = bytes;
    return gpu;
}

Result<worker::AgentOptions> agent_options(const AgentCommand& options) {
    worker::AgentOptions made{.server_url = options.server,
                              .state_dir = options.state,
                              .slots = options.slots,
                              .cpus = options.cpus,
                              .labels = options.labels,
                              .address = options.address,
                              .use_gpus = !options.no_gpus,
                              .checkpoint_root = options.checkpoints};
    for (const std::string& text : options.gpus) {
        TUNE_TRY(gpu, gpu_from(text));
        gpu.index = static_cast<int>(made.gpus.size());
        made.gpus.push_back(gpu.uuid);
        made.gpu_facts.push_back(std::move(gpu));
    }
    if (!options.memory.empty()) {
        TUNE_TRY(bytes, tuner::parse_bytes(options.memory));
        made.memory_bytes = bytes;
    }
    return made;
}

}  // namespace

/// The first signal stops the trials, which are run again elsewhere; the second kills them.
int run_agent(const AgentCommand& command) {
    Interrupts interrupts;
    if (const char* file = std::getenv("TUNE_TOKEN_FILE"); file != nullptr && *file != '\0')
        if (const Result<std::string> token = tracker::read_token_file(file); !token)
            return fail(token.error());
    const AgentCommand options = within_grant(command, launch::own_grant());
    auto wanted = agent_options(options);
    if (!wanted) return fail(wanted.error());
    const auto agent = worker::Agent::create(std::move(wanted).value());
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
