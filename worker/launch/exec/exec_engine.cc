// The engine `exec`: a site's own script says how agents are started, listed and stopped, by a
// contract of five verbs, variables and lines of text (docs/engines/exec.md), which a shell script
// can keep without a parser.

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "base/system/file.h"
#include "worker/launch/agent_script.h"
#include "worker/launch/engine.h"
#include "worker/launch/option_rows.h"
#include "worker/launch/program.h"

namespace tune::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kScriptTime_ms = 120'000;
constexpr std::size_t kLogLines = 20;

struct ExecSettings {
    std::string script;
    bool same_host = false;
    std::map<std::string, std::string> env;

    [[nodiscard]] bool operator==(const ExecSettings&) const = default;
};

Result<void> read_exec_env(const tuner::Fields& fields, ExecSettings& settings) {
    const tuner::Node* node = fields.find("env");
    if (node == nullptr) return {};
    if (node->type != tuner::Node::Type::kMap)
        return tuner::error_at(
            node->place, fields.path_of("env"),
            "expected a map such as {QUEUE: long}, found " + tuner::describe(*node));
    for (const tuner::Entry& entry : node->entries) {
        const Json value = tuner::to_json(entry.value);
        settings.env[entry.key] = value.is_string() ? value.get<std::string>() : to_text(value);
    }
    return {};
}

const tuner::OptionTable& exec_options() {
    static const tuner::OptionTable kOptions = [] {
        using S = ExecSettings;
        tuner::TableOf<S> table;
        table.text("script", &S::script, 4096, "the site's script or program")
            .must_be_given("a path");
        add_flag(table, "same_host", &S::same_host,
                 "its agents run on this machine, so that they reach a server on loopback");
        table.custom("env",
                     {.type = "map of texts",
                      .schema = R"({"type": "object"})",
                      .api = "object",
                      .read = read_exec_env,
                      .write = [](const S& settings, Json& json) { json["env"] = settings.env; }},
                     "variables for the script");
        return table;
    }();
    return kOptions;
}

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    return cells;
}

std::optional<AgentJob::State> job_state_of(const std::string& word) {
    for (const auto state : {AgentJob::State::kPending, AgentJob::State::kRunning,
                             AgentJob::State::kEnded, AgentJob::State::kFailed})
        if (state_name(state) == word) return state;
    return std::nullopt;
}

class ExecEngine final : public Engine {
public:
    ExecEngine(ExecSettings settings, Launch launch)
        : settings_(std::move(settings)), launch_(std::move(launch)) {}

    Result<void> prepare() override {
        std::error_code ignored;
        const fs::path script = fs::absolute(settings_.script, ignored);
        if (access(script.c_str(), X_OK) != 0)
            return Error{
                Code::kInvalidParameterValue,
                "script: '" + script.string() + "' is not there or not executable (chmod +x)"};
        settings_.script = script.string();
        const bool is_named = !launch_.agents.server.empty();
        if (!is_named && !settings_.same_host && is_loopback_url(launch_.server_url)) {
            Error error =
                unreachable_server(launch_.server_url, "the hosts of " + settings_.script);
            error.message += "; where its agents run on this machine, say 'same_host: true'";
            return error;
        }
        TUNE_TRY_VOID(write_script());
        TUNE_TRY_VOID(call("check"));
        return {};
    }

    Result<void> start(int count) override {
        TUNE_TRY_VOID(write_script());
        TUNE_TRY_VOID(call("start", {}, count));
        return {};
    }

