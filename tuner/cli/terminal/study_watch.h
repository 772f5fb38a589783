#pragma once
// Follows a study over REST on a thread of its own: long-polls that the server answers when
// something changed.

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/result.h"
#include "tracker/client/client.h"

namespace tune::cli {

struct StudyView {
    Json study;               // as the API gives it; null until first read
    Json running;             // running trials with their intermediate values
    std::vector<Json> ended;  // trials that ended since the last take()
    std::string error;        // why the server cannot be read; empty while it can
};

class StudyWatch {
public:
    /// `changed` is called on the watch's thread when take() would give something new; it must not
    /// block. Reads the study once before it returns; trials that have ended by then are not
    /// reported.
    StudyWatch(std::string url, std::string study, std::function<void()> changed);
    /// Ends the thread; does not wait for a poll's time-out.
    ~StudyWatch();
    StudyWatch(const StudyWatch&) = delete;
    StudyWatch& operator=(const StudyWatch&) = delete;

    /// The latest state. Thread-safe.
    [[nodiscard]] StudyView take();

private:
    void follow();
    Result<void> refresh(tracker::Client& client);
    Result<void> collect_ended(tracker::Client& client);

    std::string study_;
    std::function<void()> changed_;
    std::unique_ptr<tracker::Client> client_;
    std::mutex mutex_;
    StudyView view_;                 // guarded by mutex_
    std::vector<bool> known_ended_;  // by trial number; of the thread
    std::int64_t ended_seen_ = -1;   // of the thread
    std::size_t first_open_ = 0;     // of the thread: all trials before it have ended
    bool first_ = true;              // of the thread
    std::int64_t version_ = -1;      // of the thread
    std::stop_source stop_;
    std::thread thread_;
};

}  // namespace tune::cli
