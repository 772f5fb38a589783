// The engine `slurm`, by its commands: agents are tasks of job arrays, a gang is one job of several
// nodes, and inside an allocation they are steps of it. Jobs carry group and study in their
// comment, by which they are found again. The commands are used rather than slurmrestd because
// every site has them; what they print is read by slurm_text.

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "base/system/file.h"
#include "base/text/counted.h"
#include "base/text/text.h"
#include "worker/launch/agent_script.h"
#include "worker/launch/engine.h"
#include "worker/launch/option_rows.h"
#include "worker/launch/program.h"
#include "worker/launch/slurm/slurm_steps.h"
#include "worker/launch/slurm/slurm_text.h"

namespace tune::launch {
namespace {

namespace slurm_fs = std::filesystem;

/// The oldest release whose commands know what is asked of them.
constexpr SlurmVersion kOldest = {20, 2};
constexpr std::size_t kSlurmLogLines = 20;
constexpr std::size_t kLogBytesMax = 4u << 20;
constexpr std::size_t kIdsAtOnce = 500;

struct SlurmSettings {
    std::string partition;
    std::string account;
    std::string qos;
    std::string constraint;
    std::string gpu_type;
    std::string memory;
    std::int64_t notice_ms = 60'000;
    bool inside = true;
    std::vector<std::string> sbatch;

    [[nodiscard]] bool operator==(const SlurmSettings&) const = default;
};

const tuner::OptionTable& slurm_options() {
    static const tuner::OptionTable kOptions = [] {
        using S = SlurmSettings;
        tuner::TableOf<S> table;
        table.text("partition", &S::partition, 256, "partition (default: Slurm's)");
        table.text("account", &S::account, 256, "account that pays");
        table.text("qos", &S::qos, 256, "quality of service");
        table.text("constraint", &S::constraint, 256, "features that the nodes must have");
        table.text("gpu_type", &S::gpu_type, 256, "type of the GPUs: a100");
        table.text("memory", &S::memory, 64, "memory of an agent, as --mem takes it: 16G");
        add_duration(table, "notice", &S::notice_ms,
                     "agents get SIGTERM so long before their time limit, and give their trials "
                     "back");
        add_flag(table, "inside", &S::inside,
                 "within an allocation (salloc, sbatch) agents are its steps, by srun; false: jobs "
                 "of their own");
        add_texts(table, "sbatch", &S::sbatch, 100, "more arguments of sbatch, or of srun inside");
        return table;
    }();
    return kOptions;
}

std::string slurm_variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

class SlurmEngine final : public Engine {
public:
    SlurmEngine(SlurmSettings settings, Launch launch)
        : settings_(std::move(settings)), launch_(std::move(launch)) {
        if (settings_.inside) allocation_ = slurm_variable("SLURM_JOB_ID");
    }

    Result<void> prepare() override {
        // Each question takes Slurm a tenth of a second; they do not depend on one another.
        auto later_nodes = std::async(std::launch::async, [this] { return find_nodes(); });
        auto later_config = std::async(std::launch::async, [] {
            return output_of({.arguments = {"scontrol", "show", "config"}});
        });
        TUNE_TRY_VOID(check_version());
        TUNE_TRY(nodes, later_nodes.get());
        TUNE_TRY_VOID(check_reach(nodes));
        TUNE_TRY_VOID(check_room(nodes));
        TUNE_TRY(config, later_config.get());
        array_max_ = config_number(config, "MaxArraySize").value_or(array_max_);
        TUNE_TRY_VOID(write_files());
        if (!allocation_.empty()) return {};
        // Slurm's own opinion of the whole request; nothing is submitted.
        std::vector<std::string> words = batch_words(1);
        words.insert(words.begin() + 1, "--test-only");
        const Result<std::string> tested = output_of({.arguments = words, .input = batch_script()});
        if (tested) return {};
        return Error{Code::kInvalidParameterValue,
                     "Slurm refuses these agents: " + tested.error().message};
    }

