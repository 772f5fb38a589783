// tune-trainer: one training run, a pool of runs, or the self-check, as a process of its own.
//
// Values come from the parameter table's defaults, then the agent's environment, then --config,
// then flags, each over the one before. --batch_size is taken for --batch-size, since trials pass
// the names of parameters as they stand in the study. SIGTERM asks for a checkpoint and an end with
// its own exit code, so that the agent can tell a preempted trial from a failed one.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/system/file.h"
#include "base/text/counted.h"
#include "base/version.h"
#include "worker/train/config/config.h"
#include "worker/train/exit_code.h"
#include "worker/train/pool/serve.h"
#include "worker/train/selfcheck/selfcheck.h"
#include "worker/train/step/batch_probe.h"
#include "worker/train/trainer.h"

namespace {

using tune::Error;
using tune::Result;
using tune::train::ExitCode;
using tune::train::Parameter;
using tune::train::TrainConfig;

constexpr const char* kExamples = R"(
Examples:
  tune-data convert digits.csv digits --split train=0.8,val=0.2 ...
  tune-trainer train --data=digits                     an mlp with the defaults
  tune-trainer train --data=digits --model=cnn --width=16 --lr=3e-3 --batch-size=64 \
      --base-batch-size=32 --patience=5 --checkpoint-dir=run1
  tune-trainer train --config=run.yaml --lr=0.1        lines `parameter: value`; flags win
  tune run -m val_accuracy:max lr=1e-4..1e-1:log -- tune-trainer train --data=digits {args}

Metrics: for each epoch a line on stdout, tune: {"train_loss": ..., "val_loss": ..., "step": EPOCH}.
Stop: on SIGTERM the step in progress is finished and a checkpoint written; the same command
resumes from there.
Exit codes: 0 done, 11 stopped by a signal, 12 out of memory, 13 bad configuration, 1 anything else.
)";

/// Of a trial that an agent runs: its lines become metrics of its run.
constexpr double kStatsEveryS = 10.0;

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void handle_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_requested.store(true); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    action.sa_handler = SIG_IGN;  // a reader that is gone is seen by write()
    sigaction(SIGPIPE, &action, nullptr);
}

int report(const Error& error) {
    std::fprintf(stderr, "tune-trainer: %s\n", error.text().c_str());
    return static_cast<int>(tune::train::exit_code_of(error));
}

/// Defaults that the agent gives through the environment.
Result<void> set_from_environment(TrainConfig& config) {
    const auto variable = [](const char* name) -> std::string_view {
        const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread so far
        return text == nullptr ? std::string_view() : std::string_view(text);
    };
    if (const auto seed = variable("TUNE_SEED"); !seed.empty()) {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), number);
        if (error != std::errc() || end != seed.data() + seed.size())
            return Error{tune::Code::kInvalidParameterValue,
                         "TUNE_SEED: '" + std::string(seed) + "' is not an unsigned integer"};
        config.seed = static_cast<std::int64_t>(number & (~std::uint64_t{0} >> 2));
    }
    config.checkpoint_dir = std::string(variable("TUNE_CHECKPOINT_DIR"));
    config.resume_from = std::string(variable("TUNE_RESUME_FROM"));
    config.model_dir = std::string(variable("TUNE_MODEL_DIR"));
    config.profile_request = std::string(variable("TUNE_PROFILE_REQUEST"));
    if (!variable("MLFLOW_RUN_ID").empty()) config.stats_every = kStatsEveryS;
    config.artifact_dir = std::string(variable("TUNE_ARTIFACT_DIR"));
    if (!config.artifact_dir.empty()) config.profile_dir = config.artifact_dir + "/profile";
    if (const auto step_to = variable("TUNE_STEP_TO"); !step_to.empty()) {
        for (const char* name : {"until-epoch", "epochs"}) {
            const Result<void> set = tune::train::set_parameter(config, name, step_to);
            if (!set) return Error{set.error().code, "TUNE_STEP_TO: " + set.error().message};
        }
    }
    // A list gives the threads of nested regions; the first one counts. OpenMP itself ignores what
    // it does not understand, and so does this.
    const std::string_view threads = variable("OMP_NUM_THREADS");
    static_cast<void>(
        tune::train::set_parameter(config, "threads", threads.substr(0, threads.find(','))));
    return {};
}

