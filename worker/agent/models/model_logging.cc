#include "worker/agent/models/model_logging.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "worker/agent/models/logged_model.h"

namespace tune::worker {
namespace {

/// Who wants it killed at once does not wait long for its model.
constexpr std::int64_t kHurriedModel_ms = 10'000;

}  // namespace

ModelLogging::ModelLogging(Loop& loop, CheckpointTransfer& transfer, std::function<void()> released)
    : loop_(loop), transfer_(transfer), released_(std::move(released)) {}

void ModelLogging::watch(std::uint64_t serial, const tuner::Lease& lease, std::string name,
                         const AttemptFiles& files) {
    // Of several machines the first has the rank that writes.
    if (lease.gang && lease.gang->node > 0) return;
    attempts_.insert_or_assign(
        serial,
        Attempt{.job = {.serial = serial,
                        .kind = CheckpointJob::Kind::kModel,
                        .at = {"artifacts", lease.run_id},
                        .token = lease.token,
                        .model = {files.path(kModelFolder), lease.run_id, lease.experiment_id}},
                .files = files,
                .name = std::move(name)});
}

void ModelLogging::finish(std::uint64_t serial, tuner::FinishRequest request, Report report) {
    const auto found = attempts_.find(serial);
    if (found == attempts_.end()) return report(std::move(request));
    Attempt& attempt = found->second;
    if (request.outcome != tuner::Outcome::kDone || !holds_model(attempt.job.model.folder)) {
        attempts_.erase(found);
        return report(std::move(request));
    }
    attempt.held = std::move(request);
    attempt.report = std::move(report);
    if (is_hurried_) limit(serial, attempt);
    transfer_.submit(attempt.job);
}

void ModelLogging::limit(std::uint64_t serial, Attempt& attempt) {
    if (!attempt.held || attempt.timer != Loop::kNoTimer) return;
    attempt.timer = loop_.at(loop_.now_ms() + kHurriedModel_ms, [this, serial] {
        transfer_.give_up(serial);
        on_result(serial, Error{Code::kDeadlineExceeded, "there was no more time for it"});
    });
}

void ModelLogging::hurry() {
    is_hurried_ = true;
    for (auto& [serial, attempt] : attempts_) limit(serial, attempt);
}

void ModelLogging::on_result(std::uint64_t serial, const std::optional<Error>& error) {
    auto found = attempts_.extract(serial);
    if (found.empty()) return;
    Attempt attempt = std::move(found.mapped());
    loop_.cancel(attempt.timer);
    if (error) {
        const std::string text = "its model was not logged: " + error->text();
        attempt.files.note(text);
        log_warning(attempt.name + ": " + text);
    }
    if (attempt.held) attempt.report(std::move(*attempt.held));
    released_();
}

int ModelLogging::finishing() const {
    return static_cast<int>(
        std::count_if(attempts_.begin(), attempts_.end(),
                      [](const auto& entry) { return entry.second.held.has_value(); }));
}

}  // namespace tune::worker
