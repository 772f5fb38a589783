// What an attempt runs in, found out beside it (environment/run_environment.h) and handed over
// before its end is.

#include <algorithm>
#include <utility>

#include "base/system/file.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempts.h"

namespace tune::worker {

void Attempts::capture_environment(Attempt& attempt) {
    if (parts_.environment == nullptr) return;
    attempt.environment_known = false;
    const tuner::Lease& lease = attempt.record.lease;
    EnvironmentQuestion question{.command = lease.command,
                                 .working_dir = lease.working_dir,
                                 .search_path = attempt.search_path,
                                 .driver_version = settings_.driver_version};
    for (const GpuFacts& gpu : settings_.gpus)
        if (std::find(attempt.record.gpus.begin(), attempt.record.gpus.end(), gpu.uuid) !=
            attempt.record.gpus.end())
            question.gpus.push_back(gpu);
    const std::uint64_t serial = attempt.record.serial;
    parts_.environment->ask(std::move(question), [this, serial](RunEnvironment environment) {
        parts_.loop->post([this, serial, environment = std::move(environment)]() mutable {
            on_environment(serial, std::move(environment));
        });
    });
}

void Attempts::on_environment(std::uint64_t serial, RunEnvironment environment) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || attempt->environment_known) return;
    attempt->environment_known = true;
    std::vector<tuner::ReportedTag> tags;
    for (auto& [key, value] : environment.tags) tags.push_back({key, std::move(value)});
    parts_.outbox->add_tags(serial, std::move(tags));
    if (!environment.diff.empty()) {
        const Result<void> written =
            write_file_atomic(attempt->files.path(kDiffFile), environment.diff);
        if (!written) attempt->files.note(written.error().text());
    }
    conclude_if_known(*attempt);
}

}  // namespace tune::worker