/// "--batch_size=4" -> "--batch-size=4"; what follows '=' stays.
std::vector<std::string> normalised(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    for (std::string& argument : arguments) {
        if (!argument.starts_with("--")) continue;
        const auto end = argument.begin() +
                         static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
        std::replace(argument.begin(), end, '_', '-');
    }
    std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 wants them
    return arguments;
}

Error unknown_argument(const std::string& argument) {
    TrainConfig scratch;
    if (argument.starts_with("--")) {
        const std::string name = argument.substr(2, argument.find('=') - 2);
        if (auto set = tune::train::set_parameter(scratch, name, ""); !set) return set.error();
    }
    return Error{tune::Code::kInvalidParameterValue,
                 "unexpected argument '" + argument + "'; parameters are written --name=value"};
}

struct Flags {
    std::string config_file;
    std::vector<std::pair<const Parameter*, std::string>> values;
};

Result<TrainConfig> configure(const Flags& flags) {
    TrainConfig config;
    TUNE_TRY_VOID(set_from_environment(config));
    if (!flags.config_file.empty()) {
        TUNE_TRY(text, tune::read_file(flags.config_file));
        TUNE_TRY_VOID(tune::train::set_from_yaml(config, text, flags.config_file));
    }
    for (const auto& [parameter, value] : flags.values)
        TUNE_TRY_VOID(parameter->set(config, value));
    if (config.profile_dir.empty() && !config.checkpoint_dir.empty())
        config.profile_dir = config.checkpoint_dir + "/profile";
    return config;
}

int run(const Flags& flags) {
    auto config = configure(flags);
    if (!config) return report(config.error());
    // cuBLAS reads it when its first handle is made, and LibTorch's deterministic mode insists.
    if (config->deterministic)
        setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // NOLINT: one thread so far
    handle_signals();
    const auto outcome = tune::train::train(*config, /*metrics_fd=*/1, stop_requested);
    if (!outcome) return report(outcome.error());
    std::fprintf(stderr, "%s after %s, %s", outcome->preempted ? "stopped by request" : "done",
                 tune::counted(outcome->epochs, "epoch").c_str(),
                 tune::counted(outcome->steps, "step").c_str());
    if (outcome->stop_reason != tune::train::StopReason::kNotStopped)
        std::fprintf(stderr, " (early: %s)",
                     std::string(stop_reason_name(outcome->stop_reason)).c_str());
    if (outcome->best)
        std::fprintf(stderr, "; best %s %.6g in epoch %lld", outcome->metric.c_str(),
                     *outcome->best, static_cast<long long>(outcome->best_epoch));
    if (!outcome->best_file.empty()) std::fprintf(stderr, " (%s)", outcome->best_file.c_str());
    std::fputc('\n', stderr);
    return static_cast<int>(outcome->preempted ? ExitCode::kPreempted : ExitCode::kDone);
}

CLI::App* add_selfcheck(CLI::App& app, tune::train::SelfcheckOptions& options) {
    CLI::App* selfcheck =
        app.add_subcommand("selfcheck", "Say what works on this machine, step by step");
    selfcheck->footer(
        "Each step runs in a process of its own and ends within minutes: ok, failed or skipped.\n"
        "Exit codes: 0 nothing failed, 1 something did. No GPU has run these checks yet.");
    selfcheck->add_option("--device", options.device, "")
        ->type_name("cpu|cuda|auto")
        ->default_str(options.device);
    selfcheck->add_flag("--json", options.json, "one JSON document instead of lines");
    selfcheck->add_option("--step", options.step, "one step alone, its result as JSON")
        ->type_name("NAME");
    return selfcheck;
}

CLI::App* add_pool(CLI::App& app, tune::train::PoolOptions& options, std::string& device) {
    CLI::App* pool = app.add_subcommand("pool", "Run many small trials in one process");
    pool->footer(
        "Trials come as lines of JSON, what becomes of them goes out as such:\n"
        "  "
        "{\"op\":\"run\",\"trial\":\"7\",\"attempt\":1,\"parameters\":{\"data\":\"digits\",\"lr\":"
        "0.01}}\n"
        "  {\"op\":\"prune\",\"trial\":\"7\",\"attempt\":1}\n"
        "docs/trainer.md has all of them. Parameters of train (--data=digits) hold for all "
        "trials.\n"
        "The pool ends with its input; on SIGTERM trials write\n"
        "checkpoints. Exit codes: 0 done, 11 stopped by a signal.");
    pool->allow_extras();
    pool->add_flag("--only-reports", options.only_reports,
                   "trials give their parameters out as metrics and end: to measure the rest");
    pool->add_option("--parallel", options.parallel,
                     "trials at once; 0: as many as the agent sends (TUNE_POOL_SIZE), or one a "
                     "processor")
        ->type_name("INT")
        ->check(CLI::Range(0, 1024))
        ->default_str("0");
    pool->add_option("--device", device, "")->type_name("cpu|cuda|auto")->default_str("auto");
    pool->add_option("--socket", options.socket, "listen there for one client, not at stdin")
        ->type_name("PATH");
    return pool;
}

