// `tune`: reads the command line and runs its command. Only this file, *_verbs.cc and
// cli_description.cc see CLI11. Nothing is opened or started before all arguments are understood.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "tuner/cli/access/access_verbs.h"
#include "tuner/cli/access/tls_flags.h"
#include "tuner/cli/commands/space_command.h"
#include "tuner/cli/commands/study_view_commands.h"
#include "tuner/cli/commands/trial_verbs.h"
#include "tuner/cli/commands/view_verbs.h"
#include "tuner/cli/completion/cli_description.h"
#include "tuner/cli/completion/verb_text.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/launch/agents_verbs.h"
#include "tuner/cli/maintenance/maintenance_verbs.h"
#include "tuner/cli/options.h"
#include "tuner/cli/resource_flags.h"
#include "tuner/cli/scheduling/scheduling_verbs.h"
#include "tuner/cli/source_flags.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/config/study_config.h"
#include "tuner/plots/plots.h"
#include "tuner/space/error_text.h"

namespace tune::cli {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  tune run -n 50 -m loss:min lr=1e-5..1e-1:log layers=1..4:int -- python train.py {args}\n"
    "  tune run study.yaml -j 8\n"
    "\n"
    "Parameters: a..b range, :log, :int, a trailing number is the step; a,b,c choice; a<b<c "
    "ordered;\n"
    "==v constant; ?p=v only if; :normal(m,s) prior; NAME:=EXPRESSION derived value.\n"
    "In the command {name} is a value, {args} all others as --name=value. Every trial also has all "
    "of them as JSON in the environment variable TUNE_PARAMS.\n"
    "A trial reports its metric with an MLflow client, or with a line  tune: {\"loss\": 0.31}  on\n"
    "stdout, or through --scrape. Run the same command again to continue the study.\n";

constexpr int kTrialsMax = 10'000'000;
constexpr int kParallelMax = 100'000;

/// What the parser fills; lives as long as the program.
struct ParsedArguments {
    ServerCommand server;
    RunCommand run;
    PlanCommand plan;
    AgentCommand agent;
    StudyCommand study;
    AccessArguments access;
    MaintenanceArguments maintenance;
    AgentsArguments agents;
    SchedulingArguments scheduling;
    ImportCommand import;
    ExportCommand export_;
    AlertCommand alert;
    SpaceCommand space;
    SchemaCommand schema;
    ViewArguments view;
    TrialArguments trial;
    std::string shell;
    std::function<int()> verb;
};

void add_study_flags(CLI::App& app, StudyFlags& flags) {
    app.add_option("words", flags.words, "study.yaml and/or parameters NAME=SPEC");
    app.add_option("-n,--trials", flags.trials,
                   "total number of trials (default: until stopped, or until every point has been "
                   "tried)")
        ->check(within(1, kTrialsMax));
    app.add_option("-m,--metric", flags.metric,
                   "the objective: METRIC[:min|max] (default: min); several: loss:min,ms:min. A "
                   "trial counts with the best value that it reports (take: best), unless a study "
                   "file says take: last or mean_last_N");
    app.add_option("-j,--parallel", flags.parallel,
                   "number of trials to run at the same time (default: one per GPU, else one per "
                   "core)")
        ->check(within(1, kParallelMax));
    app.add_option("--study", flags.study, "name of the study (default: from the file or command)");
    app.add_option(
           "--forbid", flags.forbid,
           "exclude points that meet a condition: \"opt == 'sgd' and lr > 0.05\"; repeatable")
        ->allow_extra_args(false);
    app.add_option("--time", flags.time, "stop after this time, e.g. 90s, 2h30m");
    app.add_option("--target", flags.target,
                   "stop when a trial reaches this value; several objectives: 0.1,20")
        ->delimiter(',');
    app.add_option("--no-progress", flags.no_progress,
                   "stop after this many trials without an improvement")
        ->check(within(1, kTrialsMax));
    app.add_option("--stop-after-failures", flags.stop_after_failures,
                   "stop when this many first trials fail alike (default: 3; 0: never)")
        ->check(within(0, 1'000'000));
    app.add_option(
        "--warm-start", flags.warm_start,
        "start from the best trials of this study, or of a file from `tune show --json`");
    app.add_option("--seed", flags.seed, "seed of the random number generators");
    app.add_option("--sampler", flags.sampler,
                   "the algorithm that proposes points (default: " +
                       std::string(tuner::SamplerConfig().name()) + ")")
        ->type_name(offering(tuner::sampler_kinds()));
    app.add_option("--pruner", flags.pruner,
                   "the rule that stops trials early (default: " +
                       std::string(tuner::PrunerConfig().name()) +
                       "); with settings: asha,min=1,max=90,eta=3")
        ->type_name(offering(tuner::pruner_kinds()));
    app.add_option("--scrape", flags.scrape,
                   "read a metric from the output: its name, or a pattern with a group: "
                   "'loss=([0-9.e+-]+)'; repeatable")
        ->allow_extra_args(false);
    add_resource_flags(app, flags);
}

/// MLflow's rules and sentences, and nothing that would need escapes in a URL.
std::string is_static_prefix(const std::string& text) {
    if (!text.starts_with('/')) return "--static-prefix must begin with a '/'.";
    if (text.ends_with('/')) return "--static-prefix should not end with a '/'.";
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
            std::string_view("/-._~").find(c) == std::string_view::npos)
            return "--static-prefix may hold letters, digits and -._~/ only.";
    // Clients and proxies take such parts out of a path, and would ask for another one.
    for (const char* part : {"//", "/./", "/../"})
        if ((text + "/").find(part) != std::string::npos)
            return "--static-prefix may have no empty part and no '.' or '..' between slashes.";
    return {};
}

