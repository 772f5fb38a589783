// The state of the fleet is the engine's list. Two rules keep it calm: running agents are never
// ended for want of work while trials are left (they end by themselves when idle), and agents that
// fail at once are started three times, not for ever. What was asked to end is not asked again: an
// agent that gets the same signal once a look could take it for more urgency each time.

#include "worker/launch/fleet.h"

#include <algorithm>
#include <map>

#include "base/text/counted.h"

namespace tune::launch {
namespace {

/// Starts in a row that failed before the launcher gives up.
constexpr int kFailuresMax = 3;

bool is_alive(const AgentJob& job) {
    return job.state == AgentJob::State::kPending || job.state == AgentJob::State::kRunning;
}

/// What waited when it was asked to end and runs now is asked again.
std::string key_of(const AgentJob& job) {
    return std::string(state_name(job.state)) + " " + job.id + " " + job.incarnation;
}

int agents_in(const std::vector<AgentJob>& jobs, AgentJob::State state) {
    int count = 0;
    for (const AgentJob& job : jobs)
        if (job.state == state) count += job.agents;
    return count;
}

}  // namespace

int agents_wanted(std::int64_t trials, const AgentSettings& settings) {
    if (trials <= 0) return 0;
    const std::int64_t slots = std::int64_t{slots_of(settings)} * settings.nodes;
    const std::int64_t most = std::max(1, settings.agents / settings.nodes);
    return static_cast<int>(std::min(most, (trials + slots - 1) / slots)) * settings.nodes;
}

std::string jobs_text(const std::vector<AgentJob>& jobs) {
    const int running = agents_in(jobs, AgentJob::State::kRunning);
    const int pending = agents_in(jobs, AgentJob::State::kPending);
    std::string text;
    if (running > 0) text = counted(running, "agent") + " running";
    if (pending == 0) return text;
    text += text.empty() ? counted(pending, "agent") : ", " + std::to_string(pending);
    text += " pending";
    std::map<std::string, int> reasons;
    for (const AgentJob& job : jobs)
        if (job.state == AgentJob::State::kPending && !job.reason.empty())
            reasons[job.reason] += job.agents;
    std::vector<std::pair<int, std::string>> sorted;
    for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason);
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
        text += (i == 0 ? ": " : "; ") + sorted[i].second;
    return text;
}

Fleet::Fleet(std::unique_ptr<Engine> engine, AgentSettings settings)
    : engine_(std::move(engine)), settings_(std::move(settings)) {}

void Fleet::count_failures(const std::vector<AgentJob>& jobs, std::int64_t done) {
    if (done > done_) failed_in_a_row_ = 0;
    done_ = done;
    for (const AgentJob& job : jobs) {
        if (job.state != AgentJob::State::kFailed ||
            !known_failed_.insert(job.id + " " + job.incarnation).second)
            continue;
        if (is_first_look_) continue;  // of an earlier launcher
        if (++failed_in_a_row_ < kFailuresMax) continue;
        const std::string output = engine_->last_output(job);
        given_up_ = counted(failed_in_a_row_, "agent") + " in a row ended at once (" +
                    (job.reason.empty() ? "no reason is known" : job.reason) +
                    "); no more are started." +
                    (output.empty() ? "" : " The last one printed:\n" + output);
    }
    is_first_look_ = false;
}

std::vector<AgentJob> Fleet::alive_of(const std::vector<AgentJob>& jobs) {
    std::vector<AgentJob> alive;
    std::map<std::string, StopKind> still_asked;
    for (const AgentJob& job : jobs) {
        if (!is_alive(job)) continue;
        alive.push_back(job);
        if (const auto asked = asked_to_end_.find(key_of(job)); asked != asked_to_end_.end())
            still_asked.insert(*asked);
    }
    asked_to_end_ = std::move(still_asked);
    return alive;
}

Result<void> Fleet::ask_to_end(const std::vector<AgentJob>& jobs, StopKind kind) {
    std::vector<AgentJob> fresh;
    for (const AgentJob& job : jobs) {
        const auto asked = asked_to_end_.find(key_of(job));
        if (asked == asked_to_end_.end() || asked->second != kind) fresh.push_back(job);
    }
    if (fresh.empty()) return {};
    TUNE_TRY_VOID(engine_->stop(fresh, kind));
    for (const AgentJob& job : fresh) asked_to_end_[key_of(job)] = kind;
    return {};
}

Result<void> Fleet::balance(const std::vector<AgentJob>& alive, int wanted) {
    int agents = 0;
    for (const AgentJob& job : alive) agents += job.agents;
    const int missing = (wanted - agents) / (engine_->starts_singly() ? 1 : settings_.nodes);
    if (missing > 0) return given_up_.empty() ? engine_->start(missing) : Result<void>();
    if (wanted == 0 && !alive.empty()) return ask_to_end(alive, StopKind::kStop);
    std::vector<AgentJob> excess;
    for (auto job = alive.rbegin(); job != alive.rend() && agents > wanted; ++job) {
        if (job->state != AgentJob::State::kPending || job->is_unreachable) continue;
        agents -= job->agents;
        if (agents >= wanted) excess.push_back(*job);
    }
    return ask_to_end(excess, StopKind::kStop);
}

FleetView Fleet::step(std::int64_t trials, std::int64_t done) {
    FleetView view;
    const Result<std::vector<AgentJob>> jobs = engine_->list();
    if (!jobs) {
        view.error = jobs.error().message;
        return view;
    }
    count_failures(*jobs, done);
    view.jobs = alive_of(*jobs);
    view.pending = agents_in(view.jobs, AgentJob::State::kPending);
    view.running = agents_in(view.jobs, AgentJob::State::kRunning);
    view.given_up = given_up_;
    view.text = jobs_text(view.jobs);
    const Result<void> balanced = balance(view.jobs, agents_wanted(trials, settings_));
    if (!balanced) view.error = balanced.error().message;
    return view;
}

bool Fleet::end(StopKind kind) {
    const Result<std::vector<AgentJob>> jobs = engine_->list();
    if (!jobs) return false;
    std::vector<AgentJob> alive = alive_of(*jobs);
    // What cannot be reached cannot be ended either; such agents end when the server is gone.
    std::erase_if(alive, [](const AgentJob& job) { return job.is_unreachable; });
    if (alive.empty()) {
        engine_->clear();
        return true;
    }
    static_cast<void>(ask_to_end(alive, kind));
    return false;
}

}  // namespace tune::launch