    Result<void> start(int count) override {
        TUNE_TRY_VOID(write_files());
        if (!allocation_.empty()) return start_steps(count);
        const int at_once = std::max(1, static_cast<int>(array_max_));
        for (int left = count; left > 0; left -= at_once)
            TUNE_TRY_VOID(output_of(
                {.arguments = batch_words(std::min(left, at_once)), .input = batch_script()}));
        return {};
    }

    Result<std::vector<AgentJob>> list() override {
        if (!allocation_.empty()) {
            TUNE_TRY(own, steps());
            return own.list(launch_);
        }
        std::vector<std::string> words = {
            "squeue", "-h", "-r", "-t", "all", "-u", std::to_string(geteuid())};
        words.insert(words.end(), {"-o", kSqueueFormat});
        if (!launch_.group.empty()) words.insert(words.end(), {"-n", launch_.group});
        TUNE_TRY(text, output_of({.arguments = words}));
        return parse_squeue(text);
    }

    Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) override {
        if (!allocation_.empty()) {
            TUNE_TRY(own, steps());
            return own.stop(jobs, kind);
        }
        for (std::size_t begin = 0; begin < jobs.size(); begin += kIdsAtOnce) {
            const auto some = jobs.subspan(begin, std::min(kIdsAtOnce, jobs.size() - begin));
            TUNE_TRY_VOID(stop_some(some, kind));
        }
        return {};
    }

    std::string last_output(const AgentJob& job) override {
        std::string path = log_path(job.id);
        if (!allocation_.empty()) {
            const auto own = steps();
            if (own) path = own->log_path(job);
        }
        const Result<std::string> text = read_file(path, kLogBytesMax);
        return text ? last_lines(*text, kSlurmLogLines) : std::string();
    }

    void clear() override {
        std::error_code ignored;
        if (!token_path_.empty()) slurm_fs::remove(token_path_, ignored);
        if (allocation_.empty()) return;
        if (const auto own = steps()) own->clear(launch_.group);
    }

private:
    static Result<void> check_version() {
        Result<std::string> text = output_of({.arguments = {"sbatch", "--version"}});
        if (!text && text.error().code == Code::kResourceDoesNotExist)
            return Error{Code::kInvalidParameterValue,
                         "there is no `sbatch` here: run this on a machine from which jobs are "
                         "submitted to Slurm"};
        if (!text) return text.error();
        const auto version = parse_slurm_version(*text);
        if (!version)
            return Error{Code::kInvalidParameterValue,
                         "sbatch is not Slurm's; its --version says: " + last_lines(*text, 1)};
        if (version->major > kOldest.major ||
            (version->major == kOldest.major && version->minor >= kOldest.minor))
            return {};
        return Error{Code::kInvalidParameterValue,
                     "Slurm " + std::string(trimmed(*text)) +
                         " is not supported; agents need 20.02 or later"};
    }

    Result<std::vector<SlurmNode>> find_nodes() {
        std::vector<std::string> words = {"sinfo", "-h", "-N", "-o", kSinfoFormat};
        if (!settings_.partition.empty()) words.insert(words.end(), {"-p", settings_.partition});
        TUNE_TRY(text, output_of({.arguments = words}));
        std::vector<SlurmNode> nodes = parse_sinfo(text);
        if (!nodes.empty()) return nodes;
        TUNE_TRY(names, output_of({.arguments = {"sinfo", "-h", "-o", "%R"}}));
        std::replace(names.begin(), names.end(), '\n', ' ');
        return Error{Code::kInvalidParameterValue, "Slurm has no partition '" +
                                                       settings_.partition +
                                                       "'; it has: " + std::string(trimmed(names))};
    }

    [[nodiscard]] Result<void> check_reach(const std::vector<SlurmNode>& nodes) const {
        if (!launch_.agents.server.empty() || !is_loopback_url(launch_.server_url)) return {};
        char own[256] = {};
        gethostname(own, sizeof own - 1);
        for (const SlurmNode& node : nodes)
            if (node.host != own && node.host != "localhost")
                return unreachable_server(launch_.server_url,
                                          "the nodes of Slurm (" + node.host + ", ...)");
        return {};
    }