void add_webhook_flags(CLI::App& verb, ServerCommand& server) {
    verb.add_flag("--webhook-allow-private", server.webhook_allow_private,
                  "allow webhooks to addresses that are not public");
    verb.add_flag("--webhook-allow-http", server.webhook_allow_http,
                  "allow webhooks over plain http");
    verb.add_option("--webhook-ca", server.webhook_ca,
                    "file with the CA certificates for webhooks (default: the system's)");
    verb.add_option("--webhook-timeout", server.webhook_timeout,
                    "time limit of one delivery attempt")
        ->capture_default_str();
    verb.add_option("--webhook-retries", server.webhook_retries,
                    "number of retries after the first attempt")
        ->check(within(0, 10))
        ->capture_default_str();
    verb.add_option("--webhook-backoff", server.webhook_backoff,
                    "delay before the first retry; it doubles with each retry")
        ->capture_default_str();
}

void add_server(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb =
        *app.add_subcommand("server", "serve the tracking API, the studies and the web page");
    ServerCommand& server = parsed.server;
    verb.add_option("--host", server.listen.host, "address to listen on")->capture_default_str();
    verb.add_option("--port", server.port, "port to listen on; 0 picks a free one")
        ->capture_default_str();
    verb.add_option("--data", server.data, "folder with the database and the artifacts")
        ->capture_default_str();
    verb.add_option("--auth", server.listen.auth,
                    "token: what starts, stops or changes what runs needs the token in the data "
                    "folder; basic: users log in, and see and do what was granted to them; off: "
                    "everybody who reaches the server may run commands")
        ->check(CLI::IsMember({"token", "basic", "off"}))
        ->capture_default_str();
    verb.add_option("--default-permission", server.default_permission,
                    "with --auth basic: what users may do where nothing was granted")
        ->check(CLI::IsMember({"READ", "USE", "EDIT", "MANAGE", "NO_PERMISSIONS"}))
        ->capture_default_str();
    const CLI::IsMember creators({"everybody", "granted", "admins"});
    verb.add_option("--creators", server.creators,
                    "with --auth basic: who may make experiments and registered models; granted: "
                    "who has USE on the workspace")
        ->check(creators)
        ->capture_default_str();
    verb.add_option("--study-creators", server.study_creators,
                    "with --auth basic: who may post studies, whose commands run on the agents")
        ->check(creators)
        ->capture_default_str();
    verb.add_option("--admin-password-file", server.admin_password_file,
                    "with --auth basic: file with the first admin's password (or "
                    "TUNE_ADMIN_PASSWORD; default: one is made up and printed once)");
    add_listen_flags(verb, server.listen);
    verb.add_option("--allowed-hosts", server.allowed_hosts,
                    "additional Host headers to accept: names, *.suffix or *")
        ->delimiter(',');
    verb.add_option("--allowed-origins", server.allowed_origins,
                    "additional web origins that may make changes")
        ->delimiter(',');
    verb.add_option("--connections", server.connections,
                    "open connections in all (default: 16384, or what open files allow)")
        ->check(CLI::PositiveNumber);
    verb.add_option("--connections-per-client", server.connections_per_client,
                    "open connections of one client address, those of agents with a token apart; "
                    "behind a proxy all have its address")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb.add_option("--static-prefix", server.static_prefix, "prefix of every path, e.g. /tracking")
        ->check(is_static_prefix);
    verb.add_option("--threads", server.threads, "number of network threads")
        ->check(within(1, 64))
        ->capture_default_str();
    verb.add_option("--heartbeat", server.heartbeat, "interval between two heartbeats of an agent")
        ->capture_default_str();
    verb.add_option("--lease-ttl", server.lease_ttl,
                    "an agent that is silent for this long loses its trials")
        ->capture_default_str();
    add_webhook_flags(verb, server);
    verb.add_flag("--json", server.json, "print the listening address as JSON");
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_server(parsed.server); }; });
}

