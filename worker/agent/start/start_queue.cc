// A lease passes through the queue in the order of the steps in start_queue.h. What cannot get its
// devices now is kept in the order of arrival and tried again, all of it, whenever something was
// given back: a trial that needs less may start before one that needs more.

#include "worker/agent/start/start_queue.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/devices/machine_locks.h"
#include "worker/agent/models/registered_model.h"

namespace tune::worker {
namespace {

/// Where it cannot be heard that a core became free, it is looked for again after this time.
constexpr int kCoreRest_ms = 200;

/// What was there when the server chose this agent may be gone meanwhile.
tuner::Outcome outcome_without_devices(const Error& error) {
    if (error.code == Code::kInvalidParameterValue) return tuner::Outcome::kBadConfig;
    return error.code == Code::kResourceDoesNotExist ? tuner::Outcome::kLost
                                                     : tuner::Outcome::kPreempted;
}

}  // namespace

StartQueue::StartQueue(Loop& loop, Devices& devices, int slots, CheckpointTransfer& transfer,
                       const CheckpointFolders& folders, const std::filesystem::path& model_root,
                       int deadline_ms, StartHooks hooks)
    : loop_(loop),
      devices_(devices),
      has_gpu_each_(slots > 0 && devices.gpus().size() >= static_cast<std::size_t>(slots)),
      hooks_(std::move(hooks)),
      fetches_(loop, transfer, folders, model_root, deadline_ms,
               [this](tuner::Lease lease, const CheckpointResult& result) {
                   receive(std::move(lease), result);
                   hooks_.changed();
               }) {}

void StartQueue::start(tuner::Lease lease) {
    if (!fetches_.take(lease)) place({std::move(lease), {}});
}

void StartQueue::retry() {
    std::deque<Waiting> waiting;
    waiting.swap(waiting_);
    for (Waiting& each : waiting) place(std::move(each));
}

void StartQueue::on_fetched(std::uint64_t job, const CheckpointResult& result) {
    fetches_.on_result(job, result);
}

void StartQueue::receive(tuner::Lease lease, const CheckpointResult& result) {
    for (const std::string& note : result.notes) log_info(short_name(lease) + ": " + note);
    if (result.model_error)
        return hooks_.refuse(lease, tuner::Outcome::kBadConfig, result.model_error->message);
    const bool has_models = result.models.size() == wanted_models(lease.command).size();
    if (result.error && (result.error->code != Code::kInvalidParameterValue || !has_models))
        // It would begin anew here, and might go on elsewhere.
        return hooks_.refuse(lease, tuner::Outcome::kLost,
                             "what it starts from, a stored checkpoint or a registered model, "
                             "could not be fetched: " +
                                 result.error->message);
    for (const FetchedModel& model : result.models)
        put_model_path(lease.command, model.uri, model.folder);
    if (result.error) log_warning(result.error->message);
    // Its parent's record says that what is here now is what is stored.
    place({std::move(lease), result.notes});
}

void StartQueue::place(Waiting waiting) {
    tuner::Lease& lease = waiting.lease;
    const StartHooks::Admission admission = hooks_.admit(lease);
    if (admission == StartHooks::Admission::kTaken) return;
    if (admission == StartHooks::Admission::kLater) return waiting_.push_back(std::move(waiting));
    double gpus = lease.gpus_per_trial;
    // Nothing asked for, and a GPU for each slot: then each trial gets one of its own.
    if (gpus <= 0 && has_gpu_each_) gpus = 1;
    std::vector<std::string> chosen;
    for (const tuner::GrantedGpu& gpu : lease.devices) chosen.push_back(gpu.uuid);
    Result<std::optional<Assignment>> taken =
        chosen.empty()
            ? devices_.take(lease.cpus_per_trial, gpus)
            : devices_.take_these(lease.cpus_per_trial, chosen, lease.devices.front().bytes > 0);
    if (!taken)
        return hooks_.refuse(lease, outcome_without_devices(taken.error()), taken.error().message);
    if (!*taken) {
        waiting_.push_back(std::move(waiting));
        return await_core();
    }
    hooks_.launch({std::move(lease), std::move(**taken), std::move(waiting.notes)});
}

/// What waits for a core that another agent of this machine has hears when that lets go of it.
void StartQueue::await_core() {
    const std::string& name = devices_.held_elsewhere();
    if (name.empty() || core_news_) return;
    std::optional<UniqueFd> news = wait_for_release(name);
    const auto look_again = [this] {
        if (core_news_) loop_.unwatch(core_news_.get());
        core_news_.reset();
        retry();
        hooks_.changed();
    };
    if (news && loop_.watch(news->get(), look_again))
        core_news_ = std::move(*news);
    else
        loop_.at(loop_.now_ms() + kCoreRest_ms, look_again);
}

std::vector<tuner::AttemptId> StartQueue::ids() const {
    std::vector<tuner::AttemptId> ids = fetches_.ids();
    for (const Waiting& waiting : waiting_) ids.push_back(waiting.lease.id());
    return ids;
}

std::optional<tuner::Lease> StartQueue::take(const tuner::AttemptId& id) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
        return waiting.lease.id() == id;
    });
    if (found == waiting_.end()) return fetches_.give_up(id);
    std::optional<tuner::Lease> taken = std::move(found->lease);
    waiting_.erase(found);
    return taken;
}

}  // namespace tune::worker