    /// What would wait for ever is said at once.
    [[nodiscard]] Result<void> check_room(const std::vector<SlurmNode>& nodes) const {
        const AgentSettings& agents = launch_.agents;
        const std::string where =
            settings_.partition.empty() ? std::string("Slurm") : "partition " + settings_.partition;
        int usable = 0;
        int fitting = 0;
        int gpus_max = 0;
        for (const SlurmNode& node : nodes) {
            gpus_max = std::max(gpus_max, node.gpus);
            if (!node.is_usable()) continue;
            ++usable;
            if (node.gpus >= agents.gpus && node.cpus >= agents.cpus) ++fitting;
        }
        if (agents.gpus > gpus_max)
            return Error{Code::kInvalidParameterValue,
                         "no node of " + where + " has " + counted(agents.gpus, "GPU") +
                             "; the most is " + std::to_string(gpus_max)};
        if (agents.nodes > fitting)
            return Error{Code::kInvalidParameterValue,
                         "a gang of " + counted(agents.nodes, "agent") + " needs as many nodes; " +
                             where + " has " + counted(fitting, "node") + " for it (" +
                             std::to_string(usable) + " of " + std::to_string(nodes.size()) +
                             " are up)"};
        return {};
    }

    Result<void> write_files() {
        TUNE_TRY(state, local_state_folder(launch_.agents));
        TUNE_TRY(program, local_program(launch_.agents));
        std::error_code error;
        slurm_fs::create_directories(state + "/logs", error);
        if (error)
            return Error{Code::kPermissionDenied,
                         "cannot make the folder " + state + "/logs: " + error.message()};
        TUNE_TRY(token, write_token_file(state, launch_));
        state_ = state;
        program_ = program;
        token_path_ = token;
        return {};
    }

    [[nodiscard]] std::string script_of_agent() const {
        const AgentSettings& agents = launch_.agents;
        return agent_script(
            launch_, {.engine = "slurm",
                      .url = agents.server.empty() ? launch_.server_url : agents.server,
                      .program_word = shell_quoted(program_),
                      .state_word = shell_quoted(state_),
                      .name_word = "slurm-$SLURM_JOB_ID.${SLURM_STEP_ID:-b}.${SLURM_PROCID:-0}"
                                   "-r${SLURM_RESTART_COUNT:-0}",
                      .token_file_word = token_path_.empty() ? "" : shell_quoted(token_path_)});
    }

    [[nodiscard]] std::string batch_script() const {
        const std::string script = script_of_agent();
        if (launch_.agents.nodes == 1) return "#!/bin/sh\n" + script;
        // Those of a gang end together too: with one lost the others hold their nodes for nothing.
        return "#!/bin/sh\nexec srun --kill-on-bad-exit=1 --export=ALL sh -c " +
               shell_quoted(script) + "\n";
    }

    /// What batch jobs and steps ask for alike.
    void add_resources(std::vector<std::string>& words) const {
        const AgentSettings& agents = launch_.agents;
        words.push_back("--nodes=" + std::to_string(agents.nodes));
        words.emplace_back("--ntasks-per-node=1");
        if (agents.cpus > 0) words.push_back("--cpus-per-task=" + std::to_string(agents.cpus));
        if (agents.gpus > 0)
            words.push_back(
                "--gres=gpu:" + (settings_.gpu_type.empty() ? "" : settings_.gpu_type + ":") +
                std::to_string(agents.gpus));
        if (!settings_.memory.empty()) words.push_back("--mem=" + settings_.memory);
        words.insert(words.end(), settings_.sbatch.begin(), settings_.sbatch.end());
    }

