#pragma once
// Puts the log files of attempts into their runs' artifacts: while they grow, and whole at the end.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/server/sender.h"

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
class LogUpload final : public Sender {
public:
    /// `done` is called on the uploader's thread after a job, with false if the logs could not be
    /// put and the server will not take them.
    using Done = std::function<void(std::uint64_t serial, bool final, bool uploaded)>;

    [[nodiscard]] static Result<std::unique_ptr<LogUpload>> create(const std::string& server_url,
                                                                   Done done);
    ~LogUpload() override;

    /// One job an attempt waits at a time: a later one takes the place of an earlier one. Those of
    /// one run go one after another, as its next attempt writes over what the last one left.
    void submit(LogJob job);

private:
    static constexpr int kThreads = 2;
    explicit LogUpload(Done done) : done_(std::move(done)) {}
    void work(tracker::Client& client) override;
    Result<void> upload(tracker::Client& client, const LogJob& job);
    Result<std::string> experiment_root(tracker::Client& client, const std::string& experiment_id);

    const Done done_;
    std::deque<LogJob> jobs_;                   // guarded by mutex_
    std::set<std::string> busy_;                // guarded by mutex_: runs being uploaded
    std::map<std::string, std::string> roots_;  // guarded by mutex_: experiment id -> its folder
};

/// Makes `path` fit for upload: itself, or, where the middle of a long log has been given back, a
/// file beside it with the beginning, a line that says how much is missing, and the end.
[[nodiscard]] Result<std::filesystem::path> whole_log(const std::filesystem::path& path);

}  // namespace tune::worker
