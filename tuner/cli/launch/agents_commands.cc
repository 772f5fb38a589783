// `tune agents up | down | ls`. Nothing is remembered here: the engines themselves (Slurm,
// Kubernetes, ssh, scripts) are asked which agents there are, so the list is right whoever started
// or ended them.
//
// `up` starts as many as are missing. `down` repeats until the engine lists none: each agent is
// asked once, and agents that come up meanwhile are asked, too. Draining waits for as long as
// trials take; stopping has a limit of three minutes.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/text/counted.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/launch/agent_fleet.h"
#include "tuner/cli/launch/agents_verbs.h"
#include "tuner/cli/launch/engine_choice.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

constexpr int kDownPoll_ms = 500;
constexpr std::int64_t kDownPatience_ms = 180'000;

using launch::AgentJob;

/// The engine that was named, else all of the file.
Result<std::vector<EngineChoice>> engines_of(const AgentsArguments& options) {
    TUNE_TRY(choice, choose_engine(options.engine, {}));
    if (choice) return std::vector<EngineChoice>{std::move(*choice)};
    TUNE_TRY(known, known_engines(options.engine));
    if (!known.empty()) return known;
    return Error{Code::kInvalidParameterValue,
                 "name an engine with --on (slurm, ssh, k8s, exec), or describe yours in "
                 "engines.yaml"};
}

bool is_alive(const AgentJob& job) {
    return job.state == AgentJob::State::kPending || job.state == AgentJob::State::kRunning;
}

/// Of one engine; of one study, if one is named.
Result<std::vector<AgentJob>> jobs_of(launch::Engine& engine, const std::string& study) {
    TUNE_TRY(jobs, engine.list());
    std::erase_if(jobs,
                  [&study](const AgentJob& job) { return !study.empty() && job.study != study; });
    return jobs;
}

Json json_of(const AgentJob& job, const std::string& engine) {
    return {{"engine", engine},     {"id", job.id},
            {"study", job.study},   {"group", job.group},
            {"agents", job.agents}, {"state", std::string(launch::state_name(job.state))},
            {"host", job.host},     {"reason", job.reason}};
}

Result<void> bring_up(const AgentsArguments& options) {
    TUNE_TRY(choice, choose_engine(options.engine, {}));
    if (!choice)
        return Error{Code::kInvalidParameterValue, "name the engine with --on, e.g. --on slurm"};
    TUNE_TRY(backend, find_backend(options.server, options.data));
    const std::string url = backend->where();
    if (!url.starts_with("http"))
        return Error{Code::kInvalidState,
                     "no server runs for the agents to work for: start `tune "
                     "server`, or name one with --server"};
    TUNE_TRY(settings, launch::read_agent_settings(choice->settings, choice->path));
    launch::Launch agents{.group = launch::group_name(options.study, url),
                          .study = options.study,
                          .server_url = url,
                          .stays = false};
    const std::string group = agents.group;
    TUNE_TRY(token, token_for_agents(url, group, settings));
    agents.token = std::move(token);
    TUNE_TRY(engine, launch::make_engine(choice->settings, choice->path, std::move(agents)));
    TUNE_TRY_VOID(engine->prepare());
    TUNE_TRY(before, engine->list());
    std::erase_if(before, [](const AgentJob& job) { return !is_alive(job); });
    int running = 0;
    for (const AgentJob& job : before) running += job.agents;
    const int bound = settings.agents - settings.agents % settings.nodes;
    const int unit = engine->starts_singly() ? 1 : settings.nodes;
    const int missing = (bound - running) / unit;
    if (missing > 0) TUNE_TRY_VOID(engine->start(missing));
    const int started = std::max(0, missing) * unit;
    if (options.json)
        print_json({{"started", started}, {"group", group}, {"server", url}});
    else
        print((started == 0 ? "all " + counted(running, "agent") + " are up already"
                            : counted(started, "agent") + " asked for on " + choice->name) +
              "; `tune agents ls --on " + choice->name + "` shows them\n");
    return {};
}

Result<void> show_all(const AgentsArguments& options) {
    TUNE_TRY(choices, engines_of(options));
    Json list = Json::array();
    Table table;
    for (const char* column : {"engine", "agent", "study", "state", "host", "reason"})
        table.column(column);
    for (const EngineChoice& choice : choices) {
        TUNE_TRY(engine, launch::make_engine(choice.settings, choice.path, {}));
        TUNE_TRY(jobs, jobs_of(*engine, options.study));
        for (const AgentJob& job : jobs) {
            list.push_back(json_of(job, choice.name));
            table.row({choice.name, job.id, printable(job.study),
                       std::string(launch::state_name(job.state)), job.host,
                       printable(job.reason)});
        }
    }
    if (options.json)
        print_json({{"agents", list}});
    else
        print(list.empty() ? "no agents\n" : table.text());
    return {};
}

struct Ended {
    std::set<std::string> groups = {};
    int agents = 0;
};

/// Until the engine lists none of them. True: none is left.
Result<bool> bring_down_on(launch::Engine& engine, const AgentsArguments& options,
                           Interrupts& interrupts, Ended& ended) {
    const auto kind = options.kill    ? launch::StopKind::kKill
                      : options.drain ? launch::StopKind::kDrain
                                      : launch::StopKind::kStop;
    std::set<std::string> asked;
    for (std::int64_t waited_ms = 0; options.drain || waited_ms < kDownPatience_ms;
         waited_ms += kDownPoll_ms) {
        TUNE_TRY(jobs, jobs_of(engine, options.study));
        std::erase_if(jobs,
                      [](const AgentJob& job) { return !is_alive(job) || job.is_unreachable; });
        if (jobs.empty()) return true;
        for (const AgentJob& job : jobs) ended.groups.insert(job.group);
        std::vector<AgentJob> fresh;
        for (const AgentJob& job : jobs)
            if (asked.insert(job.id).second) fresh.push_back(job);
        for (const AgentJob& job : fresh) ended.agents += job.agents;
        if (!fresh.empty()) TUNE_TRY_VOID(engine.stop(fresh, kind));
        if (interrupts.wait(kDownPoll_ms) == Interrupts::Event::kSignal) return false;
    }
    return false;
}

Result<void> bring_down(const AgentsArguments& options) {
    TUNE_TRY(choices, engines_of(options));
    Interrupts interrupts;
    Ended ended;
    bool is_whole = true;
    for (const EngineChoice& choice : choices) {
        TUNE_TRY(engine, launch::make_engine(choice.settings, choice.path, {}));
        TUNE_TRY(is_down, bring_down_on(*engine, options, interrupts, ended));
        is_whole = is_whole && is_down;
    }
    if (const auto backend = find_backend(options.server, options.data);
        backend && (*backend)->where().starts_with("http"))
        for (const std::string& group : ended.groups) revoke_tokens((*backend)->where(), group);
    if (!is_whole)
        return Error{Code::kDeadlineExceeded,
                     "some agents have not ended yet; `tune agents ls` shows them, and --kill ends "
                     "them at once"};
    if (options.json)
        print_json({{"ended", ended.agents}});
    else
        print(counted(ended.agents, "agent") + " ended\n");
    return {};
}

int code_of(const Result<void>& done, const AgentsArguments& options) {
    return done ? kExitOk : fail(done.error(), options.json);
}

}  // namespace

int run_agents_up(const AgentsArguments& options) {
    return code_of(bring_up(options), options);
}

int run_agents_down(const AgentsArguments& options) {
    return code_of(bring_down(options), options);
}

int run_agents_ls(const AgentsArguments& options) {
    return code_of(show_all(options), options);
}

}  // namespace tune::cli
