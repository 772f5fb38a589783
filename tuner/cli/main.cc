// `tune`: reads the command line and calls the verb. Only this file, trial_verbs.cc and
// cli_description.cc see CLI11; nothing is opened or started before the words are understood.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "tuner/cli/commands/maintenance_commands.h"
#include "tuner/cli/commands/space_command.h"
#include "tuner/cli/commands/study_view_commands.h"
#include "tuner/cli/commands/trial_verbs.h"
#include "tuner/cli/completion/cli_description.h"
#include "tuner/cli/completion/verb_text.h"
#include "tuner/cli/options.h"
#include "tuner/cli/source_flags.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/config/study_config.h"
#include "tuner/plots/plots.h"
#include "tuner/space/wording.h"

namespace tune::cli {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  tune run -n 50 -m loss:min lr=1e-5..1e-1:log layers=1..4:int -- python train.py {args}\n"
    "  tune run study.yaml -j 8\n"
    "\n"
    "Parameters: a..b range, :log, :int, a trailing number is the step; a,b,c choice; a<b<c "
    "ordered;\n"
    "==v constant; ?p=v only if; :normal(m,s) prior; NAME:=EXPRESSION derived value. {name} in the "
    "command is a value, {args} all others as "
    "--name=value.\n"
    "A trial reports its metric with an MLflow client, or with a line  tune: {\"loss\": 0.31}  on\n"
    "stdout, or through --scrape. The same command again goes on with the same study.\n";

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0    ok\n"
    "  1    failed: the reason is on stderr\n"
    "  2    usage: a word of the command line or a value in a file is wrong\n"
    "  3    no trial is complete\n"
    "  4    the budget of time or cost was used up before the trials were\n"
    "  130  interrupted\n";

constexpr int kTrialsMax = 10'000'000;
constexpr int kParallelMax = 100'000;

/// What the parser fills; lives as long as the program.
struct Words {
    ServerCommand server;
    RunCommand run;
    PlanCommand plan;
    AgentCommand agent;
    StudyCommand study;
    GcCommand gc;
    BackupCommand backup;
    RestoreCommand restore;
    ImportCommand import;
    ExportCommand export_;
    AlertCommand alert;
    SpaceCommand space;
    PlotCommand plot;
    ImportanceCommand importance;
    PrunersCommand pruners;
    TopCommand top;
    TrialWords trial;
    std::string shell;
    std::function<int()> verb;
};

/// The type of an option whose values are names of `Enum`, for help and completion. Its reader
/// checks them: it knows more of what may follow.
template <class Enum>
std::string offering(std::string_view (*name_of)(Enum)) {
    std::string type = "TEXT:{";
    for (int i = 0; name_of(static_cast<Enum>(i)) != "?"; ++i)
        type += (i == 0 ? "" : ",") + std::string(name_of(static_cast<Enum>(i)));
    return type + "}";
}

void add_study_flags(CLI::App& app, StudyFlags& flags) {
    app.add_option("words", flags.words, "study.yaml and/or parameters NAME=SPEC");
    app.add_option("-n,--trials", flags.trials, "trials in all")->check(within(1, kTrialsMax));
    app.add_option("-m,--metric", flags.metric,
                   "the objective, METRIC[:min|max]; several: loss:min,ms:min");
    app.add_option("-j,--parallel", flags.parallel, "trials at a time")
        ->check(within(1, kParallelMax));
    app.add_option("--study", flags.study, "name of the study (default: from the file or command)");
    app.add_option("--forbid", flags.forbid,
                   "a condition that no trial may meet: \"opt == 'sgd' and lr > 0.05\"; may be "
                   "repeated")
        ->allow_extra_args(false);
    app.add_option("--time", flags.time, "end after this time, e.g. 90s, 2h30m");
    app.add_option("--target", flags.target,
                   "end once a trial is at least this good; several objectives: 0.1,20")
        ->delimiter(',');
    app.add_option("--no-progress", flags.no_progress,
                   "end after so many trials without a better one")
        ->check(within(1, kTrialsMax));
    app.add_option("--warm-start", flags.warm_start,
                   "begin with the best trials of this study, or of a file of `tune show --json`");
    app.add_option("--seed", flags.seed, "seed of all random choices");
    app.add_option("--sampler", flags.sampler, "what proposes points")
        ->type_name(offering(tuner::sampler_name));
    app.add_option("--pruner", flags.pruner,
                   "what stops trials early; settings: asha,min=1,max=90,eta=3")
        ->type_name(offering(tuner::pruner_name));
    app.add_option(
           "--scrape", flags.scrape,
           "a metric's name, or a pattern with a group: 'loss=([0-9.e+-]+)'; may be repeated")
        ->allow_extra_args(false);
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

void add_server(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("server", "track, tune and show the page until stopped");
    ServerCommand& server = words.server;
    verb.add_option("--host", server.host, "address to listen on")->capture_default_str();
    verb.add_option("--port", server.port, "0 takes any free port")->capture_default_str();
    verb.add_option("--data", server.data, "folder of the database and artifacts")
        ->capture_default_str();
    verb.add_option("--allowed-hosts", server.allowed_hosts,
                    "more Host headers to answer: names, *.suffix or *")
        ->delimiter(',');
    verb.add_option("--allowed-origins", server.allowed_origins,
                    "more web origins that may change something")
        ->delimiter(',');
    verb.add_option("--static-prefix", server.static_prefix,
                    "what stands before every path, as /tracking")
        ->check(is_static_prefix);
    verb.add_option("--threads", server.threads, "network threads")
        ->check(within(1, 64))
        ->capture_default_str();
    verb.add_option("--heartbeat", server.heartbeat, "how often agents call")
        ->capture_default_str();
    verb.add_option("--lease-ttl", server.lease_ttl,
                    "an agent that is silent for this long has lost its trials")
        ->capture_default_str();
    verb.add_flag("--webhook-allow-private", server.webhook_allow_private,
                  "webhooks may reach addresses that are not public");
    verb.add_flag("--webhook-allow-http", server.webhook_allow_http,
                  "webhooks may be sent without encryption");
    verb.add_option("--webhook-ca", server.webhook_ca,
                    "file with the certificates that webhooks trust (default: the system's)");
    verb.add_option("--webhook-timeout", server.webhook_timeout, "for one attempt of a delivery")
        ->capture_default_str();
    verb.add_option("--webhook-retries", server.webhook_retries, "after the first attempt")
        ->check(within(0, 10))
        ->capture_default_str();
    verb.add_option("--webhook-backoff", server.webhook_backoff,
                    "wait before the first retry; each further one waits twice as long")
        ->capture_default_str();
    verb.add_flag("--json", server.json, "say where it listens as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_server(words.server); }; });
}

void add_run(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("run", "tune a command");
    RunCommand& run = words.run;
    verb.footer(kRunExamples);
    add_study_flags(verb, run.study);
    verb.add_option("--server", run.server, "use this running server");
    verb.add_option("--data", run.data, "folder of the database and artifacts")
        ->capture_default_str();
    verb.add_option("--host", run.host, "address of the page")->capture_default_str();
    verb.add_option("--port", run.port, "port of the page (default 5000, or any free one)");
    verb.add_flag("--no-agent", run.no_agent, "leave the trials to agents elsewhere");
    verb.add_flag(
        "--extend", run.extend,
        "go on with another space: trials so far count with the `init` of new parameters");
    verb.add_flag("-q,--quiet", run.quiet, "no progress");
    verb.add_flag("--json", run.json, "the result as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_run(words.run); }; });
}

void add_plan(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("plan", "what `run` with these words would do");
    add_study_flags(verb, words.plan.study);
    verb.add_option("--trial-time", words.plan.trial_time,
                    "how long a whole trial takes, e.g. 10m: says how long the study will");
    verb.add_flag("--json", words.plan.json, "as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_plan(words.plan); }; });
}

void add_space(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("space", "print another tuner's space as a study.yaml");
    verb.add_option("file", words.space.file,
                    "YAML or JSON; of Hyperopt what hyperopt_space.py prints")
        ->required();
    verb.add_option("--from", words.space.from, "whose it is (default: told from the file)")
        ->type_name("TEXT:{optuna,wandb,nni,katib,hyperopt}");
    verb.callback([&words] { words.verb = [&words] { return run_space(words.space); }; });
    CLI::App& schema = *app.add_subcommand("schema", "print the JSON Schema of study files");
    schema.callback([&words] { words.verb = run_schema; });
}

void add_agent(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("agent", "run trials of a server on this machine");
    AgentCommand& agent = words.agent;
    verb.add_option("--server", agent.server, "the server")->capture_default_str();
    verb.add_option("--state", agent.state, "folder for its state, logs and checkpoints")
        ->capture_default_str();
    verb.add_option("--slots", agent.slots, "trials at a time (default: one a GPU or core)");
    verb.add_option("--cpus", agent.cpus, "cores to hand out (default: all)");
    verb.add_flag("--no-gpus", agent.no_gpus, "use no GPU");
    verb.callback([&words] { words.verb = [&words] { return run_agent(words.agent); }; });
}

void add_gc(CLI::App& app, Words& words) {
    CLI::App& verb =
        *app.add_subcommand("gc", "remove for good what was deleted; the server goes on meanwhile");
    GcCommand& gc = words.gc;
    verb.add_option("--older-than", gc.older_than,
                    "deleted at least this long ago (default 30d; 0s when something is named)");
    verb.add_option("--run-ids", gc.run_ids, "only these deleted runs")->delimiter(',');
    verb.add_option("--experiment-ids", gc.experiment_ids, "only these deleted experiments")
        ->delimiter(',');
    verb.add_flag("--dry-run", gc.dry_run, "only count");
    verb.add_option("--server", gc.server, "the server (default: the one of the folder)");
    verb.add_option("--data", gc.data, std::string("the folder (default: ") + kDefaultData + ")");
    verb.add_flag("--json", gc.json, "as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_gc(words.gc); }; });
}

void add_backup(CLI::App& app, Words& words) {
    CLI::App& verb =
        *app.add_subcommand("backup", "write the database into one file, also while a server runs");
    BackupCommand& backup = words.backup;
    verb.add_option("file", backup.file, "the new file")->required();
    verb.add_option("--data", backup.data, "the folder")->capture_default_str();
    verb.add_flag("--with-artifacts", backup.with_artifacts, "the artifacts too");
    verb.add_flag("--json", backup.json, "as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_backup(words.backup); }; });
}

void add_restore(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("restore", "put a backup into a folder");
    RestoreCommand& restore = words.restore;
    verb.add_option("file", restore.file, "what `tune backup` wrote")->required();
    verb.add_option("--data", restore.data, "the folder")->capture_default_str();
    verb.add_flag("--force", restore.force, "overwrite the data that are there");
    verb.add_flag("--json", restore.json, "as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_restore(words.restore); }; });
}

void add_import(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("import", "bring in what MLflow or Optuna has stored");
    ImportCommand& import = words.import;
    verb.add_option("source", import.source,
                    "an mlflow.db, a folder mlruns, or http[s]://HOST:PORT")
        ->required();
    verb.add_option("--data", import.data, "folder of the database and artifacts")
        ->capture_default_str();
    verb.add_option("--artifacts", import.artifacts,
                    "copy, link (hard links, no space) or none (they stay where they are)")
        ->capture_default_str();
    verb.add_option("--artifact-root", import.artifact_roots,
                    "a folder whose artifacts may be read; may be repeated")
        ->allow_extra_args(false);
    verb.add_flag("--optuna", import.optuna, "the source is a SQLite file of Optuna's: one study");
    verb.add_option("--study", import.study, "with --optuna: which, if it holds several");
    verb.add_option("--as", import.as, "with --optuna: the study's name here");
    verb.add_flag("-q,--quiet", import.quiet, "no progress");
    verb.add_flag("--json", import.json, "the report as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_import(words.import); }; });
}

void add_export(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand(
        "export", "all of it as an mlflow.db, or one study as a file of Optuna's");
    ExportCommand& exporting = words.export_;
    verb.add_option("target", exporting.target, "FILE.db, or a folder for mlflow.db")->required();
    verb.add_option("--data", exporting.data, "folder of the database and artifacts")
        ->capture_default_str();
    verb.add_option("--artifacts", exporting.artifacts,
                    "copy or link them to mlartifacts beside the file, or none")
        ->capture_default_str();
    verb.add_option("--optuna", exporting.optuna,
                    "this study alone, as a SQLite file that optuna.load_study opens");
    verb.add_option("--server", exporting.server, "with --optuna: the server that has the study");
    verb.add_flag("--local-uris", exporting.local_uris,
                  "artifact addresses as paths, for clients that open the file without a server");
    verb.add_flag("-q,--quiet", exporting.quiet, "no progress");
    verb.add_flag("--json", exporting.json, "the report as JSON");
    verb.callback([&words] { words.verb = [&words] { return run_export(words.export_); }; });
}

void add_study_verb(CLI::App& app, Words& words, const char* name, const char* summary,
                    std::function<int()> call) {
    CLI::App& verb = *app.add_subcommand(name, summary);
    if (std::string_view(name) != "ls")
        verb.add_option("study", words.study.study, "name of the study")->required();
    add_source(verb, words.study);
    verb.callback([&words, call = std::move(call)] { words.verb = call; });
}

std::vector<std::string> plot_names() {
    std::vector<std::string> names;
    for (const tuner::PlotWord& word : tuner::plot_words()) names.emplace_back(word.name);
    return names;
}

std::string plot_summaries() {
    std::string text = "Plots:\n";
    for (const tuner::PlotWord& word : tuner::plot_words())
        text += "  " + std::string(word.name) + std::string(14 - std::strlen(word.name), ' ') +
                word.summary + "\n";
    return text;
}

void add_plot(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("plot", "a study as a picture");
    PlotCommand& plot = words.plot;
    verb.footer(plot_summaries());
    verb.add_option("study", plot.study, "name of the study")->required();
    verb.add_option("kind", plot.kind, "what it shows")
        ->check(CLI::IsMember(plot_names()))
        ->capture_default_str();
    verb.add_option("-o,--output", plot.output,
                    "FILE.svg or FILE.png (default: the terminal, or SVG to a pipe)");
    verb.add_flag("--terminal", plot.terminal, "as text, also to a pipe");
    verb.add_option("--params", plot.params, "only these parameters")->delimiter(',');
    verb.add_option("-m,--metric", plot.metric, "this objective (default: the first)");
    verb.add_option("--theme", plot.theme,
                    "colours (default: SVG follows its reader, PNG is light)")
        ->check(CLI::IsMember({"light", "dark"}));
    verb.add_option("--width", plot.width, "in pixels")
        ->check(within(200, 8000))
        ->capture_default_str();
    verb.add_option("--height", plot.height, "in pixels (default: as needed)")
        ->check(within(150, 20000));
    add_source(verb, plot);
    verb.callback([&words] { words.verb = [&words] { return run_plot(words.plot); }; });
}

void add_importance(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("importance", "which parameters matter");
    ImportanceCommand& importance = words.importance;
    verb.add_option("study", importance.study, "name of the study")->required();
    verb.add_option("--method", importance.method,
                    "ped-anova: what sets the best trials apart; fanova: shares of the variance")
        ->check(CLI::IsMember({"ped-anova", "fanova"}))
        ->capture_default_str();
    verb.add_option("-m,--metric", importance.metric, "this objective (default: the first)");
    verb.add_option("--seed", importance.seed, "of fanova's forest")->capture_default_str();
    add_source(verb, importance);
    verb.callback([&words] { words.verb = [&words] { return run_importance(words.importance); }; });
}

void add_pruners(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand(
        "pruners", "what each pruner would have saved and lost on a finished study");
    PrunersCommand& pruners = words.pruners;
    verb.add_option("study", pruners.study, "name of the study")->required();
    verb.add_option("--pruner", pruners.pruners,
                    "this one, as `run` takes it: asha,min=1,eta=3; may be repeated (default: the "
                    "usual ones)")
        ->allow_extra_args(false)
        ->type_name(offering(tuner::pruner_name));
    add_source(verb, pruners);
    verb.callback([&words] { words.verb = [&words] { return run_pruners(words.pruners); }; });
}

void add_top(CLI::App& app, Words& words) {
    CLI::App& verb = *app.add_subcommand("top", "the running trials of all studies, live");
    verb.add_flag("--once", words.top.once, "print them and end");
    add_source(verb, words.top);
    verb.callback([&words] { words.verb = [&words] { return run_top(words.top); }; });
}

void add_texts(CLI::App& app, Words& words) {
    CLI::App& completion = *app.add_subcommand(
        "completion", "the script that completes `tune` in a shell, for its start file");
    completion.add_option("shell", words.shell, "the shell")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    completion.footer(
        "bash: source <(tune completion bash)      in ~/.bashrc\n"
        "zsh:  source <(tune completion zsh)       in ~/.zshrc, after compinit\n"
        "fish: tune completion fish | source       in ~/.config/fish/config.fish\n");
    completion.callback([&words] {
        words.verb = [&words] {
            print(completion_script(words.shell));
            return kExitOk;
        };
    });
    CLI::App& man = *app.add_subcommand("man", "this program's manual page, for man -l -");
    man.callback([&app, &words] {
        words.verb = [&app] {
            print(man_page(describe(app), kVersion));
            return kExitOk;
        };
    });
}

/// What the completion script asks: one candidate a line, its summary after a tab.
int print_completions(const CLI::App& app, const std::vector<std::string>& words) {
    std::string out;
    for (const Candidate& one : completions(describe(app), words, study_names))
        out += one.word + "\t" + one.summary.substr(0, one.summary.find('\n')) + "\n";
    print(out);
    return kExitOk;
}

CLI::App& add_alert_verb(CLI::App& group, AlertCommand& alert, Words& words, const char* name,
                         const char* summary, int (*call)(const AlertCommand&)) {
    CLI::App& verb = *group.add_subcommand(name, summary);
    add_source(verb, alert);
    verb.callback([&words, call] { words.verb = [&words, call] { return call(words.alert); }; });
    return verb;
}

void add_alert(CLI::App& app, Words& words) {
    CLI::App& group = *app.add_subcommand("alert", "rules that mark runs: NaN, plateau, silence");
    group.require_subcommand(1);
    AlertCommand& alert = words.alert;
    CLI::App& add = add_alert_verb(group, alert, words, "add", "add a rule", run_alert_add);
    add.add_option("kind", alert.kind,
                   "nan: a metric became NaN or infinite; plateau: it stopped improving; silence: "
                   "a running run is not written to any more, which ends it as KILLED")
        ->required()
        ->check(CLI::IsMember({"nan", "plateau", "silence"}));
    add.add_option("--experiment", alert.experiment, "id of the experiment (default: all)");
    add.add_option("-m,--metric", alert.metric, "the metric; for plateau METRIC[:min|max]");
    add.add_option("--min-delta", alert.min_delta, "plateau: better by less is not better");
    add.add_option("--points", alert.points, "plateau: so many points without improvement");
    add.add_option("--after", alert.silence, "silence: e.g. 90s, 10m");
    add_alert_verb(group, alert, words, "ls", "list the rules", run_alert_ls);
    add_alert_verb(group, alert, words, "rm", "remove a rule", run_alert_rm)
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
std::string option_fault(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        if (option->check_name(word)) return {};
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string nearest = tuner::did_you_mean(word, names);
    return "unknown option " + tuner::in_quotes(word) +
           (nearest.empty() ? "; what a verb takes stands after it: tune VERB " + word : nearest) +
           " (tune --help)";
}

/// CLI11 would only say that a subcommand is missing.
std::string verb_fault(const CLI::App& app, const std::vector<std::string>& arguments) {
    std::vector<std::string> names;
    std::string known;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (!arguments.empty() && verb->get_name() == arguments[0]) return {};
        names.push_back(verb->get_name());
        known += (known.empty() ? "" : ", ") + verb->get_name();
    }
    if (arguments.empty()) return "what to do? Known: " + known + " (tune --help)";
    if (arguments[0].starts_with("-")) return option_fault(app, arguments[0]);
    std::string nearest = tuner::did_you_mean(arguments[0], names);
    nearest += nearest.empty() ? "; known: " : " Known: ";
    return "unknown verb " + tuner::in_quotes(arguments[0]) + nearest + known + " (tune --help)";
}

/// One sentence for what the parser refuses, and where the flags are listed.
std::string parse_fault(const CLI::App& app, const CLI::ParseError& error) {
    std::string text = error.what();
    std::string verb;
    std::vector<std::string> flags;
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
        at = at->get_subcommands().front();
        verb += " " + at->get_name();
        for (const CLI::Option* option : at->get_options())
            for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
    // The first of the words that nothing took.
    if (const std::size_t word = text.rfind(": -"); word != std::string::npos)
        text += tuner::did_you_mean(text.substr(word + 2), flags);
    return text + " (tune" + verb + " --help)";
}

int run(int argc, char** argv) {
    CLI::App app("Hyperparameter tuning and experiment tracking in one program.", "tune");
    app.set_version_flag("--version", std::string("tune ") + kVersion);
    app.require_subcommand(1);
    app.footer(kExitCodes);
    Words words;
    add_run(app, words);
    add_server(app, words);
    add_agent(app, words);
    add_import(app, words);
    add_export(app, words);
    add_plan(app, words);
    add_space(app, words);
    add_gc(app, words);
    add_backup(app, words);
    add_restore(app, words);
    add_study_verb(app, words, "ls", "list the studies", [&] { return run_ls(words.study); });
    add_study_verb(app, words, "show", "a study and its trials",
                   [&] { return run_show(words.study); });
    add_study_verb(app, words, "best", "the best trial", [&] { return run_best(words.study); });
    add_study_verb(app, words, "replay", "ask for every suggestion again and compare, bit for bit",
                   [&] { return run_replay(words.study); });
    add_study_verb(app, words, "pause", "start no more trials",
                   [&] { return run_change(words.study, "pause"); });
    add_study_verb(app, words, "resume", "start trials again",
                   [&] { return run_change(words.study, "resume"); });
    add_study_verb(app, words, "stop", "end the study and its running trials",
                   [&] { return run_change(words.study, "stop"); });
    add_trial_verbs(app, words.trial, words.verb);
    add_plot(app, words);
    add_importance(app, words);
    add_pruners(app, words);
    add_top(app, words);
    add_texts(app, words);
    add_alert(app, words);
    if (argc > 1 && std::string_view(argv[1]) == "__complete")
        return print_completions(app, {argv + 2, argv + argc});
    std::vector<std::string> command;
    std::vector<std::string> arguments = split_command(argc, argv, command);
    if (const std::string fault = verb_fault(app, arguments); !fault.empty()) {
        std::fprintf(stderr, "tune: %s\n", fault.c_str());
        return kExitUsage;
    }
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
        app.parse(std::move(arguments));
    } catch (const CLI::ParseError& end) {
        if (end.get_exit_code() == 0) return app.exit(end);  // --help and --version
        std::fprintf(stderr, "tune: %s\n", parse_fault(app, end).c_str());
        return kExitUsage;
    }
    words.run.study.command = command;
    words.plan.study.command = command;
    return words.verb();
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
