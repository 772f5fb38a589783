#pragma once
// What the web page sees live: the store's commits as events of the hub, thinned out so that a run
// that logs 20,000 metrics per second still sends four events per second.
//
//   experiments       experiment {experiment_id, name, lifecycle_stage}
//                     activity   {experiment_id}
//   experiment:<id>   run        {run_id, experiment_id, name, status, start_time, end_time,
//                                 lifecycle_stage} and/or {tags}
//                     metrics    {run_id, latest: {key: {value, step, timestamp}}}
//                     params     {run_id, params: {key: value}}
//   run:<id>          run        as above
//                     metrics    {run_id, points: [[key, step, timestamp, value], ...]}
//                     params     as above
//
// Values that are not finite are the strings "NaN", "Infinity", "-Infinity".

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/store/commands/events.h"

namespace tune::tracker {

class LiveTopic;

/// Thread-safe. Costs a look-up per event while nobody listens. Memory: what changed since the last
/// flush in the topics that somebody watches (see LiveTopic).
class LiveEvents final : public CommitObserver {
public:
    /// Time between two flushes of one topic.
    static constexpr std::int64_t kFlushInterval_ms = 250;
    /// The readers are reviewed this often at least, while there are any: tokens and sessions end
    /// with their time.
    static constexpr std::int64_t kReviewInterval_ms = 10'000;

    LiveEvents(EventHub& hub, const Clock& clock);
    ~LiveEvents() override;
    LiveEvents(const LiveEvents&) = delete;
    LiveEvents& operator=(const LiveEvents&) = delete;

    void on_commit(const Commit& commit) override;
    void on_permissions_changed() override { review_readers(); }

    /// Somebody's rights or credential ended, or may have: streams lose what is not theirs any
    /// more, soon, on a thread that may wait.
    void review_readers();

private:
    void add(const Event& event);
    LiveTopic* find_topic(const std::string& name);
    void run();
    std::int64_t flush_due(std::int64_t now_ms);

    EventHub& hub_;
    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::string, std::unique_ptr<LiveTopic>> topics_;
    bool has_new_topic_ = false;
    bool must_review_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace tune::tracker
