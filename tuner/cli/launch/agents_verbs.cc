#include "tuner/cli/launch/agents_verbs.h"

#include <CLI/CLI.hpp>
#include <string>

#include "tuner/cli/source_flags.h"
#include "worker/launch/engine.h"

namespace tune::cli {
namespace {

struct AgentsVerb {
    const char* name;
    const char* summary;
    int (*call)(const AgentsArguments&);
};

CLI::App& add_agents_verb(CLI::App& group, const AgentsVerb& described, AgentsArguments& arguments,
                          std::function<int()>& chosen) {
    CLI::App& verb = *group.add_subcommand(described.name, described.summary);
    add_engine_flags(verb, arguments.engine);
    verb.add_option("--study", arguments.study, "only agents of this study");
    add_source(verb, arguments);
    verb.callback([&arguments, &chosen, call = described.call] {
        chosen = [&arguments, call] { return call(arguments); };
    });
    return verb;
}

}  // namespace

void add_engine_flags(CLI::App& verb, EngineFlags& flags) {
    std::string names;
    for (const launch::EngineKind* kind : launch::engine_kinds())
        names += (names.empty() ? "" : ",") + std::string(kind->name);
    verb.add_option("--on", flags.on,
                    "engine that starts agents: a name of engines.yaml, or a kind with its "
                    "settings: slurm,partition=gpu,gpus=1")
        ->type_name("TEXT:{" + names + "}");
    verb.add_option("--engines", flags.engines,
                    "file of engines (default: engines.yaml, ~/.config/tune/engines.yaml)");
    verb.add_option("--agents", flags.agents, "most agents at a time")->check(within(1, 100'000));
}

void add_agents_verbs(CLI::App& app, AgentsArguments& arguments, std::function<int()>& verb) {
    CLI::App& group =
        *app.add_subcommand("agents", "start, end and list agents on other machines");
    group.require_subcommand(1);
    add_agents_verb(group, {"up", "start agents for a running server", run_agents_up}, arguments,
                    verb);
    CLI::App& down = add_agents_verb(
        group, {"down", "end agents that were started by an engine", run_agents_down}, arguments,
        verb);
    CLI::Option* drain = down.add_flag("--drain", arguments.drain, "let their trials end first");
    down.add_flag("--kill", arguments.kill, "at once, with their trials")->excludes(drain);
    add_agents_verb(group, {"ls", "list agents that were started by an engine", run_agents_ls},
                    arguments, verb);
}

}  // namespace tune::cli
