#pragma once
// The threads on which passwords are hashed: few, since each hash takes a tenth of a second and 32
// MB, and a share of the queue for each client, so that one that guesses does not keep others out.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tune::tracker {

/// Hashes at a time.
inline constexpr int kHashThreads = 2;
/// Requests that wait for a hash: 3 s of them.
inline constexpr std::size_t kHashesWaitingMax = 64;
/// Of these, of one client address.
inline constexpr std::size_t kHashesWaitingPerClientMax = 16;

/// Thread-safe. The destructor runs what is queued, then joins.
class PasswordPool {
public:
    PasswordPool();
    ~PasswordPool();
    PasswordPool(const PasswordPool&) = delete;
    PasswordPool& operator=(const PasswordPool&) = delete;

    /// Runs the job later, in the order in which they came. False, without running it, when too
    /// many wait, of all or of this client.
    [[nodiscard]] bool post(const std::string& client, std::function<void()> job);

private:
    struct Job {
        std::string client;
        std::function<void()> run;
    };
    void work();

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;                                     // guarded by mutex_
    std::unordered_map<std::string, std::size_t> per_client_;  // guarded by mutex_
    bool is_stopping_ = false;                                 // guarded by mutex_
    std::vector<std::thread> threads_;
};

}  // namespace tune::tracker
