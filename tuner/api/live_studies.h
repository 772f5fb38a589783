#pragma once
// What the web page sees live of studies, thinned out so that a study of many short trials still
// sends at most ten batches a second:
//
//   study:<name>   trial {study, trial: <trial_json>}
//                  study <study_json>
//   studies        study <study_json>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tracker/api/ui/event_hub.h"
#include "tuner/study/registry/studies.h"

namespace tune::tuner {

/// Thread-safe. Costs a look-up a change while nobody listens. Outlives the Studies it listens to;
/// stop() before these are destroyed.
class LiveStudies final : public StudyListener {
public:
    /// Time between two flushes.
    static constexpr int kFlushInterval_ms = 100;

    explicit LiveStudies(tracker::EventHub& hub) : hub_(hub) {}
    ~LiveStudies() override;
    LiveStudies(const LiveStudies&) = delete;
    LiveStudies& operator=(const LiveStudies&) = delete;

    /// Begins to publish what `studies` tells.
    void start(const Studies& studies);
    /// Publishes nothing more. Idempotent.
    void stop();

    void on_trial(const Study& study, const Trial& trial) override;
    void on_study(const Study& study) override;

private:
    void mark(const Study& study, const Trial* trial);
    void run();
    void publish(const std::string& name, const std::set<std::uint64_t>& trials);

    tracker::EventHub& hub_;
    const Studies* studies_ = nullptr;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::string, std::set<std::uint64_t>> changed_;  // study -> trials
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace tune::tuner