/// Parameters of train that all trials of a pool have, and how many of them there are at once.
Result<void> read_defaults(const std::vector<std::string>& arguments,
                           tune::train::PoolOptions& options) {
    TrainConfig scratch;
    for (const std::string& argument : arguments) {
        const std::size_t equals = argument.find('=');
        if (!argument.starts_with("--") || equals == std::string::npos)
            return unknown_argument(argument);
        options.parameters.emplace_back(argument.substr(2, equals - 2),
                                        argument.substr(equals + 1));
        const auto& [name, value] = options.parameters.back();
        TUNE_TRY_VOID(tune::train::set_parameter(scratch, name, value));
    }
    const char* size = std::getenv("TUNE_POOL_SIZE");  // NOLINT(concurrency-mt-unsafe)
    if (size != nullptr) options.stats_every = kStatsEveryS;
    if (options.parallel == 0 && size != nullptr)
        options.parallel = std::clamp(std::atoi(size), 0, 1024);
    return {};
}

int parse_and_run(int argc, char** argv) {
    CLI::App app("Trains one model on one data set.", "tune-trainer");
    app.set_version_flag("--version", std::string("tune-trainer ") + tune::kVersion);
    app.get_formatter()->column_width(36);
    app.require_subcommand(1);
    CLI::App* train = app.add_subcommand("train", "Train a model; see `tune-trainer train --help`");
    train->footer(kExamples);
    train->allow_extras();
    Flags flags;
    train->add_option("--config", flags.config_file, "YAML file of `parameter: value`; flags win")
        ->type_name("FILE");

    const TrainConfig defaults;
    std::vector<std::string> texts(tune::train::parameters().size());
    std::vector<CLI::Option*> options;
    for (const Parameter& parameter : tune::train::parameters()) {
        std::string names = "--" + parameter.name;
        for (const std::string& alias : parameter.aliases) names += ",--" + alias;
        CLI::Option* option = train->add_option(names, texts[options.size()], parameter.help);
        option->type_name(parameter.type)->group(parameter.group)->take_last();
        if (const std::string text = parameter.get(defaults); !text.empty())
            option->default_str(text);
        options.push_back(option);
    }
    tune::train::PoolOptions pool_options;
    std::string shared_device;
    TrainConfig scratch;
    const CLI::App* pool = add_pool(app, pool_options, shared_device);
    const CLI::App* probe = app.add_subcommand(tune::train::kProbeCommand, "")->group("");
    tune::train::SelfcheckOptions checks;
    const CLI::App* selfcheck = add_selfcheck(app, checks);
    try {
        app.parse(normalised(argc, argv));
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        app.exit(error, std::cerr, std::cerr);
        return static_cast<int>(ExitCode::kBadConfig);
    }
    if (pool->parsed()) {
        if (!shared_device.empty())
            if (const auto set = tune::train::set_parameter(scratch, "device", shared_device); !set)
                return report(set.error());
        pool_options.device = scratch.device;
        if (const Result<void> read = read_defaults(pool->remaining(), pool_options); !read)
            return report(read.error());
        handle_signals();
        return tune::train::serve_pool(pool_options, stop_requested);
    }
    if (probe->parsed()) return tune::train::answer_batch_probe();
    if (selfcheck->parsed()) return tune::train::selfcheck(checks);
    if (const auto extras = train->remaining(); !extras.empty())
        return report(unknown_argument(extras.front()));
    for (std::size_t i = 0; i < options.size(); ++i)
        if (options[i]->count() > 0)
            flags.values.emplace_back(&tune::train::parameters()[i], texts[i]);
    return run(flags);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return parse_and_run(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "tune-trainer: out of memory\n");
        return static_cast<int>(ExitCode::kOutOfMemory);
    }
}
