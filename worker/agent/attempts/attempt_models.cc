// The model that a trial left when it was complete is logged before its end is reported: until then
// the attempt's own credential holds, and who reads that the trial is complete finds its model. An
// agent that was killed meanwhile finds the folder again when it takes the attempt over.

#include <utility>

#include "base/log.h"
#include "worker/agent/attempts/attempts.h"
#include "worker/agent/models/logged_model.h"

namespace tune::worker {
namespace {

/// Who wants it killed at once does not wait long for its model.
constexpr std::int64_t kHurriedModel_ms = 10'000;

}  // namespace

void Attempts::watch_model(std::uint64_t serial, const tuner::Lease& lease, std::string name,
                           const AttemptFiles& files) {
    // Of several machines the first has the rank that writes.
    if (lease.gang && lease.gang->node > 0) return;
    models_.insert_or_assign(
        serial,
        Modelled{.job = {.serial = serial,
                         .kind = CheckpointJob::Kind::kModel,
                         .at = {"artifacts", lease.run_id},
                         .token = lease.token,
                         .model = {files.path(kModelFolder), lease.run_id, lease.experiment_id}},
                 .files = files,
                 .name = std::move(name)});
}

bool Attempts::log_model_first(std::uint64_t serial, tuner::FinishRequest& request,
                               std::function<void(tuner::FinishRequest)>& report) {
    const auto found = models_.find(serial);
    if (found == models_.end()) return false;
    Modelled& model = found->second;
    if (request.outcome != tuner::Outcome::kDone || !holds_model(model.job.model.folder)) {
        models_.erase(found);
        return false;
    }
    model.held = std::move(request);
    model.report = std::move(report);
    if (is_hurried_) hurry_model(serial);
    parts_.transfer->submit(model.job);
    return true;
}

void Attempts::hurry_model(std::uint64_t serial) {
    Modelled& model = models_.at(serial);
    if (!model.held || model.timer != Loop::kNoTimer) return;
    model.timer = parts_.loop->at(parts_.loop->now_ms() + kHurriedModel_ms, [this, serial] {
        parts_.transfer->give_up(serial);
        on_model(serial, Error{Code::kDeadlineExceeded, "there was no more time for it"});
    });
}

void Attempts::hurry_models() {
    for (const auto& [serial, model] : models_) hurry_model(serial);
}

void Attempts::on_model(std::uint64_t serial, const std::optional<Error>& error) {
    auto found = models_.extract(serial);
    if (found.empty()) return;
    Modelled model = std::move(found.mapped());
    parts_.loop->cancel(model.timer);
    if (error) {
        const std::string text = "its model was not logged: " + error->text();
        model.files.note(text);
        log_warning(model.name + ": " + text);
    }
    if (model.held) report_with_checkpoint(serial, std::move(*model.held), model.report);
    publish();
}

}  // namespace tune::worker
