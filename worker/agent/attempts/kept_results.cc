#include "worker/agent/attempts/kept_results.h"

#include <utility>

#include "worker/agent/attempts/attempt_parts.h"

namespace tune::worker {

KeptResults::KeptResults(Loop& loop, CheckpointTransfer& transfer, const CheckpointFolders& folders,
                         int deadline_ms, const std::function<void()>& released)
    : saves_(loop, transfer, folders, deadline_ms, released), models_(loop, transfer, released) {}

void KeptResults::watch(std::uint64_t serial, const tuner::Lease& lease,
                        const std::filesystem::path& folder, const AttemptFiles& files) {
    models_.watch(serial, lease, short_name(lease), files);
    saves_.watch(serial, lease, short_name(lease), folder, files);
}

void KeptResults::report_when_kept(std::uint64_t serial, tuner::FinishRequest request,
                                   Report report) {
    saves_.stop(serial);
    models_.finish(serial, std::move(request),
                   [this, serial, report = std::move(report)](tuner::FinishRequest logged) {
                       saves_.finish(serial, std::move(logged), report);
                   });
}

void KeptResults::forget(std::uint64_t serial) {
    models_.forget(serial);
    saves_.forget(serial);
}

void KeptResults::hurry() {
    saves_.hurry();
    models_.hurry();
}

void KeptResults::on_result(const CheckpointJob& job, const CheckpointResult& result) {
    if (job.kind == CheckpointJob::Kind::kModel) return models_.on_result(job.serial, result.error);
    saves_.on_result(job, result);
}

}  // namespace tune::worker