void add_run(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb = *app.add_subcommand("run", "tune a command");
    RunCommand& run = parsed.run;
    verb.footer(kRunExamples);
    add_study_flags(verb, run.study);
    verb.add_option("--server", run.server, "use this running server");
    verb.add_option("--data", run.data, "folder with the database and the artifacts")
        ->capture_default_str();
    verb.add_option("--host", run.listen.host, "address of the page")->capture_default_str();
    verb.add_option("--port", run.port, "port of the page (default 5000, or any free one)");
    verb.add_option("--auth", run.listen.auth,
                    "token: what starts, stops or changes what runs needs the token in the data "
                    "folder; off: everybody who reaches the page may run commands")
        ->check(CLI::IsMember({"token", "off"}))
        ->capture_default_str();
    add_listen_flags(verb, run.listen);
    add_engine_flags(verb, run.engine);
    verb.add_flag("--no-agent", run.no_agent, "run no trials here; leave them to other agents");
    verb.add_flag(
        "--extend", run.extend,
        "continue with a changed space: earlier trials count with the `init` of new parameters");
    verb.add_flag("-q,--quiet", run.quiet, "print no progress");
    verb.add_flag("--json", run.json, "print the result as JSON");
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_run(parsed.run); }; });
}

void add_plan(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb = *app.add_subcommand("plan", "show what `run` would do with these arguments");
    add_study_flags(verb, parsed.plan.study);
    verb.add_option("--trial-time", parsed.plan.trial_time,
                    "time that a full trial takes, e.g. 10m; estimates how long the study takes");
    verb.add_option("--server", parsed.plan.server,
                    "address of a server: say also whether its agents can run the study");
    verb.add_option("--data", parsed.plan.data, "the same of the server that holds this folder")
        ->excludes("--server");
    verb.add_flag("--json", parsed.plan.json, "print JSON");
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_plan(parsed.plan); }; });
}

void add_space(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb =
        *app.add_subcommand("space", "convert another tuner's search space to a study.yaml");
    verb.add_option("file", parsed.space.file,
                    "YAML or JSON; for Hyperopt, the output of hyperopt_space.py")
        ->required();
    verb.add_option("--from", parsed.space.from, "the system it comes from (default: detected)")
        ->type_name("TEXT:{optuna,wandb,nni,katib,hyperopt}");
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_space(parsed.space); }; });
    CLI::App& schema = *app.add_subcommand("schema", "print the JSON Schema of study files");
    schema.add_flag("--markdown", parsed.schema.markdown,
                    "print a Markdown page of every key and option");
    schema.callback([&parsed] { parsed.verb = [&parsed] { return run_schema(parsed.schema); }; });
}

void add_agent(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb = *app.add_subcommand("agent", "run a server's trials on this machine");
    add_agent_flags(verb, parsed.agent);
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_agent(parsed.agent); }; });
}

void add_import(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb =
        *app.add_subcommand("import", "import data from MLflow, Optuna or TensorBoard");
    ImportCommand& import = parsed.import;
    verb.add_option(
            "source", import.source,
            "an mlflow.db, a folder mlruns, http[s]://HOST:PORT, an SQLite file of Optuna, or a "
            "folder of TensorBoard's event files")
        ->required();
    verb.add_option("--data", import.data, "folder with the database and the artifacts")
        ->capture_default_str();
    verb.add_option("--server", import.server,
                    "a server on this machine: import into the folder that it serves")
        ->excludes("--data");
    verb.add_option("--artifacts", import.artifacts,
                    "copy, link (hard links, no extra space) or none (leave them in place)")
        ->capture_default_str();
    verb.add_option("--artifact-root", import.artifact_roots,
                    "a folder whose artifacts may be read; repeatable")
        ->allow_extra_args(false);
    verb.add_flag("--optuna", import.optuna,
                  "the source is an SQLite file from Optuna (default: detected)");
    verb.add_option("--study", import.study, "from Optuna: the study, if the file holds several");
    verb.add_option("--as", import.as, "from Optuna: the name of the new study");
    verb.add_flag("-q,--quiet", import.quiet, "print no progress");
    verb.add_flag("--json", import.json, "print the report as JSON");
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_import(parsed.import); }; });
}

