// enqueue, rerun, ask and tell: arguments to a JSON body, one request, and its answer as a sentence
// or as JSON. What makes a trial carries a random request id, so that a repeated call after a lost
// answer makes no second one.

#include "tuner/cli/commands/trial_commands.h"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/id.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/config/study_config.h"

namespace tune::cli {
namespace {

constexpr std::size_t kRequestIdBytes = 16;

/// "NAME=VALUE" in two.
Result<std::pair<std::string, std::string>> split_word(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
        return Error{Code::kInvalidParameterValue, "expected NAME=VALUE, found '" + word + "'"};
    return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

/// Values are JSON where they parse as JSON, else text, as the choices of `tune run` are.
Result<Json> params_from_words(const std::vector<std::string>& words) {
    Json params = Json::object();
    for (const std::string& word : words) {
        TUNE_TRY(pair, split_word(word));
        const auto& [name, text] = pair;
        if (params.contains(name))
            return Error{Code::kInvalidParameterValue, "'" + name + "' is given twice"};
        const Result<Json> value = parse_json(text);
        params[name] = value ? *value : Json(text);
    }
    return params;
}

Result<double> number_from_word(const std::string& text, const std::string& what) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size())
        return Error{Code::kInvalidParameterValue, what + " '" + text + "' is not a number"};
    return value;
}

/// Every digit, and quoted where a shell would need it: what is copied from here is the same point.
std::string exact_params(const Json& params) {
    std::vector<std::string> words;
    for (const auto& [name, value] : params.items())
        words.push_back(printable(name + "=" +
                                  (value.is_string() ? value.get<std::string>() : to_text(value))));
    return shell_text(words);
}

/// What has to happen before a trial that waits runs; empty where nothing has to.
std::string wait_text(const Json& study) {
    const std::string state = text_of(study, "state");
    const std::string name = printable(text_of(study, "name"));
    if (state == "completed")
        return "The study is completed. The trial runs when a `tune run` with a larger budget "
               "continues it.\n";
    if (state == "paused" || state == "stopped")
        return "The study is " + state + ": `tune resume " + name + "` resumes it.\n";
    return {};
}

/// The new trial as REST answers it.
Result<Json> enqueue(Backend& backend, const std::string& study, const Json& params) {
    Result<Json> trial =
        backend.post(study_path(study, "/enqueue"),
                     {{"params", params}, {"request_id", random_hex(kRequestIdBytes)}});
    if (trial || trial.error().code != Code::kResourceExhausted) return trial;
    Error error = trial.error();
    error.message += " (the same `tune run` with a larger -n does)";
    return error;
}

Result<int> enqueue_words(const EnqueueCommand& options) {
    TUNE_TRY(params, params_from_words(options.values));
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(trial, enqueue(*backend, options.study, params));
    TUNE_TRY(study, backend->get(study_path(options.study)));
    if (options.json)
        print_json(trial);
    else
        print("trial " + to_text(trial["number"]) + " of " + printable(options.study) +
              " waits: " + exact_params(trial["params"]) + "\n" + wait_text(study));
    return kExitOk;
}

Result<int> rerun(const RerunCommand& options) {
    TUNE_TRY(backend, find_backend(options.server, options.data));
    const std::string number = std::to_string(options.trial);
    TUNE_TRY(study, backend->get(study_path(options.study)));
    TUNE_TRY(earlier, backend->get(study_path(options.study, "/trials/" + number)));
    if (earlier.contains("generation"))
        return Error{Code::kInvalidParameterValue,
                     "trial " + number + " of study '" + options.study +
                         "' continued a checkpoint of its population, so its parameters alone do "
                         "not reproduce its value; `tune enqueue` tries them as a new member"};
    const std::string command = rerun_command(study, earlier);
    Result<Json> trial = enqueue(*backend, options.study, earlier["params"]);
    if (!trial && trial.error().code == Code::kResourceExhausted) {
        Error error = trial.error();
        if (!command.empty()) error.message += ". Outside of the study:\n  " + command;
        return error;
    }
    if (!trial) return trial.error();
    if (options.json) {
        (*trial)["command"] = trial_command(study, earlier);
        (*trial)["rerun_of"] = options.trial;
        print_json(*trial);
        return kExitOk;
    }
    print("trial " + to_text((*trial)["number"]) + " of " + printable(options.study) +
          " waits, with the parameters of trial " + number + ": " +
          exact_params((*trial)["params"]) + "\n" + wait_text(study) +
          (command.empty() ? "" : "Outside of the study:\n  " + command + "\n"));
    return kExitOk;
}

Result<int> profile(const ProfileCommand& options) {
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(answer, backend->post(study_path(options.study, "/profile"),
                                   {{"number", options.trial}, {"steps", options.steps}}));
    if (options.json)
        print_json(answer);
    else
        print("trial " + std::to_string(options.trial) + " of " + printable(options.study) +
              " was asked for a trace of " + to_text(answer["steps"]) +
              " steps; it is among the artifacts of its run, under profile/, when the trial has "
              "ended\n");
    return kExitOk;
}

/// Why an ask got nothing.
std::string none_text(const Json& study) {
    const std::string state = text_of(study, "state");
    const std::string words = "study '" + text_of(study, "name") + "' ";
    if (state == "paused") return words + "is paused; `tune resume` continues it";
    if (state == "completed" || state == "stopped") return words + "is " + state;
    return words + "has no trial available now: " + to_text(study["counts"]["running"]) +
           (study["counts"]["running"] == 1 ? " is running, and with it"
                                            : " are running, and with them") +
           " its budget or its parallel trials are used";
}

Result<int> ask(const AskCommand& options) {
    Json body = {{"count", options.count}, {"request_id", random_hex(kRequestIdBytes)}};
    if (options.lease) {
        TUNE_TRY(lease_ms, tuner::parse_duration_ms(*options.lease));
        body["lease_ttl_ms"] = lease_ms;
    }
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(answer, backend->post(study_path(options.study, "/ask"), body));
    if (options.json) print_json(answer);
    if (answer["trials"].empty()) {
        TUNE_TRY(study, backend->get(study_path(options.study)));
        return fail({Code::kResourceExhausted, none_text(study)});
    }
    std::string text;
    for (const Json& trial : answer["trials"])
        text += "trial " + to_text(trial["number"]) + "  attempt " + to_text(trial["attempt"]) +
                "  run " + text_of(trial, "run_id") + "  " + exact_params(trial["params"]) + "\n";
    if (!options.json) print(text);
    return kExitOk;
}

Result<int> tell(const TellCommand& options) {
    Json body = {{"number", options.trial}, {"request_id", random_hex(kRequestIdBytes)}};
    Json values = Json::array();
    for (const std::string& word : options.values) {
        TUNE_TRY(value, number_from_word(word, "value"));
        values.push_back(json_number(value));
    }
    if (values.size() == 1) body["value"] = values[0];
    if (values.size() > 1) body["values"] = std::move(values);
    for (const std::string& word : options.constraints) {
        TUNE_TRY(pair, split_word(word));
        TUNE_TRY(value, number_from_word(pair.second, "--constraint " + pair.first));
        body["constraints"][pair.first] = json_number(value);
    }
    if (!options.state.empty()) body["state"] = options.state;
    if (!options.reason.empty()) body["reason"] = options.reason;
    if (options.attempt > 0) body["attempt"] = options.attempt;
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(trial, backend->post(study_path(options.study, "/tell"), body));
    TUNE_TRY(study, backend->get(study_path(options.study)));
    if (options.json)
        print_json(trial);
    else
        print(trial_line(trial, study) + "\n");
    return kExitOk;
}

int ended(const Result<int>& code, bool json) {
    return code ? *code : fail(code.error(), json);
}

}  // namespace

int run_enqueue(const EnqueueCommand& options) {
    return ended(enqueue_words(options), options.json);
}

int run_rerun(const RerunCommand& options) {
    return ended(rerun(options), options.json);
}

int run_profile(const ProfileCommand& options) {
    return ended(profile(options), options.json);
}

int run_ask(const AskCommand& options) {
    return ended(ask(options), options.json);
}

int run_tell(const TellCommand& options) {
    return ended(tell(options), options.json);
}

}  // namespace tune::cli
