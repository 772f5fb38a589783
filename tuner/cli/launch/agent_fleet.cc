// One thread looks at the engine when the demand changed and once a period, and publishes what it
// saw. A stop is a number of looks until the engine lists nothing any more: only then are the
// trials' processes gone and the token of no use.

#include "tuner/cli/launch/agent_fleet.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/clock.h"
#include "base/system/file.h"
#include "base/text/counted.h"
#include "base/text/percent.h"
#include "base/text/text.h"
#include "tracker/client/client.h"
#include "tracker/client/local_servers.h"
#include "tracker/client/mlflow_environment.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/terminal/study_text.h"

namespace tune::cli {
namespace {

constexpr const char* kTokensPath = "/api/2.0/tune/tokens";
/// Revoked when the agents are gone; this is for when nobody is left to do so.
constexpr std::int64_t kTokenLife_ms = std::int64_t{30} * 24 * 3600 * 1000;
/// Between two looks while agents end.
constexpr std::int64_t kEndPoll_ms = 500;
/// Without a bound on the trials: as many as the agents.
constexpr std::int64_t kManyTrials = 1'000'000'000;

/// The token works for agents: the server is asked before agents wait for it in vain.
Result<void> check_token(const std::string& url, const std::string& token,
                         const std::string& file) {
    TUNE_TRY(client, tracker::create_client({.url = url, .retries = 1}));
    TUNE_TRY(own, tracker::Client::create(
                      {.url = url, .retries = 1, .authorization = "Bearer " + token}));
    const Result<Json> answer = own->post("/api/2.0/tune/agents/register", Json::object());
    const bool is_refused = !answer && (answer.error().code == Code::kUnauthenticated ||
                                        answer.error().code == Code::kPermissionDenied);
    if (!is_refused) return {};
    return Error{Code::kInvalidParameterValue,
                 "the server does not take the token of " + file + " for agents (" +
                     answer.error().message +
                     "): it may have expired; make one with `tune token create --scope agent`"};
}

/// What a trial takes of each machine that it runs on.
struct MachineShare {
    int machines = 1;
    int processes = 1;
    int cpus = 0;
    int gpus = 0;
    int trials = 1;  // that run at once in what is a process
};

MachineShare share_on(const tuner::StudyConfig& config, int machines, int processes) {
    const tuner::ResourcesConfig& resources = config.resources;
    const bool has_whole_gpus = resources.gpu_memory_bytes == 0 && !resources.learns_gpu_memory;
    return {.machines = machines,
            .processes = processes,
            .cpus = std::max(config.budget.cpus_per_trial, resources.cpus * processes),
            .gpus = std::max(config.budget.gpus_per_trial,
                             has_whole_gpus ? resources.gpus * processes : resources.gpus),
            .trials = std::max(1, resources.pool)};
}

bool fits(const MachineShare& share, const launch::AgentSettings& agents) {
    return share.gpus <= agents.gpus && (agents.cpus == 0 || share.cpus <= agents.cpus);
}

/// Where the shape is left to the server, on as few machines as there can be of such agents.
MachineShare share_of(const tuner::StudyConfig& config, const launch::AgentSettings& agents) {
    const tuner::ResourcesConfig& resources = config.resources;
    if (resources.processes <= 1)
        return share_on(config, std::max(1, resources.nnodes), std::max(1, resources.nproc));
    MachineShare share;
    for (int machines = 1; machines <= std::min(agents.agents, resources.processes); ++machines) {
        if (resources.processes % machines != 0) continue;
        share = share_on(config, machines, resources.processes / machines);
        if (fits(share, agents)) break;
    }
    return share;
}

/// Agents for trials on several machines start together where the engine can do that: those that
/// came one by one would hold machines while others of their trial wait. A number of nodes that the
/// user gives is kept.
Json with_gangs(const EngineChoice& choice, const MachineShare& share) {
    Json settings = choice.settings;
    const launch::EngineKind* const kind = launch::find_engine(text_of(settings, "type"));
    if (share.machines > 1 && kind != nullptr && kind->starts_gangs && !settings.contains("nodes"))
        settings["nodes"] = share.machines;
    return settings;
}

/// What trials ask for and the agents never have.
Result<void> check_resources(const MachineShare& share, const launch::AgentSettings& agents) {
    const auto refuse = [](const std::string& wanted, const std::string& given, const char* key) {
        return Error{Code::kInvalidParameterValue, "a trial takes " + wanted + ", and " + given +
                                                       ": raise '" + key + "' of the engine"};
    };
    if (share.gpus > agents.gpus)
        return refuse(counted(share.gpus, "GPU"), "an agent has " + std::to_string(agents.gpus),
                      "gpus");
    if (agents.cpus > 0 && share.cpus > agents.cpus)
        return refuse(counted(share.cpus, "core"), "an agent has " + std::to_string(agents.cpus),
                      "cpus");
    if (share.machines > agents.agents)
        return refuse(counted(share.machines, "agent"),
                      "there are at most " + std::to_string(agents.agents), "agents");
    return {};
}

/// Trials that fit an agent at a time; at least 1.
int slots_for(const MachineShare& share, const launch::AgentSettings& agents) {
    // A process takes a place; more than there are take all.
    int slots = launch::slots_of(agents) / share.processes;
    if (share.gpus > 0) slots = std::min(slots, agents.gpus / share.gpus);
    if (share.cpus > 0 && agents.cpus > 0) slots = std::min(slots, agents.cpus / share.cpus);
    return std::max(1, slots) * share.trials;
}

}  // namespace

FleetDemand demand_of(const Json& study) {
    const Json counts = study.value("counts", Json::object());
    const auto running = counts.value("running", std::int64_t{0});
    FleetDemand demand{.done = ended_count(study)};
    if (text_of(study, "state") != "running") {
        demand.trials = running;
        return demand;
    }
    const Json budget = study.value("budget", Json::object());
    demand.trials = kManyTrials;
    const auto bound = [&](const char* key, std::int64_t used) {
        const auto found = budget.find(key);
        if (found == budget.end() || !found->is_number_integer()) return;
        demand.trials = std::min(demand.trials, found->get<std::int64_t>() - used);
    };
    bound("trials", demand.done);
    bound("parallel", 0);
    demand.trials = std::max(demand.trials, running);
    return demand;
}

Result<std::string> token_for_agents(const std::string& url, const std::string& group,
                                     const launch::AgentSettings& settings) {
    if (!settings.token_file.empty()) {
        TUNE_TRY(token, tracker::read_token_file(settings.token_file));
        TUNE_TRY_VOID(check_token(url, token, settings.token_file));
        return token;
    }
    TUNE_TRY(backend, remote_backend(url));
    const Result<Json> made = backend->post(
        kTokensPath, {{"scope", "agent"}, {"name", group}, {"lives_ms", kTokenLife_ms}});
    if (made) return text_of(*made, "secret");
    return Error{
        made.error().code,
        "cannot make a token for the agents: " + made.error().message +
            ". Whoever may make tokens can: `tune token create --scope agent`; name a file "
            "with it (chmod 600) as 'token_file'"};
}

void revoke_tokens(const std::string& url, const std::string& group) {
    const auto backend = remote_backend(url);
    if (!backend) return;
    const Result<Json> tokens = (*backend)->get(kTokensPath);
    if (!tokens || !tokens->contains("tokens")) return;
    for (const Json& token : (*tokens)["tokens"])
        if (text_of(token, "name") == group)
            static_cast<void>(
                (*backend)->remove(std::string(kTokensPath) + "/" +
                                   percent_encode(text_of(token, "token_id"), false)));
}

Result<std::unique_ptr<AgentFleet>> AgentFleet::open(const EngineChoice& choice,
                                                     const FleetPlace& place,
                                                     const tuner::StudyConfig& config,
                                                     std::function<void()> changed) {
    TUNE_TRY(as_given, launch::read_agent_settings(choice.settings, choice.path));
    const MachineShare share = share_of(config, as_given);
    TUNE_TRY_VOID(check_resources(share, as_given));
    const Json engine_settings = with_gangs(choice, share);
    TUNE_TRY(settings, launch::read_agent_settings(engine_settings, choice.path));
    launch::Launch agents{.group = launch::group_name(place.study, place.where),
                          .study = place.study,
                          .server_url = place.url};
    const std::string group = agents.group;
    // Those of a launcher that was killed stay until the end: its agents may use them.
    TUNE_TRY(token, token_for_agents(place.url, group, settings));
    agents.token = std::move(token);
    TUNE_TRY(engine, launch::make_engine(engine_settings, choice.path, std::move(agents)));
    if (const Result<void> prepared = engine->prepare(); !prepared) {
        revoke_tokens(place.url, group);
        return prepared.error();
    }
    // For the count; the engine has its own.
    settings.slots = slots_for(share, settings);
    settings.agents -= settings.agents % share.machines;
    return std::unique_ptr<AgentFleet>(new AgentFleet(std::move(engine), std::move(settings),
                                                      share.machines, {place.url, group},
                                                      std::move(changed)));
}

AgentFleet::AgentFleet(std::unique_ptr<launch::Engine> engine, launch::AgentSettings settings,
                       int machines, TokenOwner owner, std::function<void()> changed)
    : settings_(settings),
      fleet_(std::move(engine), std::move(settings)),
      machines_(machines),
      owner_(std::move(owner)),
      changed_(std::move(changed)) {}

AgentFleet::~AgentFleet() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
        news_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void AgentFleet::start(FleetDemand demand) {
    demand_ = demand;
    thread_ = std::thread([this] { run(); });
}

std::int64_t AgentFleet::slots_wanted(const FleetDemand& demand) const {
    if (demand.trials <= 0) return 0;
    // As many agents as a trial has machines run so many trials at a time as one has slots.
    const std::int64_t slots = settings_.slots;
    return (demand.trials + slots - 1) / slots * slots * machines_;
}

void AgentFleet::set_demand(FleetDemand demand) {
    const std::lock_guard lock(mutex_);
    // Only more or fewer agents are worth a look at once.
    const int before = launch::agents_wanted(slots_wanted(demand_), settings_);
    demand_ = demand;
    if (launch::agents_wanted(slots_wanted(demand), settings_) == before) return;
    has_demand_ = true;
    news_.notify_all();
}

void AgentFleet::stop(launch::StopKind kind) {
    const std::lock_guard lock(mutex_);
    if (stop_ && *stop_ == launch::StopKind::kKill) return;
    stop_ = kind;
    news_.notify_all();
}

bool AgentFleet::wait(std::int64_t patience_ms) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::milliseconds(patience_ms), [this] { return over_; });
    return over_;
}

launch::FleetView AgentFleet::view() const {
    const std::lock_guard lock(mutex_);
    return view_;
}

void AgentFleet::publish(launch::FleetView view) {
    {
        const std::lock_guard lock(mutex_);
        view_ = std::move(view);
    }
    changed_();
}

void AgentFleet::run() {
    std::unique_lock lock(mutex_);
    while (!quit_) {
        const FleetDemand demand = demand_;
        const std::optional<launch::StopKind> stop = stop_;
        has_demand_ = false;
        lock.unlock();
        bool is_over = false;
        if (stop)
            is_over = fleet_.end(*stop);
        else
            publish(fleet_.step(slots_wanted(demand), demand.done));
        if (is_over) revoke_tokens(owner_.url, owner_.group);
        lock.lock();
        if (is_over) {
            over_ = true;
            news_.notify_all();
            return;
        }
        const std::int64_t pause_ms = stop ? kEndPoll_ms : settings_.poll_ms;
        news_.wait_for(lock, std::chrono::milliseconds(pause_ms),
                       [&] { return quit_ || has_demand_ || stop_ != stop; });
    }
}

}  // namespace tune::cli