void add_export(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& verb = *app.add_subcommand(
        "export",
        "export everything as an mlflow.db, or one study as an Optuna file or for TensorBoard");
    ExportCommand& exporting = parsed.export_;
    verb.add_option("target", exporting.target, "FILE.db, or a folder")->required();
    verb.add_option("--data", exporting.data, "folder with the database and the artifacts")
        ->capture_default_str();
    verb.add_option("--artifacts", exporting.artifacts,
                    "copy or link them to mlartifacts next to the file, or none")
        ->capture_default_str();
    verb.add_option("--optuna", exporting.optuna,
                    "export only this study, as an SQLite file that optuna.load_study opens");
    verb.add_option("--tensorboard", exporting.tensorboard,
                    "export only this run, or study with its trials, as event files of "
                    "TensorBoard: one folder per run")
        ->excludes("--optuna");
    verb.add_option("--server", exporting.server,
                    "with --optuna: address of the server that has the study");
    verb.add_flag(
        "--local-uris", exporting.local_uris,
        "write artifact locations as paths, for clients that open the file without a server");
    verb.add_flag("-q,--quiet", exporting.quiet, "print no progress");
    verb.add_flag("--json", exporting.json, "print the report as JSON");
    verb.callback([&parsed] { parsed.verb = [&parsed] { return run_export(parsed.export_); }; });
}

CLI::App& add_study_verb(CLI::App& app, ParsedArguments& parsed, const char* name,
                         const char* summary, std::function<int()> call) {
    CLI::App& verb = *app.add_subcommand(name, summary);
    const std::string_view verb_name(name);
    if (verb_name == "show" || verb_name == "best")  // what only looks may guess
        verb.add_option("study", parsed.study.study,
                        "name of the study (default: the only one there is)");
    else if (verb_name != "ls")
        verb.add_option("study", parsed.study.study, "name of the study")->required();
    add_source(verb, parsed.study);
    verb.callback([&parsed, call = std::move(call)] { parsed.verb = call; });
    return verb;
}

void add_texts(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& completion = *app.add_subcommand("completion", "print the shell completion script");
    completion.add_option("shell", parsed.shell, "the shell")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    completion.footer(
        "bash: source <(tune completion bash)      in ~/.bashrc\n"
        "zsh:  source <(tune completion zsh)       in ~/.zshrc, after compinit\n"
        "fish: tune completion fish | source       in ~/.config/fish/config.fish\n");
    completion.callback([&parsed] {
        parsed.verb = [&parsed] {
            print(completion_script(parsed.shell));
            return kExitOk;
        };
    });
    CLI::App& man = *app.add_subcommand("man", "print the manual page, for man -l -");
    man.callback([&app, &parsed] {
        parsed.verb = [&app] {
            print(man_page(describe(app), kVersion));
            return kExitOk;
        };
    });
}

/// What the completion script asks: one candidate a line, its summary after a tab.
int print_completions(const CLI::App& app, const std::vector<std::string>& words) {
    std::string out;
    for (const Candidate& one : completions(with_keys(describe(app)), words, study_names))
        out += one.word + "\t" + one.summary.substr(0, one.summary.find('\n')) + "\n";
    print(out);
    return kExitOk;
}

CLI::App& add_alert_verb(CLI::App& group, AlertCommand& alert, ParsedArguments& parsed,
                         const char* name, const char* summary, int (*call)(const AlertCommand&)) {
    CLI::App& verb = *group.add_subcommand(name, summary);
    add_source(verb, alert);
    verb.callback(
        [&parsed, call] { parsed.verb = [&parsed, call] { return call(parsed.alert); }; });
    return verb;
}

