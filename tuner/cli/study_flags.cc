// File, NAME=SPEC arguments and flags become one study. A flag that changes a section is laid over
// the section's JSON, and the result is read by the reader of study files: one set of rules and
// messages checks all three sources. Flags come last, so they win.

#include "tuner/cli/study_flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/system/file.h"
#include "tuner/cli/transfer/warm_start_file.h"
#include "tuner/sampler/sampler.h"

namespace tune::cli {
namespace {

using tuner::StudyConfig;

/// Programs whose first argument is what really runs.
constexpr std::array<std::string_view, 11> kInterpreters = {
    "python", "sh", "bash", "zsh", "node", "ruby", "perl", "Rscript", "julia", "env", "php"};

bool is_interpreter(std::string_view program) {
    const auto is_prefix = [program](std::string_view name) {
        return program.starts_with(name) &&
               program.find_first_not_of("0123456789.", name.size()) == std::string_view::npos;
    };
    return std::any_of(kInterpreters.begin(), kInterpreters.end(), is_prefix);
}

Result<tuner::StudySource> read_words(const std::vector<std::string>& words) {
    tuner::StudySource source;
    for (const std::string& word : words) {
        if (word.find('=') != std::string::npos) {
            source.inline_parameters.push_back(word);
            continue;
        }
        if (!source.file.empty())
            return Error{Code::kInvalidParameterValue,
                         "two study files: '" + source.file + "' and '" + word +
                             "' (a parameter is NAME=SPEC; a command follows --)"};
        source.file = word;
    }
    if (source.file.empty()) return source;
    std::error_code ignored;
    const bool is_bare = source.file.find_first_of("./") == std::string::npos;
    if (is_bare && !std::filesystem::exists(source.file, ignored))
        return Error{Code::kInvalidParameterValue,
                     "'" + source.file + "' is neither a parameter (" + source.file +
                         "=0..1) nor a study file, and there is no file of this name"};
    TUNE_TRY(text, read_file(source.file, tuner::kStudyBytesMax));
    source.text = std::move(text);
    if (source.text.empty())
        return Error{Code::kInvalidParameterValue, "the file is empty", source.file};
    return source;
}

/// "asha,min=1,max=90" as {"type": "asha", "min": 1, "max": 90}.
Result<Json> pruner_json(const std::string& text) {
    Json pruner = Json::object();
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        const std::size_t equals = part.find('=');
        if (begin == 0) {
            pruner["type"] = part;
        } else if (equals == std::string::npos) {
            return Error{Code::kInvalidParameterValue, "--pruner: expected NAME=VALUE, found '" +
                                                           part +
                                                           "'; e.g. asha,min=1,max=90,eta=3"};
        } else {
            const Result<Json> value = parse_json(part.substr(equals + 1));
            pruner[part.substr(0, equals)] = value ? *value : Json(part.substr(equals + 1));
        }
        begin = end + 1;
    }
    return pruner;
}

void lay_resources_over(const StudyFlags& flags, Json& json) {
    const auto lay = [&json](const char* key, const auto& value) {
        if (value) json["resources"][key] = *value;
    };
    lay("nproc", flags.nproc);
    lay("nnodes", flags.nnodes);
    lay("pool", flags.pool);
    lay("processes", flags.processes);
    lay("cpus", flags.cpus);
    lay("gpus", flags.gpus);
    lay("memory", flags.memory);
    lay("gpu_memory", flags.gpu_memory);
    if (!flags.labels.empty()) json["resources"]["labels"] = flags.labels;
    // A flag says it for good, wherever the file has it.
    if (flags.cpus) json["budget"].erase("cpus_per_trial");
    if (flags.gpus) json["budget"].erase("gpus_per_trial");
}

void lay_checkpoints_over(const StudyFlags& flags, Json& json) {
    const auto lay = [&json](const char* key, const auto& value) {
        if (value) json["checkpoints"][key] = *value;
    };
    lay("store", flags.checkpoint_store);
    lay("every", flags.checkpoint_every);
    lay("keep", flags.checkpoint_keep);
    lay("after", flags.checkpoint_after);
}

/// Flags that change a section are laid over its JSON, so that the reader of study.yaml checks
/// them.
Result<void> lay_over(const StudyFlags& flags, Json& json) {
    if (flags.sampler) {
        const Json seed = json["sampler"].value("seed", Json());
        json["sampler"] = {{"type", *flags.sampler}};
        if (!seed.is_null()) json["sampler"]["seed"] = seed;
    }
    for (const std::string& clause : flags.forbid) json["forbid"].push_back(clause);
    if (flags.seed) json["sampler"]["seed"] = *flags.seed;
    if (flags.pruner) {
        TUNE_TRY(pruner, pruner_json(*flags.pruner));
        json["pruner"] = std::move(pruner);
    }
    if (flags.trials) json["budget"]["trials"] = *flags.trials;
    if (flags.parallel) json["budget"]["parallel"] = *flags.parallel;
    if (flags.time) json["budget"]["time"] = *flags.time;
    if (flags.target.size() == 1) json["budget"]["target"] = flags.target.front();
    if (flags.target.size() > 1) json["budget"]["target"] = flags.target;
    if (flags.no_progress) json["budget"]["no_progress"]["trials"] = *flags.no_progress;
    lay_resources_over(flags, json);
    lay_checkpoints_over(flags, json);
    if (flags.priority) json["priority"] = *flags.priority;
    if (flags.register_as) json["register"] = *flags.register_as;
    if (flags.stop_after_failures) json["stop_after_failures"] = *flags.stop_after_failures;
    if (flags.warm_start) json["warm_start"]["from"] = *flags.warm_start;
    if (json.contains("warm_start")) TUNE_TRY_VOID(read_warm_start_file(json["warm_start"]));
    if (!flags.scrape.empty()) json["scrape"] = flags.scrape;
    if (!flags.command.empty()) json["command"] = flags.command;
    if (flags.study) json["study"] = *flags.study;
    return {};
}

/// The message for a study without a metric says how to name one and how it is reported.
Error explain_metric(Error error) {
    error.message +=
        "\n\nA trial reports its metric in any of these ways:\n"
        "  - it prints a line   tune: {\"loss\": 0.31, \"step\": 4}   on stdout;\n"
        "  - it logs it with an MLflow client (MLFLOW_TRACKING_URI and MLFLOW_RUN_ID are set);\n"
        "  - it prints it anyhow, and --scrape 'loss=([0-9.e+-]+)' reads it.\n"
        "Name it with -m, e.g.  -m loss:min  or  -m accuracy:max.";
    return error;
}

}  // namespace

