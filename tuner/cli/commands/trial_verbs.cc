// The parser's side of the commands for single trials and of `tune bench`: options, ranges and help
// texts. They stand apart from the commands themselves so that only few files include CLI11.

#include "tuner/cli/commands/trial_verbs.h"

#include <CLI/CLI.hpp>

#include "tuner/cli/source_flags.h"
#include "tuner/study/registry/clients/client_requests.h"

namespace tune::cli {
namespace {

constexpr int kTrialMax = 10'000'000;
constexpr int kAttemptMax = 1'000'000'000;
constexpr int kClientsMax = 256;
constexpr double kSecondsMax = 60;

constexpr const char* kEnqueueExamples =
    "Example:\n"
    "  tune enqueue digits lr=0.01 opt=adamw\n"
    "\n"
    "The sampler suggests the other parameters. Queued trials run before new ones.\n";

constexpr const char* kAskExamples =
    "Example, with the values in $x and $y:\n"
    "  tune ask s --json >asked.json || exit\n"
    "  x=$(jq .trials[0].params.x asked.json)\n"
    "  tune tell s $(jq .trials[0].number asked.json) $y\n";

CLI::App& add_verb(CLI::App& app, const char* name, const char* summary, std::string& study) {
    CLI::App& verb = *app.add_subcommand(name, summary);
    verb.add_option("study", study, "name of the study")->required();
    return verb;
}

void add_enqueue(CLI::App& app, EnqueueCommand& enqueue, std::function<int()>& chosen) {
    CLI::App& verb = add_verb(app, "enqueue", "add a point to try next", enqueue.study);
    verb.footer(kEnqueueExamples);
    verb.add_option("values", enqueue.values, "NAME=VALUE")->required();
    add_source(verb, enqueue);
    verb.callback([&] { chosen = [&enqueue] { return run_enqueue(enqueue); }; });
}

void add_rerun(CLI::App& app, RerunCommand& rerun, std::function<int()>& chosen) {
    CLI::App& verb = add_verb(app, "rerun", "run the parameters of a trial again", rerun.study);
    verb.add_option("trial", rerun.trial, "number of the trial")
        ->required()
        ->check(within(0, kTrialMax));
    add_source(verb, rerun);
    verb.callback([&] { chosen = [&rerun] { return run_rerun(rerun); }; });
}

void add_profile(CLI::App& app, ProfileCommand& profile, std::function<int()>& chosen) {
    CLI::App& verb = add_verb(app, "profile", "ask for a trace of a running trial", profile.study);
    verb.add_option("trial", profile.trial, "number of the trial")
        ->required()
        ->check(within(0, kTrialMax));
    verb.add_option("--steps", profile.steps, "number of steps to trace")
        ->check(within(1, static_cast<int>(tuner::kProfileStepsMax)))
        ->capture_default_str();
    add_source(verb, profile);
    verb.callback([&] { chosen = [&profile] { return run_profile(profile); }; });
}

void add_ask(CLI::App& app, AskCommand& ask, std::function<int()>& chosen) {
    CLI::App& verb = add_verb(app, "ask", "start a trial that you run yourself", ask.study);
    verb.footer(kAskExamples);
    verb.add_option("--count", ask.count, "number of trials")
        ->check(within(1, tuner::kAskCountMax))
        ->capture_default_str();
    verb.add_option("--lease", ask.lease,
                    "a trial that is silent for this long is lost, e.g. 10m (default: never)");
    add_source(verb, ask);
    verb.callback([&] { chosen = [&ask] { return run_ask(ask); }; });
}

void add_tell(CLI::App& app, TellCommand& tell, std::function<int()>& chosen) {
    CLI::App& verb = add_verb(app, "tell", "report the result of an asked trial", tell.study);
    verb.add_option("trial", tell.trial, "number of the trial")
        ->required()
        ->check(within(0, kTrialMax));
    verb.add_option("values", tell.values, "one number per objective (default: the reported ones)");
    verb.add_option("--state", tell.state, "how it ended (default: complete)")
        ->check(CLI::IsMember({"complete", "pruned", "failed", "cancelled"}));
    verb.add_option("--reason", tell.reason, "why it failed, for the reader");
    verb.add_option("--constraint", tell.constraints,
                    "NAME=VALUE of a metric with bounds; repeatable")
        ->allow_extra_args(false);
    verb.add_option("--attempt", tell.attempt, "the attempt from ask (default: the running one)")
        ->check(within(1, kAttemptMax));
    add_source(verb, tell);
    verb.callback([&] { chosen = [&tell] { return run_tell(tell); }; });
}

void add_bench(CLI::App& app, BenchCommand& bench, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand(
        "bench", "measure a server on this machine for a few seconds, in a temporary folder");
    verb.add_option("--dir", bench.dir,
                    "create the folder here, to measure this disk (default: $TMPDIR or /tmp)");
    verb.add_option("--seconds", bench.seconds, "duration of each of the three measurements")
        ->check(CLI::Range(0.1, kSecondsMax).description(""))
        ->capture_default_str();
    verb.add_option("--clients", bench.clients,
                    "number of clients that log metrics at the same time")
        ->check(within(1, kClientsMax))
        ->capture_default_str();
    verb.add_flag("--json", bench.json, "print JSON");
    verb.callback([&] { chosen = [&bench] { return run_bench(bench); }; });
}

}  // namespace

void add_trial_verbs(CLI::App& app, TrialArguments& arguments, std::function<int()>& verb) {
    add_enqueue(app, arguments.enqueue, verb);
    add_rerun(app, arguments.rerun, verb);
    add_profile(app, arguments.profile, verb);
    add_ask(app, arguments.ask, verb);
    add_tell(app, arguments.tell, verb);
    add_bench(app, arguments.bench, verb);
}

}  // namespace tune::cli