    [[nodiscard]] std::vector<std::string> batch_words(int count) const {
        const AgentSettings& agents = launch_.agents;
        std::vector<std::string> words = {"sbatch", "--parsable", "--requeue", "--open-mode=append",
                                          "--input=/dev/null"};
        words.push_back("--job-name=" + launch_.group);
        words.push_back("--comment=" + comment_of(launch_));
        // Nothing of this environment but these: it may hold tokens.
        words.emplace_back(
            "--export=HOME,USER,LOGNAME,SHELL,PATH,LANG,LD_LIBRARY_PATH,TUNE_CA_FILE");
        if (array_max_ > 0) {
            const int bound = std::max(1, agents.agents / agents.nodes);
            words.push_back("--array=0-" + std::to_string(count - 1) + "%" + std::to_string(bound));
        }
        words.push_back("--output=" + state_ + "/logs/%x-" + (array_max_ > 0 ? "%A_%a" : "%j") +
                        ".log");
        const std::pair<const char*, const std::string*> texts[] = {
            {"--partition=", &settings_.partition},
            {"--account=", &settings_.account},
            {"--qos=", &settings_.qos},
            {"--constraint=", &settings_.constraint}};
        for (const auto& [flag, text] : texts)
            if (!text->empty()) words.push_back(flag + *text);
        if (agents.time_limit_ms > 0)
            words.push_back("--time=" + slurm_time(agents.time_limit_ms + settings_.notice_ms));
        // To the batch shell, which is the agent; the agents of a gang are steps.
        words.push_back(std::string("--signal=") + (agents.nodes == 1 ? "B:" : "") + "TERM@" +
                        std::to_string(settings_.notice_ms / 1000));
        add_resources(words);
        return words;
    }

    [[nodiscard]] Result<SlurmSteps> steps() const {
        TUNE_TRY(state, local_state_folder(launch_.agents));
        return SlurmSteps(allocation_, state + "/steps-" + allocation_);
    }

    Result<void> start_steps(int count) {
        TUNE_TRY(own, steps());
        std::vector<std::string> words = {"--exact", "--kill-on-bad-exit=1"};
        add_resources(words);
        words.push_back("--ntasks=" + std::to_string(launch_.agents.nodes));
        for (int i = 0; i < count; ++i) TUNE_TRY_VOID(own.start(launch_, words, script_of_agent()));
        return {};
    }

    Result<void> stop_some(std::span<const AgentJob> jobs, StopKind kind) const {
        std::vector<std::string> ids;
        for (const AgentJob& job : jobs) ids.push_back(job.id);
        const auto cancel = [&ids](const std::vector<std::string>& flags) {
            std::vector<std::string> words = {"scancel", "--quiet"};
            words.insert(words.end(), flags.begin(), flags.end());
            words.insert(words.end(), ids.begin(), ids.end());
            return run_program({.arguments = words});
        };
        constexpr std::array<const char*, 3> kSignals = {"--signal=INT", "--signal=TERM",
                                                         "--signal=KILL"};
        const std::string signal = kSignals[static_cast<std::size_t>(kind)];
        if (kind == StopKind::kDrain) {
            TUNE_TRY_VOID(cancel({"--state=PENDING"}));
            TUNE_TRY_VOID(cancel({signal, "--full"}));
            return {};
        }
        TUNE_TRY(ended, cancel({}));  // waiting ones are gone; running ones get SIGTERM
        if (ended.exit_code != 0)
            return Error{Code::kInvalidState, "scancel: " + complaint_of(ended)};
        if (kind == StopKind::kKill) TUNE_TRY_VOID(cancel({signal, "--full"}));
        return {};
    }

    [[nodiscard]] std::string log_path(const std::string& id) const {
        const std::string state =
            state_.empty() ? local_state_folder(launch_.agents).value_or("") : state_;
        return state + "/logs/" + launch_.group + "-" + id + ".log";
    }

    SlurmSettings settings_;
    Launch launch_;
    std::string allocation_;  // the job that we run in; empty: agents are jobs of their own
    long array_max_ = 1001;   // Slurm's default of MaxArraySize; 0: it has no arrays
    std::string state_;
    std::string program_;
    std::string token_path_;
};

Result<std::unique_ptr<Engine>> create_slurm(const tuner::Fields& fields, Launch launch) {
    SlurmSettings settings;
    TUNE_TRY_VOID(slurm_options().read(fields, &settings));
    return std::unique_ptr<Engine>(
        std::make_unique<SlurmEngine>(std::move(settings), std::move(launch)));
}

}  // namespace

extern const EngineKind kSlurmEngine;
const EngineKind kSlurmEngine = {"slurm", "jobs of a Slurm cluster", slurm_options, create_slurm};

}  // namespace tune::launch