void add_alert(CLI::App& app, ParsedArguments& parsed) {
    CLI::App& group =
        *app.add_subcommand("alert", "manage rules that mark runs: NaN, plateau, silence");
    group.require_subcommand(1);
    AlertCommand& alert = parsed.alert;
    CLI::App& add = add_alert_verb(group, alert, parsed, "add", "add a rule", run_alert_add);
    add.add_option("kind", alert.kind,
                   "nan: a metric is NaN or infinite; plateau: it stopped improving; silence: a "
                   "running run gets no more data and is ended as KILLED")
        ->required()
        ->check(CLI::IsMember({"nan", "plateau", "silence"}));
    add.add_option("--experiment", alert.experiment, "id of the experiment (default: all)");
    add.add_option("-m,--metric", alert.metric, "the metric; for plateau: METRIC[:min|max]");
    add.add_option("--min-delta", alert.min_delta,
                   "plateau: smallest change that counts as an improvement");
    add.add_option("--points", alert.points, "plateau: number of points without an improvement");
    add.add_option("--after", alert.silence, "silence: time without data, e.g. 90s, 10m");
    add_alert_verb(group, alert, parsed, "ls", "list the rules", run_alert_ls);
    add_alert_verb(group, alert, parsed, "rm", "remove a rule", run_alert_rm)
        .add_option("id", alert.alert_id, "the rule's id")
        ->required();
}

/// Everything after the first `--` is the command of the trials, untouched.
std::vector<std::string> split_command(int argc, char** argv, std::vector<std::string>& command) {
    std::vector<std::string> words;
    int i = 1;
    for (; i < argc && std::string_view(argv[i]) != "--"; ++i) words.emplace_back(argv[i]);
    for (++i; i < argc; ++i) command.emplace_back(argv[i]);
    return words;
}

/// An option before any verb that is none of the program's own.
std::string option_error(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        if (option->check_name(word)) return {};
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string nearest = tuner::did_you_mean(word, names);
    return "unknown option " + tuner::in_quotes(word) +
           (nearest.empty() ? "; options of a command follow it: tune COMMAND " + word : nearest) +
           " (tune --help)";
}

/// CLI11 would only say that a subcommand is missing.
std::string verb_error(const CLI::App& app, const std::vector<std::string>& arguments) {
    std::vector<std::string> names;
    std::string known;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (!arguments.empty() && verb->get_name() == arguments[0]) return {};
        names.push_back(verb->get_name());
        known += (known.empty() ? "" : ", ") + verb->get_name();
    }
    if (arguments.empty()) return "no command given; the commands are: " + known + " (tune --help)";
    if (arguments[0].starts_with("-")) return option_error(app, arguments[0]);
    std::string nearest = tuner::did_you_mean(arguments[0], names);
    nearest += nearest.empty() ? "; known: " : " Known: ";
    return "unknown command " + tuner::in_quotes(arguments[0]) + nearest + known + " (tune --help)";
}

/// "kind: x not in {a,b}", which is the parser's, with the word that may be meant.
std::string choice_error(const std::string& text) {
    const std::size_t list = text.find(" not in {");
    const std::size_t value = list == std::string::npos ? list : text.rfind(": ", list);
    if (value == std::string::npos || !text.ends_with('}')) return text;
    std::vector<std::string> known;
    std::string names;
    std::istringstream words(text.substr(list + 9, text.size() - list - 10));
    for (std::string word; std::getline(words, word, ',');) {
        names += (names.empty() ? "" : ", ") + word;
        known.push_back(word);
    }
    const std::string given = text.substr(value + 2, list - value - 2);
    const std::string meant = tuner::did_you_mean(given, known);
    return text.substr(0, value + 2) + "'" + printable(given) + "' is unknown" +
           (meant.empty() ? "; known: " : meant + " Known: ") + names;
}

/// One sentence for what the parser refuses, and where the flags are listed.
std::string parse_error(const CLI::App& app, const CLI::ParseError& error) {
    std::string text = choice_error(error.what());
    std::string unknown;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        // The parser would list them from last to first.
        const std::vector<std::string> extras = app.remaining(true);
        text = "unexpected " + std::string(extras.size() == 1 ? "argument:" : "arguments:");
        for (const std::string& word : extras) {
            text += " " + printable(word);
            if (unknown.empty() && word.starts_with("-")) unknown = word;
        }
    }
    std::string verb;
    std::vector<std::string> flags;
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
        at = at->get_subcommands().front();
        verb += " " + at->get_name();
        for (const CLI::Option* option : at->get_options())
            for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
    if (!unknown.empty()) text += tuner::did_you_mean(unknown, flags);
    return text + " (tune" + verb + " --help)";
}

