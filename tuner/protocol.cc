#include "tuner/protocol.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace tune::tuner {
namespace {

constexpr std::array<std::pair<Action, std::string_view>, 3> kActions = {{
    {Action::kPrune, "prune"},
    {Action::kStop, "stop"},
    {Action::kCheckpointStop, "checkpoint_stop"},
}};

constexpr std::array<std::pair<Outcome, std::string_view>, 8> kOutcomes = {{
    {Outcome::kDone, "done"},
    {Outcome::kPruned, "pruned"},
    {Outcome::kPreempted, "preempted"},
    {Outcome::kOom, "oom"},
    {Outcome::kBadConfig, "bad_config"},
    {Outcome::kFailed, "failed"},
    {Outcome::kLost, "lost"},
    {Outcome::kCancelled, "cancelled"},
}};

/// Reads fields of one JSON object; keeps the first fault, so that a reader is a list of fields.
class FieldReader {
public:
    explicit FieldReader(const Json& object) : object_(object) {
        if (!object.is_object()) fail("the body", "a JSON object");
    }

    void required(const char* name, std::string& out) {
        if (find(name) == nullptr) return fail(quoted(name), "a string, but it is missing");
        read(name, out);
    }
    void read(const char* name, std::string& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        if (!field->is_string()) return fail(quoted(name), "a string");
        out = field->get<std::string>();
    }
    void read(const char* name, bool& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        if (!field->is_boolean()) return fail(quoted(name), "true or false");
        out = field->get<bool>();
    }
    void read(const char* name, std::int64_t& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        const bool too_large = field->is_number_unsigned() &&
                               field->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
        if (!field->is_number_integer() || too_large) return fail(quoted(name), "an integer");
        out = field->get<std::int64_t>();
    }
    void read(const char* name, std::uint64_t& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        const bool negative = field->is_number_integer() && !field->is_number_unsigned() &&
                              field->get<std::int64_t>() < 0;
        if (!field->is_number_integer() || negative)
            return fail(quoted(name), "an integer of 0 or more");
        out = field->get<std::uint64_t>();
    }
    void read(const char* name, int& out) {
        std::int64_t wide = out;
        read(name, wide);
        if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
            return fail(quoted(name), "an integer of 32 bits");
        out = static_cast<int>(wide);
    }
    void read(const char* name, std::optional<int>& out) {
        if (find(name) == nullptr) return;
        int value = 0;
        read(name, value);
        out = value;
    }
    /// Numbers that are not finite travel as strings (json_number).
    void read(const char* name, double& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        if (field->is_number()) {
            out = field->get<double>();
            return;
        }
        const std::string text = field->is_string() ? field->get<std::string>() : std::string();
        if (text == "NaN")
            out = std::numeric_limits<double>::quiet_NaN();
        else if (text == "Infinity")
            out = std::numeric_limits<double>::infinity();
        else if (text == "-Infinity")
            out = -std::numeric_limits<double>::infinity();
        else
            fail(quoted(name), "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
    }
    void read(const char* name, std::vector<std::string>& out) {
        const Json* field = array(name);
        if (field == nullptr) return;
        for (const Json& item : *field) {
            if (!item.is_string()) return fail(quoted(name), "a list of strings");
            out.push_back(item.get<std::string>());
        }
    }
    void read(const char* name, std::vector<std::uint64_t>& out) {
        const Json* field = array(name);
        if (field == nullptr) return;
        for (const Json& item : *field) {
            const bool negative = !item.is_number_unsigned() && item.is_number_integer() &&
                                  item.get<std::int64_t>() < 0;
            if (!item.is_number_integer() || negative)
                return fail(quoted(name), "a list of integers of 0 or more");
            out.push_back(item.get<std::uint64_t>());
        }
    }
    template <class T>
    void read(const char* name, std::vector<T>& out) {
        const Json* field = array(name);
        if (field == nullptr) return;
        for (const Json& item : *field) {
            Result<T> read = from_json<T>(item);
            if (!read) {
                if (!fault_) fault_ = read.error();
                return;
            }
            out.push_back(std::move(read).value());
        }
    }
    void object_text(const char* name, std::string& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        if (!field->is_object()) return fail(quoted(name), "a JSON object");
        out = to_text(*field);
    }
    void environment(const char* name, std::vector<EnvironmentVariable>& out) {
        const Json* field = find(name);
        if (field == nullptr) return;
        if (!field->is_object()) return fail(quoted(name), "an object of strings");
        for (const auto& [key, value] : field->items()) {
            if (!value.is_string()) return fail(quoted(name), "an object of strings");
            out.push_back({key, value.get<std::string>()});
        }
    }
    void fail(const std::string& what, const std::string& expected) {
        if (!fault_) fault_ = Error{Code::kInvalidParameterValue, what + " must be " + expected};
    }

    template <class T>
    Result<T> result(T value) {
        if (fault_) return *fault_;
        return value;
    }

private:
    static std::string quoted(const char* name) { return std::string("field '") + name + "'"; }

    const Json* find(const char* name) const {
        if (!object_.is_object()) return nullptr;
        const auto found = object_.find(name);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    const Json* array(const char* name) {
        const Json* field = find(name);
        if (field != nullptr && !field->is_array()) {
            fail(quoted(name), "a list");
            return nullptr;
        }
        return field;
    }

    const Json& object_;
    std::optional<Error> fault_;
};

template <class T>
Json list_to_json(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(to_json(value));
    return list;
}

}  // namespace

static Json to_json(const ScrapePattern& value) {
    Json json = {{"pattern", value.pattern}};
    if (!value.name.empty()) json["name"] = value.name;
    return json;
}

static Json to_json(const Directive& value) {
    return {{"run_id", value.run_id},
            {"attempt", value.attempt},
            {"action", action_name(value.action)},
            {"reason", value.reason}};
}

static Json to_json(const ReportedMetric& value) {
    return {{"key", value.key},
            {"value", json_number(value.value)},
            {"step", value.step},
            {"timestamp_ms", value.timestamp_ms}};
}

static Json to_json(const ReportedParam& value) {
    return {{"key", value.key}, {"value", value.value}};
}

static Json to_json(const AttemptReport& value) {
    return {{"run_id", value.run_id},
            {"attempt", value.attempt},
            {"metrics", list_to_json(value.metrics)},
            {"params", list_to_json(value.params)}};
}

static Json to_json(const ReportResult& value) {
    Json json = {{"run_id", value.run_id}, {"attempt", value.attempt}, {"ok", value.ok}};
    if (!value.ok) {
        json["error_code"] = value.error_code;
        json["message"] = value.message;
    }
    return json;
}

template <>
Result<ScrapePattern> from_json<ScrapePattern>(const Json& value) {
    ScrapePattern out;
    FieldReader reader(value);
    reader.read("name", out.name);
    reader.required("pattern", out.pattern);
    return reader.result(std::move(out));
}

template <>
Result<Directive> from_json<Directive>(const Json& value) {
    Directive out;
    std::string action;
    FieldReader reader(value);
    reader.required("run_id", out.run_id);
    reader.read("attempt", out.attempt);
    reader.required("action", action);
    reader.read("reason", out.reason);
    bool known = false;
    for (const auto& [known_action, name] : kActions) {
        if (name != action) continue;
        out.action = known_action;
        known = true;
    }
    if (!known) reader.fail("field 'action'", "prune, stop or checkpoint_stop");
    return reader.result(std::move(out));
}

template <>
Result<ReportedMetric> from_json<ReportedMetric>(const Json& value) {
    ReportedMetric out;
    FieldReader reader(value);
    reader.required("key", out.key);
    reader.read("value", out.value);
    reader.read("step", out.step);
    reader.read("timestamp_ms", out.timestamp_ms);
    return reader.result(std::move(out));
}

template <>
Result<ReportedParam> from_json<ReportedParam>(const Json& value) {
    ReportedParam out;
    FieldReader reader(value);
    reader.required("key", out.key);
    reader.required("value", out.value);
    return reader.result(std::move(out));
}

template <>
Result<AttemptReport> from_json<AttemptReport>(const Json& value) {
    AttemptReport out;
    FieldReader reader(value);
    reader.required("run_id", out.run_id);
    reader.read("attempt", out.attempt);
    reader.read("metrics", out.metrics);
    reader.read("params", out.params);
    return reader.result(std::move(out));
}

template <>
Result<ReportResult> from_json<ReportResult>(const Json& value) {
    ReportResult out;
    FieldReader reader(value);
    reader.required("run_id", out.run_id);
    reader.read("attempt", out.attempt);
    reader.read("ok", out.ok);
    reader.read("error_code", out.error_code);
    reader.read("message", out.message);
    return reader.result(std::move(out));
}

std::string_view action_name(Action action) {
    for (const auto& [known, name] : kActions)
        if (known == action) return name;
    return "stop";
}

std::string_view outcome_name(Outcome outcome) {
    for (const auto& [known, name] : kOutcomes)
        if (known == outcome) return name;
    return "failed";
}

Result<Outcome> outcome_from_name(std::string_view name) {
    for (const auto& [known, known_name] : kOutcomes)
        if (known_name == name) return known;
    return Error{Code::kInvalidParameterValue,
                 "unknown outcome '" + std::string(name) +
                     "'; known: done, pruned, preempted, oom, bad_config, failed, lost, cancelled"};
}

Json to_json(const AttemptId& value) {
    return {{"run_id", value.run_id}, {"attempt", value.attempt}};
}

Json to_json(const RegisterRequest& value) {
    return {{"agent_id", value.agent_id}, {"host", value.host},
            {"pid", value.pid},           {"slots", value.slots},
            {"cpus", value.cpus},         {"gpus", value.gpus},
            {"version", value.version},   {"running", list_to_json(value.running)}};
}

Json to_json(const RegisterReply& value) {
    return {{"agent_id", value.agent_id},
            {"heartbeat_ms", value.heartbeat_ms},
            {"lease_ttl_ms", value.lease_ttl_ms},
            {"lost", list_to_json(value.lost)}};
}

Json to_json(const Lease& value) {
    Json env = Json::object();
    for (const EnvironmentVariable& variable : value.env) env[variable.name] = variable.value;
    Result<Json> params = parse_json(value.params_json);
    return {{"study", value.study},
            {"number", value.number},
            {"attempt", value.attempt},
            {"run_id", value.run_id},
            {"experiment_id", value.experiment_id},
            {"params", params ? *params : Json::object()},
            {"seed", value.seed},
            {"command", value.command},
            {"env", std::move(env)},
            {"working_dir", value.working_dir},
            {"checkpoint_dir", value.checkpoint_dir},
            {"resume_from", value.resume_from},
            {"grace_ms", value.grace_ms},
            {"timeout_ms", value.timeout_ms},
            {"metric", value.metric},
            {"scrape", list_to_json(value.scrape)},
            {"cpus_per_trial", value.cpus_per_trial},
            {"gpus_per_trial", value.gpus_per_trial}};
}

Json to_json(const LeaseRequest& value) {
    return {{"request_id", value.request_id},
            {"free_slots", value.free_slots},
            {"wait_ms", value.wait_ms}};
}

Json to_json(const LeaseReply& value) {
    return {{"leases", list_to_json(value.leases)}};
}

Json to_json(const HeartbeatRequest& value) {
    return {{"wait_ms", value.wait_ms}, {"running", list_to_json(value.running)}};
}

Json to_json(const HeartbeatReply& value) {
    return {{"directives", list_to_json(value.directives)},
            {"lost", list_to_json(value.lost)},
            {"draining", value.draining}};
}

Json to_json(const ReportRequest& value) {
    return {{"reports", list_to_json(value.reports)}};
}

Json to_json(const ReportReply& value) {
    return {{"results", list_to_json(value.results)}};
}

Json to_json(const FinishRequest& value) {
    Json json = {{"request_id", value.request_id}, {"outcome", outcome_name(value.outcome)},
                 {"reason", value.reason},         {"max_rss_kb", value.max_rss_kb},
                 {"cpu_ms", value.cpu_ms},         {"wall_ms", value.wall_ms}};
    if (value.timed_out) json["timed_out"] = true;
    if (value.exit_code) json["exit_code"] = *value.exit_code;
    if (value.signal) json["signal"] = *value.signal;
    return json;
}

Json to_json(const FinishReply& value) {
    Json json = Json::object();
    if (const auto& checkpoints = value.checkpoints)
        json["checkpoints"] = {{"folder", checkpoints->folder},
                               {"from", checkpoints->from},
                               {"below", checkpoints->below},
                               {"trials", checkpoints->trials}};
    return json;
}

template <>
Result<AttemptId> from_json<AttemptId>(const Json& value) {
    AttemptId out;
    FieldReader reader(value);
    reader.required("run_id", out.run_id);
    reader.read("attempt", out.attempt);
    return reader.result(std::move(out));
}

template <>
Result<RegisterRequest> from_json<RegisterRequest>(const Json& value) {
    RegisterRequest out;
    FieldReader reader(value);
    reader.required("agent_id", out.agent_id);
    reader.read("host", out.host);
    reader.read("pid", out.pid);
    reader.read("slots", out.slots);
    reader.read("cpus", out.cpus);
    reader.read("gpus", out.gpus);
    reader.read("version", out.version);
    reader.read("running", out.running);
    return reader.result(std::move(out));
}

template <>
Result<RegisterReply> from_json<RegisterReply>(const Json& value) {
    RegisterReply out;
    FieldReader reader(value);
    reader.required("agent_id", out.agent_id);
    reader.read("heartbeat_ms", out.heartbeat_ms);
    reader.read("lease_ttl_ms", out.lease_ttl_ms);
    reader.read("lost", out.lost);
    return reader.result(std::move(out));
}

template <>
Result<Lease> from_json<Lease>(const Json& value) {
    Lease out;
    FieldReader reader(value);
    reader.required("study", out.study);
    reader.read("number", out.number);
    reader.read("attempt", out.attempt);
    reader.required("run_id", out.run_id);
    reader.read("experiment_id", out.experiment_id);
    reader.object_text("params", out.params_json);
    reader.read("seed", out.seed);
    reader.read("command", out.command);
    reader.environment("env", out.env);
    reader.read("working_dir", out.working_dir);
    reader.read("checkpoint_dir", out.checkpoint_dir);
    reader.read("resume_from", out.resume_from);
    reader.read("grace_ms", out.grace_ms);
    reader.read("timeout_ms", out.timeout_ms);
    reader.read("metric", out.metric);
    reader.read("scrape", out.scrape);
    reader.read("cpus_per_trial", out.cpus_per_trial);
    reader.read("gpus_per_trial", out.gpus_per_trial);
    return reader.result(std::move(out));
}

template <>
Result<LeaseRequest> from_json<LeaseRequest>(const Json& value) {
    LeaseRequest out;
    FieldReader reader(value);
    reader.read("request_id", out.request_id);
    reader.read("free_slots", out.free_slots);
    reader.read("wait_ms", out.wait_ms);
    return reader.result(std::move(out));
}

template <>
Result<LeaseReply> from_json<LeaseReply>(const Json& value) {
    LeaseReply out;
    FieldReader reader(value);
    reader.read("leases", out.leases);
    return reader.result(std::move(out));
}

template <>
Result<HeartbeatRequest> from_json<HeartbeatRequest>(const Json& value) {
    HeartbeatRequest out;
    FieldReader reader(value);
    reader.read("wait_ms", out.wait_ms);
    reader.read("running", out.running);
    return reader.result(std::move(out));
}

template <>
Result<HeartbeatReply> from_json<HeartbeatReply>(const Json& value) {
    HeartbeatReply out;
    FieldReader reader(value);
    reader.read("directives", out.directives);
    reader.read("lost", out.lost);
    reader.read("draining", out.draining);
    return reader.result(std::move(out));
}

template <>
Result<ReportRequest> from_json<ReportRequest>(const Json& value) {
    ReportRequest out;
    FieldReader reader(value);
    reader.read("reports", out.reports);
    return reader.result(std::move(out));
}

template <>
Result<ReportReply> from_json<ReportReply>(const Json& value) {
    ReportReply out;
    FieldReader reader(value);
    reader.read("results", out.results);
    return reader.result(std::move(out));
}

template <>
Result<FinishRequest> from_json<FinishRequest>(const Json& value) {
    FinishRequest out;
    std::string outcome;
    FieldReader reader(value);
    reader.read("request_id", out.request_id);
    reader.required("outcome", outcome);
    reader.read("exit_code", out.exit_code);
    reader.read("signal", out.signal);
    reader.read("timed_out", out.timed_out);
    reader.read("reason", out.reason);
    reader.read("max_rss_kb", out.max_rss_kb);
    reader.read("cpu_ms", out.cpu_ms);
    reader.read("wall_ms", out.wall_ms);
    if (!outcome.empty()) {
        const Result<Outcome> known = outcome_from_name(outcome);
        if (!known) return known.error();
        out.outcome = *known;
    }
    return reader.result(std::move(out));
}

template <>
Result<FinishReply> from_json<FinishReply>(const Json& value) {
    FinishReply out;
    if (!value.is_object() || !value.contains("checkpoints")) return out;
    NeededCheckpoints checkpoints;
    FieldReader reader(value["checkpoints"]);
    reader.required("folder", checkpoints.folder);
    reader.read("from", checkpoints.from);
    reader.read("below", checkpoints.below);
    reader.read("trials", checkpoints.trials);
    TUNE_TRY(read, reader.result(std::move(checkpoints)));
    out.checkpoints = std::move(read);
    return out;
}

}  // namespace tune::tuner
