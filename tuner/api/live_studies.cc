#include "tuner/api/live_studies.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tuner/api/views.h"

namespace tune::tuner {
namespace {

constexpr const char* kAllStudies = "studies";

std::string topic_of(const std::string& study) {
    return "study:" + study;
}

}  // namespace

LiveStudies::~LiveStudies() {
    stop();
}

void LiveStudies::start(const Studies& studies) {
    studies_ = &studies;
    thread_ = std::thread([this] { run(); });
}

void LiveStudies::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void LiveStudies::on_trial(const Study& study, const Trial& trial) {
    mark(study, &trial);
}

void LiveStudies::on_study(const Study& study) {
    mark(study, nullptr);
}

void LiveStudies::mark(const Study& study, const Trial* trial) {
    if (!hub_.wanted(topic_of(study.name())) && !hub_.wanted(kAllStudies)) return;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::set<std::uint64_t>& trials = changed_[study.name()];
        if (trial != nullptr) trials.insert(trial->number);
    }
    wake_.notify_one();
}

void LiveStudies::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return stopping_ || !changed_.empty(); });
        if (stopping_) return;
        const auto changed = std::exchange(changed_, {});
        lock.unlock();
        for (const auto& [name, trials] : changed) publish(name, trials);
        lock.lock();
        // What changes meanwhile goes out together.
        wake_.wait_for(lock, std::chrono::milliseconds(kFlushInterval_ms),
                       [this] { return stopping_; });
    }
}

void LiveStudies::publish(const std::string& name, const std::set<std::uint64_t>& trials) {
    StudyCopy copy;
    std::vector<TrialCopy> changed;
    const Result<void> read = studies_->read(name, [&](const Study& study) {
        copy = copy_of(study);
        for (const std::uint64_t number : trials)
            if (const Trial* const trial =
                    study.trials().find(number))  // of a study of this name before
                changed.push_back(copy_of(study, *trial));
    });
    if (!read) return;
    const Json study_event = study_json(copy);
    const std::int64_t experiment_id = copy.identity.experiment_id;
    const std::string topic = topic_of(name);
    for (const TrialCopy& trial : changed)
        hub_.publish(topic, "trial", {{"study", name}, {"trial", trial_json(*copy.config, trial)}},
                     experiment_id);
    hub_.publish(topic, "study", study_event, experiment_id);
    hub_.publish(kAllStudies, "study", study_event, experiment_id);
}

}  // namespace tune::tuner
