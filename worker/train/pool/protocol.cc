// Every line is checked whole before anything of it is obeyed. Metrics are passed on as the text
// that they are: a pool of small trials writes thousands of lines a second.

#include "worker/train/pool/protocol.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tune::train {
namespace {

Result<AttemptId> attempt_of(const Json& json) {
    if (!json.contains("trial") || !json["trial"].is_string() ||
        json["trial"].get_ref<const std::string&>().empty())
        return invalid_parameter("\"trial\" must be a text that is not empty");
    if (!json.contains("attempt") || !json["attempt"].is_number_integer())
        return invalid_parameter("\"attempt\" must be an integer");
    return AttemptId{json["trial"].get<std::string>(), json["attempt"].get<std::int64_t>()};
}

/// Numbers and booleans are written as the command line has them.
std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// As the environment of a process has it (TUNE_SEED, ...).
void read_origin(const Json& json, TrialRequest& request) {
    const auto take = [&](const char* key, const char* parameter) {
        const auto found = json.find(key);
        if (found != json.end() && !found->is_structured() && !found->is_null())
            request.origin.emplace(parameter, text_of(*found));
    };
    if (json.contains("seed") && json["seed"].is_number_unsigned())
        request.origin.emplace(
            "seed", std::to_string(json["seed"].get<std::uint64_t>() & (~std::uint64_t{0} >> 2)));
    take("checkpoint_dir", "checkpoint-dir");
    take("resume_from", "resume-from");
    take("model_dir", "model-dir");
    take("step_to", "until-epoch");
    take("step_to", "epochs");
}

Result<TrialRequest> request_of(const Json& json) {
    TrialRequest request;
    TUNE_TRY(id, attempt_of(json));
    request.id = std::move(id);
    if (json.contains("report")) {
        if (!json["report"].is_object())
            return invalid_parameter("\"report\" must be an object of values");
        request.kind = TrialKind::kReport;
        request.values = to_text(json["report"]);
        return request;
    }
    read_origin(json, request);
    if (!json.contains("parameters") || !json["parameters"].is_object())
        return invalid_parameter("\"parameters\" must be an object of names and values");
    for (const auto& [name, value] : json["parameters"].items()) {
        if (value.is_structured() || value.is_null())
            return invalid_parameter("parameter '" + name + "' must be a text or a number");
        std::string parameter = name;
        std::replace(parameter.begin(), parameter.end(), '_', '-');
        request.parameters.emplace(std::move(parameter), text_of(value));
    }
    request.values = to_text(json["parameters"]);
    return request;
}

std::string line_of(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json event(const char* name, const AttemptId& id) {
    return {{"event", name}, {"trial", id.trial}, {"attempt", id.attempt}};
}

}  // namespace

Result<PoolCommand> parse_command(std::string_view line) {
    TUNE_TRY(json, parse_json(line));
    if (!json.is_object() || !json.contains("op") || !json["op"].is_string())
        return invalid_parameter("a line is an object with \"op\": run, stop, prune or finish");
    const auto& op = json["op"].get_ref<const std::string&>();
    PoolCommand command;
    if (op == "finish") return command;
    if (op == "run") {
        TUNE_TRY(request, request_of(json));
        command.kind = PoolCommand::Kind::kRun;
        command.request = std::move(request);
        return command;
    }
    if (op != "stop" && op != "prune")
        return invalid_parameter("\"op\": '" + op + "' is not run, stop, prune or finish");
    TUNE_TRY(id, attempt_of(json));
    command.kind = PoolCommand::Kind::kEnd;
    command.id = std::move(id);
    command.reason = op == "prune" ? EndReason::kPrune : EndReason::kStop;
    return command;
}

std::string started_line(const AttemptId& id) {
    return line_of(event("started", id));
}

std::string metrics_line(const AttemptId& id, std::string_view values) {
    std::string line = line_of(event("metrics", id));
    line.resize(line.size() - 2);  // the values are JSON already
    return line + ",\"values\":" + std::string(values) + "}\n";
}

std::string ended_line(const AttemptId& id, const TrialEnd& end) {
    nlohmann::ordered_json json = event("ended", id);
    json["exit_code"] = static_cast<int>(end.code);
    json["epochs"] = end.epochs;
    json["steps"] = end.steps;
    if (end.best) json["best"] = json_number(*end.best);
    if (!end.message.empty()) json["message"] = end.message;
    return line_of(json);
}

std::string refused_line(const std::string& message) {
    return line_of({{"event", "refused"}, {"message", message}});
}

}  // namespace tune::train
