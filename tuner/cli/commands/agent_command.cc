// `tune agent`.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/log.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/options/bytes.h"
#include "tuner/options/duration.h"
#include "worker/agent/agent.h"

namespace tune::cli {
namespace {

using worker::StopMode;

/// A number is how many, all else are names.
void read_gpus(const std::string& text, worker::AgentOptions& agent) {
    const bool is_number =
        !text.empty() && text.size() < 6 &&
        std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) {
        agent.gpus_max = std::atoi(text.c_str());
        return;
    }
    std::istringstream names(text);
    for (std::string name; std::getline(names, name, ',');)
        if (!name.empty()) agent.gpus.push_back(name);
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

Result<worker::AgentOptions> agent_options(const AgentCommand& options) {
    worker::AgentOptions agent;
    agent.server_url = options.server;
    agent.state_dir = options.state;
    agent.slots = options.slots;
    agent.cpus = options.cpus;
    agent.use_gpus = !options.no_gpus;
    if (options.gpus) read_gpus(*options.gpus, agent);
    if (options.foreign_gpu_use == "avoid") agent.foreign_use = worker::ForeignUse::kAvoid;
    agent.labels = options.labels;
    TUNE_TRY(idle_exit_ms, read_time("--idle-exit", options.idle_exit));
    agent.idle_exit_ms = idle_exit_ms;
    TUNE_TRY(time_limit_ms, read_time("--time-limit", options.time_limit));
    agent.time_limit_ms = time_limit_ms;
    agent.cgroup = options.cgroup;
    for (const std::string& text : options.log_rules) {
        TUNE_TRY(rule, read_rule(text));
        agent.log_rules.push_back(std::move(rule));
    }
    agent.trial_processes = options.trial_processes;
    if (options.trial_memory) {
        TUNE_TRY(bytes, tuner::parse_bytes(*options.trial_memory));
        agent.trial_memory_bytes = bytes;
    }
    return agent;
}

/// What one more signal asks for. Who presses Ctrl-C can wait for what runs; who sends SIGTERM, a
/// service manager or a batch system, will not.
StopMode next_mode(std::optional<StopMode> mode, int signal) {
    if (!mode) return signal == SIGINT ? StopMode::kDrain : StopMode::kStop;
    return *mode == StopMode::kDrain ? StopMode::kStop : StopMode::kKill;
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
int run_agent(const AgentCommand& options) {
    Interrupts interrupts;
    Result<worker::AgentOptions> chosen = agent_options(options);
    if (!chosen) return fail(chosen.error());
    const auto agent = worker::Agent::create(std::move(*chosen));
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
