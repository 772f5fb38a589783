// `tune agent`: options and an engine's grant into AgentOptions, and signals into ways to stop.
//
// The first Ctrl-C drains, because who is at the keyboard can wait for what runs; SIGTERM comes
// from a service manager or batch system, which will not, and stops the trials at once, so that
// they are run again elsewhere. One more signal is always one step harder, to the kill.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "tracker/client/local_servers.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/options/bytes.h"
#include "tuner/options/duration.h"
#include "worker/agent/agent.h"
#include "worker/agent/devices/devices.h"
#include "worker/launch/grant.h"

namespace tune::cli {
namespace {

using worker::StopMode;

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

/// A number is how many, all else are names.
Result<void> read_gpus(const std::vector<std::string>& words, worker::AgentOptions& agent) {
    const auto is_number = [](const std::string& text) {
        return !text.empty() && text.size() < 6 &&
               std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (words.size() == 1 && is_number(words.front())) {
        agent.gpus_max = std::atoi(words.front().c_str());
        return {};
    }
    for (const std::string& text : words) {
        TUNE_TRY(gpu, gpu_from(text));
        gpu.index = static_cast<int>(agent.gpus.size());
        agent.gpus.push_back(gpu.uuid);
        agent.gpu_facts.push_back(std::move(gpu));
    }
    return {};
}

Result<std::int64_t> read_time(const char* option, const std::optional<std::string>& text) {
    if (!text) return std::int64_t{0};
    TUNE_TRY(time_ms, tuner::parse_duration_ms(*text));
    if (time_ms <= 0)
        return Error{Code::kInvalidParameterValue,
                     std::string(option) + " must be a time above 0, such as 10min"};
    return time_ms;
}

Result<tuner::LogRule> read_rule(const std::string& text) {
    const std::size_t colon = text.find(':');
    for (const auto& [action, name] : tuner::kLogActions)
        if (colon != std::string::npos && text.substr(0, colon) == name)
            return tuner::LogRule{text.substr(colon + 1), action};
    return Error{Code::kInvalidParameterValue,
                 "--log-rule expects ACTION:PATTERN with retry, no_retry, exclude_device or "
                 "exclude_host as action, found '" +
                     text + "'"};
}

Result<void> read_limits(const AgentCommand& options, worker::AgentOptions& agent) {
    TUNE_TRY(idle_exit_ms, read_time("--idle-exit", options.idle_exit));
    agent.idle_exit_ms = idle_exit_ms;
    TUNE_TRY(time_limit_ms, read_time("--time-limit", options.time_limit));
    agent.time_limit_ms = time_limit_ms;
    agent.cgroup = options.cgroup;
    agent.trial_processes = options.trial_processes;
    if (options.trial_memory) {
        TUNE_TRY(bytes, tuner::parse_bytes(*options.trial_memory));
        agent.trial_memory_bytes = bytes;
    }
    for (const std::string& text : options.log_rules) {
        TUNE_TRY(rule, read_rule(text));
        agent.log_rules.push_back(std::move(rule));
    }
    return {};
}

Result<worker::AgentOptions> agent_options(const AgentCommand& options) {
    worker::AgentOptions made;
    made.server_url = options.server;
    made.state_dir = options.state;
    made.slots = options.slots;
    made.cpus = options.cpus;
    made.labels = options.labels;
    made.address = options.address;
    made.use_gpus = !options.no_gpus;
    made.checkpoint_root = options.checkpoints;
    if (options.foreign_gpu_use == "avoid") made.foreign_use = worker::ForeignUse::kAvoid;
    TUNE_TRY_VOID(read_gpus(options.gpus, made));
    if (!options.memory.empty()) {
        TUNE_TRY(bytes, tuner::parse_bytes(options.memory));
        made.memory_bytes = bytes;
    }
    TUNE_TRY_VOID(read_limits(options, made));
    return made;
}

/// What one more signal asks for. Who presses Ctrl-C can wait for what runs; who sends SIGTERM, a
/// service manager or a batch system, will not. Only Ctrl-C makes it more urgent each time:
/// programs repeat SIGTERM, which must not cost the trials their checkpoints.
StopMode next_mode(std::optional<StopMode> mode, int signal) {
    if (!mode) return signal == SIGINT ? StopMode::kDrain : StopMode::kStop;
    if (*mode == StopMode::kDrain) return StopMode::kStop;
    return signal == SIGINT ? StopMode::kKill : *mode;
}

void say(StopMode mode) {
    switch (mode) {
        case StopMode::kDrain:
            return log_info(
                "no more trials are taken; the agent ends when those that run have ended. Press "
                "Ctrl-C again to stop them now: they will run again later");
        case StopMode::kStop:
            return log_info(
                "stopping; running trials will run again later. Press Ctrl-C again to kill them "
                "now");
        default: return;
    }
}

/// Until it stops, by a signal or by itself, and nothing runs any more.
void follow(worker::Agent& agent, Interrupts& interrupts) {
    std::optional<StopMode> mode;
    while (true) {
        const worker::AgentStatus status = agent.status();
        if (status.stopping && status.running == 0) return;
        if (interrupts.wait(-1) != Interrupts::Event::kSignal) continue;
        mode = next_mode(mode, interrupts.signal());
        agent.stop(*mode);
        say(*mode);
    }
}

}  // namespace

/// The first Ctrl-C drains, the second stops the trials, which are run again elsewhere, the third
/// kills them.
int run_agent(const AgentCommand& command) {
    Interrupts interrupts;
    outlive_log_readers();
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
    (*agent)->on_status([&](const worker::AgentStatus& status) {
        if (!status.connected && !status.last_error.empty() && status.last_error != last_error)
            log_warning(status.last_error);
        if (status.connected && !connected) log_info("connected");
        connected = status.connected;
        last_error = status.last_error;
        if (status.stopping) interrupts.wake();
    });
    const Result<void> started = (*agent)->start();
    if (!started) return fail(started.error());
    print("agent " + (*agent)->id() + " takes trials of " + options.server + " (" +
          std::to_string((*agent)->status().slots) + " at a time, state: " + options.state + ")\n");
    follow(**agent, interrupts);
    return (*agent)->wait() ? kExitOk : kExitFailed;
}

}  // namespace tune::cli
