#include "tuner/study/budget/failure_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Of a name or a number: "x3", "1e-05", "0.25", a run id.
bool is_in_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '+' || c == '-';
}

/// "KeyError", "torch.OutOfMemoryError".
bool is_exception(std::string_view word) {
    const std::string_view name = word.substr(word.rfind('.') + 1);
    const bool is_name = std::all_of(word.begin(), word.end(), is_in_word) && !name.empty();
    return is_name && name.front() >= 'A' && name.front() <= 'Z' &&
           (name.ends_with("Error") || name.ends_with("Exception"));
}

/// Up to the type of the exception that it names ("exit code 1: KeyError" of "exit code 1:
/// KeyError: 'adam'"): what the message says may be of one point alone. All of it where it names
/// none.
std::string_view without_message(std::string_view reason) {
    for (std::size_t at = 0; at < reason.size();) {
        const std::size_t colon = std::min(reason.find(':', at), reason.size());
        std::string_view part = reason.substr(at, colon - at);
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        if (is_exception(part)) return reason.substr(0, colon);
        at = colon + 1;
    }
    return reason;
}

}  // namespace

std::string failure_kind(std::string_view reason) {
    std::string kind;
    reason = without_message(reason);
    for (std::size_t at = 0; at < reason.size();) {
        std::size_t end = at;
        while (end < reason.size() && is_in_word(reason[end])) ++end;
        const std::string_view word = reason.substr(at, end - at);
        if (std::any_of(word.begin(), word.end(), is_digit))
            kind += '#';
        else
            kind += word;
        if (end < reason.size()) kind += reason[end++];
        at = end;
    }
    return kind;
}

void FailureWatch::trial_ended(TrialState state, std::string_view reason) {
    if (has_success_ || limit_ == 0) return;
    has_success_ = state == TrialState::kComplete || state == TrialState::kPruned;
    if (state != TrialState::kFailed) return;
    std::string kind = failure_kind(reason);
    if (kind.empty())
        alike_ = 0;
    else
        alike_ = kind == kind_ ? alike_ + 1 : 1;
    kind_ = std::move(kind);
}

std::optional<std::string> FailureWatch::should_stop() const {
    if (has_success_ || limit_ == 0 || alike_ < limit_) return std::nullopt;
    if (limit_ == 1) return "a trial failed before any succeeded";
    return std::to_string(alike_) + " trials in a row failed alike before any succeeded";
}

bool ExcusedEnds::holds(const Trial& trial) const {
    if (trial.ended_at > until) return false;
    if (trial.state == TrialState::kFailed) return true;
    return trial.state == TrialState::kCancelled && trial.ended_at > stopped_at;
}

Json to_json(const std::vector<ExcusedEnds>& excused) {
    Json list = Json::array();
    for (const ExcusedEnds& ends : excused) list.push_back({ends.stopped_at, ends.until});
    return list;
}

std::vector<ExcusedEnds> excused_from_json(const Json& json) {
    std::vector<ExcusedEnds> excused;
    for (const Json& ends : json)
        excused.push_back({ends.at(0).get<std::int64_t>(), ends.at(1).get<std::int64_t>()});
    return excused;
}

}  // namespace tune::tuner
