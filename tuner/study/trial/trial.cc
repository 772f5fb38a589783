// A trial to and from its document. Fields at their default are not written: most trials have few,
// and a study may have a million. Reading turns every missing or mistyped field into one error;
// what exists only while a trial runs is made anew by the study.

#include "tuner/study/trial/trial.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

constexpr std::array<std::string_view, kTrialStateCount> kTrialStateNames = {
    "queued", "running", "complete", "pruned", "failed", "cancelled"};

double number_from(const Json& value) {
    if (value.is_number()) return value.get<double>();
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> numbers_from(const Json& document, const char* name) {
    std::vector<double> numbers;
    if (document.contains(name))
        for (const Json& value : document[name]) numbers.push_back(number_from(value));
    return numbers;
}

void put_numbers(Json& document, const char* name, const std::vector<double>& numbers) {
    for (const double number : numbers) document[name].push_back(json_number(number));
}

/// Writes a field only when it says something: most trials have few of them.
template <class T>
void put(Json& document, const char* name, const T& value) {
    if (value != T{}) document[name] = value;
}

Json point_to_json(const Point& point) {
    Json values = Json::array();
    for (const double internal : point)
        values.push_back(is_active(internal) ? Json(internal) : Json(nullptr));
    return values;
}

Point point_from(const Json& values) {
    Point point;
    for (const Json& internal : values)
        point.push_back(internal.is_null() ? kInactive : internal.get<double>());
    return point;
}

/// [member, generation] or [member, generation, parent].
Json origin_to_json(const Origin& origin) {
    Json json = {origin.member, origin.generation};
    if (origin.parent) json.push_back(*origin.parent);
    return json;
}

Origin origin_from(const Json& json) {
    Origin origin{.member = json.at(0).get<int>(), .generation = json.at(1).get<int>()};
    if (json.size() > 2) origin.parent = json.at(2).get<std::uint64_t>();
    return origin;
}

/// From the first start to the end: how long a trial of one attempt ran. 0: it has not ended.
std::int64_t whole_time_ms(const Trial& trial) {
    return is_ended(trial.state) && trial.start_ms != 0 ? trial.end_ms - trial.start_ms : 0;
}

Trial read_trial(const Json& document) {
    Trial trial;
    trial.number = document.at("number").get<std::uint64_t>();
    const Result<TrialState> state = trial_state_from_name(document.at("state").get<std::string>());
    if (state) trial.state = *state;
    trial.attempt = document.value("attempt", 0);
    trial.run_id = document.at("run_id").get<std::string>();
    trial.point = point_from(document.at("point"));
    trial.created_ms = document.value("created_ms", std::int64_t{0});
    trial.start_ms = document.value("start_ms", std::int64_t{0});
    trial.end_ms = document.value("end_ms", std::int64_t{0});
    if (document.contains("value")) trial.value = number_from(document["value"]);
    trial.more_values = numbers_from(document, "more_values");
    trial.constraint_values = numbers_from(document, "constraint_values");
    if (document.contains("last_step")) {
        trial.last_step = document["last_step"].get<std::int64_t>();
        trial.last_value = number_from(document.at("last_value"));
    }
    trial.reason = document.value("reason", "");
    trial.worker = document.value("worker", "");
    trial.user_failures = document.value("user_failures", 0);
    trial.lost_attempts = document.value("lost_attempts", 0);
    trial.failed_attempt = document.value("failed_attempt", 0);
    trial.asked_at = document.value("asked_at", std::int64_t{0});
    trial.ended_at = document.value("ended_at", std::int64_t{0});
    if (document.contains("fixed")) trial.fixed = point_from(document["fixed"]);
    trial.epoch = document.value("epoch", 0);
    trial.is_redrawn = document.value("is_redrawn", false);
    if (document.contains("origin")) trial.origin = origin_from(document["origin"]);
    if (document.contains("reused_from"))
        trial.reused_from = document["reused_from"].get<std::uint64_t>();
    trial.attempt_start_ms = document.value("attempt_start_ms", trial.start_ms);
    trial.ran_ms = document.value("ran_ms", whole_time_ms(trial));
    trial.cost = document.value("cost", 0.0);
    trial.peak_memory_bytes = document.value("peak_memory_bytes", std::int64_t{0});
    trial.peak_gpu_memory_bytes = document.value("peak_gpu_memory_bytes", std::int64_t{0});
    trial.ask_request = document.value("ask_request", "");
    trial.enqueue_request = document.value("enqueue_request", "");
    trial.finish_request = document.value("finish_request", "");
    trial.finish_attempt = document.value("finish_attempt", 0);
    if (document.contains("roll_backs")) trial.roll_backs = roll_backs_from(document["roll_backs"]);
    return trial;
}

}  // namespace

