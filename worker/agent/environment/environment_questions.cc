#include "worker/agent/environment/environment_questions.h"

#include <algorithm>
#include <utility>

namespace tune::worker {

EnvironmentQuestions::EnvironmentQuestions(Loop& loop, EnvironmentCapture* capture,
                                           std::vector<GpuFacts> gpus, std::string driver_version)
    : loop_(loop),
      capture_(capture),
      gpus_(std::move(gpus)),
      driver_version_(std::move(driver_version)) {}

void EnvironmentQuestions::ask(std::uint64_t serial, const tuner::Lease& lease,
                               std::string search_path, const std::vector<std::string>& gpus,
                               std::function<void(RunEnvironment)> done) {
    if (capture_ == nullptr) return;
    EnvironmentQuestion question{.command = lease.command,
                                 .working_dir = lease.working_dir,
                                 .search_path = std::move(search_path),
                                 .driver_version = driver_version_};
    std::copy_if(gpus_.begin(), gpus_.end(), std::back_inserter(question.gpus),
                 [&gpus](const GpuFacts& gpu) {
                     return std::find(gpus.begin(), gpus.end(), gpu.uuid) != gpus.end();
                 });
    asked_.insert(serial);
    capture_->ask(
        std::move(question), [this, serial, done = std::move(done)](RunEnvironment environment) {
            loop_.post([this, serial, done, environment = std::move(environment)]() mutable {
                asked_.erase(serial);
                done(std::move(environment));
            });
        });
}

}  // namespace tune::worker
