#include "tuner/study/trial/trial_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tune::tuner {

const Trial* TrialTable::find(std::uint64_t number) const {
    return number < trials_.size() ? &trials_[number] : nullptr;
}

Trial* TrialTable::find(std::uint64_t number) {
    return number < trials_.size() ? &trials_[number] : nullptr;
}

const Trial* TrialTable::next_queued() const {
    return queued_.empty() ? nullptr : &trials_[*queued_.begin()];
}

Trial* TrialTable::next_queued() {
    return queued_.empty() ? nullptr : &trials_[*queued_.begin()];
}

std::vector<std::uint64_t> TrialTable::started_by_request(const std::string& request_id) const {
    std::vector<std::uint64_t> started;
    const auto found = by_request_.find(request_id);
    if (request_id.empty() || found == by_request_.end()) return started;
    for (const std::uint64_t number : found->second) {
        const Trial& trial = trials_[number];
        // Lost since then, it is another's now or will be.
        const bool is_its_own =
            trial.ask_request == request_id && trial.state != TrialState::kQueued;
        if (is_its_own) started.push_back(number);
    }
    return started;
}

std::optional<std::uint64_t> TrialTable::enqueued_by_request(const std::string& request_id) const {
    const auto found = by_enqueue_.find(request_id);
    if (request_id.empty() || found == by_enqueue_.end()) return std::nullopt;
    return found->second;
}

Trial& TrialTable::add(Trial trial) {
    TUNE_CHECK(trial.number == trials_.size(), "trials are added in their order");
    if (!trial.ask_request.empty()) by_request_[trial.ask_request].push_back(trial.number);
    if (!trial.enqueue_request.empty()) by_enqueue_[trial.enqueue_request] = trial.number;
    last_end_ms_ = std::max(last_end_ms_, trial.end_ms);
    place(trials_.emplace_back(std::move(trial)));
    return trials_.back();
}

void TrialTable::place(const Trial& trial) {
    ++counts_[static_cast<std::size_t>(trial.state)];
    if (trial.state == TrialState::kQueued) queued_.insert(trial.number);
    if (trial.state == TrialState::kRunning) running_.insert(trial.number);
}

void TrialTable::move(Trial& trial, TrialState state) {
    TUNE_CHECK(!is_ended(trial.state), "an ended trial cannot change");
    --counts_[static_cast<std::size_t>(trial.state)];
    queued_.erase(trial.number);
    running_.erase(trial.number);
    trial.state = state;
    place(trial);
}

void TrialTable::end(Trial& trial, TrialState state, std::int64_t now_ms) {
    TUNE_CHECK(is_ended(state), "a trial ends in a state for good");
    move(trial, state);
    trial.end_ms = now_ms;
    last_end_ms_ = std::max(last_end_ms_, now_ms);
}

void TrialTable::note_asked(Trial& trial, std::string request_id) {
    if (request_id.empty()) return;
    by_request_[request_id].push_back(trial.number);
    trial.ask_request = std::move(request_id);
}

void TrialTable::note_enqueued(Trial& trial, const Point& fixed, std::string request_id) {
    trial.fixed = fixed;
    if (!request_id.empty()) by_enqueue_[request_id] = trial.number;
    trial.enqueue_request = std::move(request_id);
}

}  // namespace tune::tuner