    Result<std::vector<AgentJob>> list() override {
        TUNE_TRY(output, call("list"));
        std::vector<AgentJob> jobs;
        std::istringstream lines(output);
        for (std::string line; std::getline(lines, line);) {
            if (line.empty()) continue;
            std::vector<std::string> cells = cells_of(line);
            cells.resize(6);
            const auto state = job_state_of(cells[1]);
            if (!state)
                return Error{Code::kDataLoss, settings_.script +
                                                  " list: expected ID, a tab and pending, running, "
                                                  "ended or failed; found: " +
                                                  line};
            jobs.push_back({.id = cells[0],
                            .group = cells[4].empty() ? launch_.group : cells[4],
                            .study = cells[5].empty() ? launch_.study : cells[5],
                            .state = *state,
                            .host = cells[2],
                            .reason = cells[3],
                            .agents = launch_.agents.nodes});
        }
        return jobs;
    }

    Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) override {
        std::vector<std::string> ids = {std::string(stop_name(kind))};
        for (const AgentJob& job : jobs) ids.push_back(job.id);
        TUNE_TRY_VOID(call("stop", ids));
        return {};
    }

    std::string last_output(const AgentJob& job) override {
        return last_lines(call("log", {job.id}).value_or(""), kLogLines);
    }

    void clear() override {
        std::error_code ignored;
        if (!script_path_.empty()) fs::remove(script_path_, ignored);
        if (!token_path_.empty()) fs::remove(token_path_, ignored);
    }

private:
    Result<void> write_script() {
        TUNE_TRY(state, local_state_folder(launch_.agents));
        TUNE_TRY(program, local_program(launch_.agents));
        TUNE_TRY(token, write_token_file(state, launch_));
        token_path_ = token;
        state_ = state;
        const AgentSettings& agents = launch_.agents;
        const ScriptParts parts = {
            .engine = "exec",
            .url = agents.server.empty() ? launch_.server_url : agents.server,
            .program_word = shell_quoted(program),
            .state_word = shell_quoted(state),
            .name_word = "\"${TUNE_AGENT_NAME:-$(hostname)-$$}\"",
            .token_file_word = token.empty() ? "" : shell_quoted(token),
            .shares_gpus = true};
        std::error_code error;
        fs::create_directories(state, error);
        script_path_ = state + "/" + launch_.group + ".sh";
        TUNE_TRY_VOID(
            write_file_atomic(script_path_, "#!/bin/sh\n" + agent_script(launch_, parts)));
        if (chmod(script_path_.c_str(), 0700) != 0)
            return Error{Code::kPermissionDenied, "cannot make " + script_path_ + " executable"};
        return {};
    }

    Result<std::string> call(const std::string& verb, const std::vector<std::string>& words = {},
                             int count = 0) {
        ProgramCall call;
        call.arguments = {settings_.script, verb};
        call.arguments.insert(call.arguments.end(), words.begin(), words.end());
        call.timeout_ms = kScriptTime_ms;
        const AgentSettings& agents = launch_.agents;
        call.environment = {
            {"TUNE_LAUNCH", launch_.group},
            {"TUNE_LAUNCH_STUDY", launch_.study},
            {"TUNE_LAUNCH_COUNT", std::to_string(count)},
            {"TUNE_LAUNCH_STATE", state_},
            {"TUNE_AGENT_SCRIPT", script_path_},
            {"TUNE_AGENT_CPUS", std::to_string(agents.cpus)},
            {"TUNE_AGENT_GPUS", std::to_string(agents.gpus)},
            {"TUNE_AGENT_NODES", std::to_string(agents.nodes)},
            {"TUNE_AGENT_TIME_LIMIT_S", std::to_string(agents.time_limit_ms / 1000)}};
        call.removed = {"TUNE_TOKEN"};
        for (const auto& [name, value] : settings_.env) call.environment.emplace_back(name, value);
        if (state_.empty()) {
            TUNE_TRY(state, local_state_folder(agents));
            state_ = state;
            call.environment[3].second = state;
        }
        Result<std::string> output = output_of(call);
        if (!output) return Error{output.error().code, output.error().message + " (" + verb + ")"};
        return output;
    }

    ExecSettings settings_;
    Launch launch_;
    std::string state_;
    std::string script_path_;
    std::string token_path_;
};

Result<std::unique_ptr<Engine>> create_exec(const tuner::Fields& fields, Launch launch) {
    TUNE_TRY_VOID(exec_options().check_given(fields.node(), fields.path()));
    ExecSettings settings;
    TUNE_TRY_VOID(exec_options().read(fields, &settings));
    return std::unique_ptr<Engine>(
        std::make_unique<ExecEngine>(std::move(settings), std::move(launch)));
}

}  // namespace

extern const EngineKind kExecEngine;
const EngineKind kExecEngine = {"exec", "a script of your own that starts agents", exec_options,
                                create_exec, /*starts_gangs=*/false};

}  // namespace tune::launch
