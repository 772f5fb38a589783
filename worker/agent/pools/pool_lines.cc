// The lines that a pool and its agent exchange (docs/pools.md), from and to JSON.
//
// A line is read whole before anything of it counts: half an event would end a trial without its
// values. Values stay text until they are metrics, so that the agent's rules for metric lines apply
// to pools unchanged.

#include "worker/agent/pools/pool_lines.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "worker/agent/output/metric_lines.h"

namespace tune::worker {
namespace {

Error no_event(const std::string& why) {
    return {Code::kInvalidParameterValue, why};
}

std::string text_in(const Json& json, const char* key) {
    const auto found = json.find(key);
    if (found == json.end()) return {};
    return found->is_string() ? found->get<std::string>() : to_text(*found);
}

Result<tuner::AttemptId> id_in(const Json& json) {
    const auto trial = json.find("trial");
    const auto attempt = json.find("attempt");
    if (trial == json.end() || !trial->is_string() || attempt == json.end() ||
        !attempt->is_number_integer())
        return no_event("\"trial\" (a text) and \"attempt\" (an integer) are missing");
    return tuner::AttemptId{trial->get<std::string>(), attempt->get<int>()};
}

Result<PoolEvent::Kind> kind_of(const std::string& name) {
    using Kind = PoolEvent::Kind;
    if (name == "started") return Kind::kStarted;
    if (name == "metrics") return Kind::kMetrics;
    if (name == "log") return Kind::kLog;
    if (name == "ended") return Kind::kEnded;
    if (name == "refused") return Kind::kRefused;
    return no_event("\"event\": '" + name + "' is not started, metrics, log, ended or refused");
}

}  // namespace

std::string run_line(const tuner::Lease& lease, const std::string& checkpoint_dir,
                     const std::string& resume_dir, const std::string& model_dir) {
    Result<Json> params = parse_json(lease.params_json);
    Json json = {{"op", "run"},
                 {"trial", lease.run_id},
                 {"attempt", lease.attempt},
                 {"study", lease.study},
                 {"number", lease.number},
                 {"parameters", params ? std::move(*params) : Json::object()},
                 {"seed", lease.seed},
                 {"checkpoint_dir", checkpoint_dir}};
    if (!resume_dir.empty()) json["resume_from"] = resume_dir;
    if (!model_dir.empty()) json["model_dir"] = model_dir;
    if (!lease.token.empty()) json["token"] = lease.token;
    for (const tuner::EnvironmentVariable& variable : lease.env)
        if (variable.name == "TUNE_STEP_FROM")
            json["step_from"] = std::strtoll(variable.value.c_str(), nullptr, 10);
        else if (variable.name == "TUNE_STEP_TO")
            json["step_to"] = std::strtoll(variable.value.c_str(), nullptr, 10);
    return to_text(json) + "\n";
}

std::string end_line(std::string_view op, const tuner::AttemptId& id) {
    return to_text({{"op", op}, {"trial", id.run_id}, {"attempt", id.attempt}}) + "\n";
}

std::string finish_line() {
    return "{\"op\":\"finish\"}\n";
}

Result<PoolEvent> parse_pool_event(std::string_view line) {
    if (line.find('{') == std::string_view::npos) return no_event("no JSON object");
    Result<Json> json = parse_json(line);
    if (!json) json = parse_json(quote_bare_words(line));  // Python writes NaN
    if (!json) return json.error();
    if (!json->is_object() || !json->contains("event") || !(*json)["event"].is_string())
        return no_event("an object with \"event\" is expected");
    PoolEvent event;
    TUNE_TRY(kind, kind_of((*json)["event"].get<std::string>()));
    event.kind = kind;
    Result<tuner::AttemptId> id = id_in(*json);
    if (!id && kind != PoolEvent::Kind::kRefused) return id.error();
    if (id) event.id = std::move(*id);
    event.message = text_in(*json, "message");
    if (kind == PoolEvent::Kind::kMetrics) event.text = text_in(*json, "values");
    if (kind == PoolEvent::Kind::kLog) {
        event.text = text_in(*json, "text");
        event.is_error = text_in(*json, "stream") == "stderr";
    }
    if (kind != PoolEvent::Kind::kEnded) return event;
    const auto code = json->find("exit_code");
    if (code != json->end() && !code->is_number_integer())
        return no_event("\"exit_code\" must be an integer");
    event.exit_code = code == json->end() ? 0 : code->get<int>();
    return event;
}

}  // namespace tune::worker
