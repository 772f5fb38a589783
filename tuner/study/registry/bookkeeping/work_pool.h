#pragma once
// A few threads that do what is posted to them, first come, first served.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tune::tuner {

/// Thread-safe. The queue has no bound of its own: whoever posts says how much of it may wait.
class WorkPool {
public:
    struct Options {
        const char* name = "";  ///< of its threads; at most 15 characters
        int threads = 1;
        int stand_back = 0;  ///< niceness of the threads; see base/system/thread.h
    };
    explicit WorkPool(Options options);
    ~WorkPool();
    WorkPool(const WorkPool&) = delete;
    WorkPool& operator=(const WorkPool&) = delete;

    /// Never blocks. After stop() the work is done at once, on this thread.
    void post(std::function<void()> work);

    /// Does what was posted, and ends the threads. Idempotent. Not from one of its threads.
    void stop();

private:
    void run(const Options& options);

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> waiting_;  // guarded by mutex_
    bool stopping_ = false;                      // guarded by mutex_
    bool stopped_ = false;                       // guarded by mutex_
    std::vector<std::thread> threads_;
};

}  // namespace tune::tuner