Result<StudyConfig> study_from_flags(const StudyFlags& flags, bool needs_command) {
    if (flags.words.empty() && flags.command.empty())
        return Error{Code::kInvalidParameterValue,
                     "nothing to tune. Give a study file:  tune run study.yaml\n"
                     "or parameters, a metric and a command:  "
                     "tune run -n 50 -m loss:min lr=1e-5..1e-1:log -- python train.py {args}\n"
                     "More: tune run --help"};
    TUNE_TRY(source, read_words(flags.words));
    TUNE_TRY(config, tuner::read_study(source));
    if (flags.metric) TUNE_TRY_VOID(tuner::parse_metrics_flag(*flags.metric, config));
    Json json = to_json(config);
    TUNE_TRY_VOID(lay_over(flags, json));
    TUNE_TRY(whole, tuner::study_config_from_json(json));
    if (whole.study.empty() && !source.file.empty())
        whole.study = std::filesystem::path(source.file).stem().string();
    if (whole.study.empty() || (!flags.study && config.study.empty() && source.file.empty()))
        whole.study = flags.study ? *flags.study : name_from_command(whole.command);
    Result<void> checked = tuner::check_study(whole, needs_command);
    if (!checked && whole.metric.name.empty()) return explain_metric(checked.error());
    if (checked) checked = tuner::check_sampler(whole.space, whole.sampler);
    if (!checked) return checked.error();
    return whole;
}

Result<tuner::PrunerConfig> pruner_from_flag(const std::string& text) {
    TUNE_TRY(pruner, pruner_json(text));
    TUNE_TRY(config, tuner::study_config_from_json(Json{{"pruner", std::move(pruner)}}));
    return config.pruner;
}

std::size_t script_index(const std::vector<std::string>& command) {
    std::size_t found = 0;
    for (std::size_t i = 0; i + 1 < command.size(); ++i) {
        const std::string& next = command[i + 1];
        if (!is_interpreter(std::filesystem::path(command[i]).filename().string())) break;
        if (next.starts_with("-") || next.find_first_of("{} =") != std::string::npos) break;
        found = i + 1;
    }
    return found;
}

std::string name_from_command(const std::vector<std::string>& command) {
    if (command.empty()) return "study";
    return std::filesystem::path(command[script_index(command)]).stem().string();
}

}  // namespace tune::cli
