#pragma once
// Puts the log files of attempts into their runs' artifacts: while they grow, and whole at the end.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "tracker/client/client.h"
#include "tuner/protocol.h"
#include "worker/agent/attempt_files.h"

namespace tune::worker {

/// One attempt's logs as they are now.
struct LogJob {
    std::uint64_t serial = 0;
    AttemptFiles files;
    tuner::AttemptId id;
    std::string experiment_id;
    bool final = false;         // repeated until it is done; else one try
    bool keep_attempt = false;  // final: also under logs/attempt-<n>/, as another attempt follows
};

/// All methods from any thread. The run's folder of artifacts is that of its experiment
/// (artifact_location), which must be one that the server serves (mlflow-artifacts:); otherwise the
/// logs stay on this machine, with one warning an experiment.
class LogUpload {
public:
    /// `done` is called on the uploader's thread after a job, with false if the logs could not be
    /// put and the server will not take them.
    using Done = std::function<void(std::uint64_t serial, bool final, bool uploaded)>;

    [[nodiscard]] static Result<std::unique_ptr<LogUpload>> create(const std::string& server_url,
                                                                   Done done);
    ~LogUpload();
    LogUpload(const LogUpload&) = delete;
    LogUpload& operator=(const LogUpload&) = delete;

    void start();
    /// One job an attempt waits at a time: a later one takes the place of an earlier one.
    void submit(LogJob job);
    /// Ends the threads; jobs that were not begun are dropped. Idempotent.
    void stop();

private:
    static constexpr int kThreads = 2;
    explicit LogUpload(Done done) : done_(std::move(done)) {}
    void work(tracker::Client& client);
    Result<void> upload(tracker::Client& client, const LogJob& job);
    Result<std::string> experiment_root(tracker::Client& client, const std::string& experiment_id);
    bool pause(int delay_ms);

    const Done done_;
    std::vector<std::unique_ptr<tracker::Client>> clients_;
    std::vector<std::thread> threads_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<LogJob> jobs_;                   // guarded by mutex_
    std::map<std::uint64_t, bool> busy_;        // guarded by mutex_: attempts being uploaded
    std::map<std::string, std::string> roots_;  // guarded by mutex_: experiment id -> its folder
    bool stopping_ = false;                     // guarded by mutex_
};

/// Makes `path` fit for upload: itself, or, where the middle of a long log has been given back, a
/// file beside it with the beginning, a line that says how much is missing, and the end.
[[nodiscard]] Result<std::filesystem::path> whole_log(const std::filesystem::path& path);

}  // namespace tune::worker