std::string_view trial_state_name(TrialState state) {
    return kTrialStateNames.at(static_cast<std::size_t>(state));
}

Result<TrialState> trial_state_from_name(std::string_view name) {
    for (std::size_t i = 0; i < kTrialStateNames.size(); ++i)
        if (kTrialStateNames[i] == name) return static_cast<TrialState>(i);
    return Error{Code::kInvalidParameterValue,
                 "unknown trial state '" + std::string(name) +
                     "'; known: queued, running, complete, pruned, failed, cancelled"};
}

bool is_ended(TrialState state) {
    return state != TrialState::kQueued && state != TrialState::kRunning;
}

std::string trial_to_document(const Trial& trial) {
    Json document = {{"number", trial.number},
                     {"state", trial_state_name(trial.state)},
                     {"run_id", trial.run_id},
                     {"point", point_to_json(trial.point)},
                     {"asked_at", trial.asked_at}};
    put(document, "attempt", trial.attempt);
    put(document, "created_ms", trial.created_ms);
    put(document, "start_ms", trial.start_ms);
    put(document, "end_ms", trial.end_ms);
    if (trial.value) document["value"] = json_number(*trial.value);
    put_numbers(document, "more_values", trial.more_values);
    put_numbers(document, "constraint_values", trial.constraint_values);
    if (trial.last_step) {
        document["last_step"] = *trial.last_step;
        document["last_value"] = json_number(trial.last_value);
    }
    put(document, "reason", trial.reason);
    put(document, "worker", trial.worker);
    put(document, "user_failures", trial.user_failures);
    put(document, "lost_attempts", trial.lost_attempts);
    put(document, "failed_attempt", trial.failed_attempt);
    put(document, "ended_at", trial.ended_at);
    if (!trial.fixed.empty()) document["fixed"] = point_to_json(trial.fixed);
    put(document, "epoch", trial.epoch);
    put(document, "is_redrawn", trial.is_redrawn);
    if (trial.origin) document["origin"] = origin_to_json(*trial.origin);
    if (trial.reused_from) document["reused_from"] = *trial.reused_from;
    if (trial.attempt_start_ms != trial.start_ms)
        document["attempt_start_ms"] = trial.attempt_start_ms;
    if (trial.ran_ms != whole_time_ms(trial)) document["ran_ms"] = trial.ran_ms;
    put(document, "cost", trial.cost);
    put(document, "peak_memory_bytes", trial.peak_memory_bytes);
    put(document, "peak_gpu_memory_bytes", trial.peak_gpu_memory_bytes);
    put(document, "ask_request", trial.ask_request);
    put(document, "enqueue_request", trial.enqueue_request);
    put(document, "finish_request", trial.finish_request);
    put(document, "finish_attempt", trial.finish_attempt);
    if (!trial.roll_backs.empty()) document["roll_backs"] = roll_backs_to_json(trial.roll_backs);
    if (trial.state == TrialState::kRunning && trial.progress) {
        document["holder"] = holder_to_json(trial.progress->holder);
    }
    return to_text(document);
}

Result<Trial> trial_from_document(std::string_view json_text) {
    TUNE_TRY(document, parse_json(json_text));
    try {
        Trial trial = read_trial(document);
        if (trial.state == TrialState::kRunning) {
            // The study, which knows the metrics, makes it anew.
            trial.progress = std::make_unique<TrialProgress>(StudyConfig{});
            trial.progress->holder = holder_from_json(document.at("holder"));
        }
        return trial;
    } catch (const Json::exception& error) {
        return Error{Code::kDataLoss,
                     std::string("the document of a trial cannot be read: ") + error.what()};
    }
}

}  // namespace tune::tuner
