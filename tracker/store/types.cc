#include "tracker/store/types.h"

#include <array>
#include <charconv>
#include <utility>

namespace tune::tracker {
namespace {

constexpr std::array<std::pair<RunStatus, std::string_view>, 5> kStatusNames = {{
    {RunStatus::kRunning, "RUNNING"},
    {RunStatus::kScheduled, "SCHEDULED"},
    {RunStatus::kFinished, "FINISHED"},
    {RunStatus::kFailed, "FAILED"},
    {RunStatus::kKilled, "KILLED"},
}};

constexpr std::array<std::pair<LoggedModelStatus, std::string_view>, 4> kModelStatusNames = {{
    {LoggedModelStatus::kUnspecified, "LOGGED_MODEL_STATUS_UNSPECIFIED"},
    {LoggedModelStatus::kPending, "LOGGED_MODEL_PENDING"},
    {LoggedModelStatus::kReady, "LOGGED_MODEL_READY"},
    {LoggedModelStatus::kUploadFailed, "LOGGED_MODEL_UPLOAD_FAILED"},
}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
    for (const auto& [candidate, name] : table)
        if (candidate == value) return name;
    return {};
}

template <class Value, class Table>
std::optional<Value> value_in(const Table& table, std::string_view name) {
    for (const auto& [value, candidate] : table)
        if (candidate == name) return value;
    return std::nullopt;
}

}  // namespace

Result<ExperimentId> parse_experiment_id(std::string_view text) {
    ExperimentId id = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, id);
    if (error == std::errc() && stopped == end && !text.empty()) return id;
    return Error{Code::kInvalidParameterValue, "Invalid experiment ID '" + std::string(text) +
                                                   "'. Experiment ID must be a valid integer."};
}

std::string_view lifecycle_name(LifecycleStage stage) {
    return stage == LifecycleStage::kActive ? "active" : "deleted";
}

std::string_view status_name(RunStatus status) {
    return name_in(kStatusNames, status);
}

std::optional<RunStatus> status_from_name(std::string_view name) {
    return value_in<RunStatus>(kStatusNames, name);
}

bool is_terminal(RunStatus status) {
    return status != RunStatus::kRunning && status != RunStatus::kScheduled;
}

std::string_view logged_model_status_name(LoggedModelStatus status) {
    return name_in(kModelStatusNames, status);
}

std::optional<LoggedModelStatus> logged_model_status_from_name(std::string_view name) {
    return value_in<LoggedModelStatus>(kModelStatusNames, name);
}

}  // namespace tune::tracker