/// Under the help of each verb the codes that it can end with.
void add_exit_codes(CLI::App& app) {
    for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
        const std::string own = app.get_footer() == verb->get_footer() ? "" : verb->get_footer();
        verb->footer((own.empty() ? "" : own + "\n") + exit_codes(codes_of_verb(verb->get_name())));
        for (CLI::App* inner : verb->get_subcommands([](const CLI::App*) { return true; }))
            inner->footer(verb->get_footer());
    }
}

int run(int argc, char** argv) {
    CLI::App app("Hyperparameter tuning and experiment tracking in one program.", "tune");
    app.set_version_flag("--version", std::string("tune ") + kVersion);
    app.require_subcommand(1);
    app.footer(exit_codes({kExitNoTrial, kExitTime, kExitInterrupted}));
    ParsedArguments parsed;
    add_run(app, parsed);
    add_server(app, parsed);
    add_access_verbs(app, parsed.access, parsed.verb);
    add_agent(app, parsed);
    add_agents_verbs(app, parsed.agents, parsed.verb);
    add_import(app, parsed);
    add_export(app, parsed);
    add_plan(app, parsed);
    add_space(app, parsed);
    add_maintenance_verbs(app, parsed.maintenance, parsed.verb);
    add_study_verb(app, parsed, "ls", "list the studies", [&] { return run_ls(parsed.study); });
    add_study_verb(app, parsed, "show", "show a study and its trials",
                   [&] { return run_show(parsed.study); });
    add_study_verb(app, parsed, "best", "show the best trial",
                   [&] { return run_best(parsed.study); });
    add_study_verb(app, parsed, "replay", "repeat every suggestion and compare it bit by bit",
                   [&] { return run_replay(parsed.study); });
    add_study_verb(app, parsed, "pause", "start no more trials",
                   [&] { return run_change(parsed.study, "pause"); });
    add_study_verb(app, parsed, "resume", "start trials again",
                   [&] { return run_change(parsed.study, "resume"); });
    add_study_verb(app, parsed, "stop", "stop the study and its running trials",
                   [&] { return run_change(parsed.study, "stop"); });
    CLI::App& rename = add_study_verb(app, parsed, "rename", "give a study another name",
                                      [&] { return run_rename(parsed.study); });
    rename.add_option("new-name", parsed.study.new_name, "the new name")->required();
    add_study_verb(app, parsed, "rm", "remove a study, with its runs",
                   [&] { return run_rm(parsed.study); });
    add_scheduling_verbs(app, parsed.scheduling, parsed.verb);
    add_trial_verbs(app, parsed.trial, parsed.verb);
    add_view_verbs(app, parsed.view, parsed.verb);
    add_texts(app, parsed);
    add_alert(app, parsed);
    add_trust_flags(app);
    add_exit_codes(app);
    if (argc > 1 && std::string_view(argv[1]) == "__complete")
        return print_completions(app, {argv + 2, argv + argc});
    std::vector<std::string> command;
    std::vector<std::string> arguments = split_command(argc, argv, command);
    if (const std::string error = verb_error(app, arguments); !error.empty()) {
        std::fprintf(stderr, "tune: %s\n", error.c_str());
        return kExitUsage;
    }
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
        app.parse(std::move(arguments));
    } catch (const CLI::ParseError& end) {
        if (end.get_exit_code() == 0) return app.exit(end);  // --help and --version
        std::fprintf(stderr, "tune: %s\n", parse_error(app, end).c_str());
        return kExitUsage;
    }
    parsed.run.study.command = command;
    parsed.plan.study.command = command;
    return parsed.verb();
}

/// `code`, or failed where not all of the output could be written: half a file of JSON must not
/// look like a whole one.
int code_of_output(int code) {
    const bool is_open = ::fcntl(STDOUT_FILENO, F_GETFD) != -1;
    if (!is_open || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)) return code;
    std::fprintf(stderr, "tune: the output could not be written whole; is the disk full?\n");
    return code == kExitOk ? kExitFailed : code;
}

}  // namespace
}  // namespace tune::cli

int main(int argc, char** argv) {
    // A file that grows beyond a limit of the system is an error of one write, as on a full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    return tune::cli::code_of_output(tune::cli::run(argc, argv));
}
