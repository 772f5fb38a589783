#pragma once
// Puts the log files of attempts into their runs' artifacts, as they grow, and the files that
// trials leave as artifacts: what was sent once is not sent again.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/server/sender.h"
#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {

/// One attempt's logs as they are now.
struct LogJob {
    std::uint64_t serial = 0;
    AttemptFiles files;
    tuner::AttemptId id;
    std::string experiment_id;
    std::string folder = {};    // below logs/, with a '/' at its end; empty: logs/ itself
    bool final = false;         // repeated until it is done; else one try
    bool keep_attempt = false;  // final: also under logs/attempt-<n>/, as another attempt follows
    /// Files in kArtifactFolder that are complete, by their paths or by those in it; final: all.
    std::vector<std::string> artifacts = {};
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

    /// One job an attempt waits at a time: a later one takes the place of an earlier one, with the
    /// artifacts of both. Those of one run go one after another, as its next attempt writes over
    /// what the last one left.
    void submit(LogJob job);
    /// There will be no more jobs of this attempt; before, it costs some 200 bytes.
    void forget(std::uint64_t serial);

private:
    static constexpr int kThreads = 2;
    struct FileState {
        std::uintmax_t bytes = 0;
        std::filesystem::file_time_type changed = {};

        friend bool operator==(const FileState&, const FileState&) = default;
    };
    explicit LogUpload(Done done) : done_(std::move(done)) {}
    void work(tracker::Client& client) override;
    /// What the server has of an attempt.
    struct Sent {
        std::map<std::string, std::uint64_t> logs = {};   // bytes
        std::map<std::string, FileState> artifacts = {};  // as they were then
    };

    Result<void> upload(tracker::Client& client, const LogJob& job);
    Result<void> upload_diff(tracker::Client& client, const LogJob& job);
    Result<void> upload_artifacts(tracker::Client& client, const LogJob& job, Sent& sent);
    Result<void> upload_live(tracker::Client& client, const std::string& address,
                             const std::filesystem::path& file, std::uint64_t& sent);
    Result<std::string> experiment_root(tracker::Client& client, const std::string& experiment_id);

    const Done done_;
    std::deque<LogJob> jobs_;                   // guarded by mutex_
    std::set<std::string> busy_;                // guarded by mutex_: runs being uploaded
    std::map<std::string, std::string> roots_;  // guarded by mutex_: experiment id -> its folder
    std::map<std::uint64_t, std::shared_ptr<Sent>> sent_;  // guarded by mutex_: by serial
};

/// Files that an attempt may leave as artifacts; what it has beyond is not sent.
inline constexpr std::size_t kArtifactsMax = 1000;

/// Longer logs may lack their middle.
inline constexpr std::int64_t kCompleteLogBytesMax = kLogHeadBytes + kLogTailBytes + kLogPunchBytes;

/// Makes `path` fit for upload: itself, or, where the middle of a long log has been given back, a
/// file beside it with the beginning, a line that says how much is missing, and the end.
[[nodiscard]] Result<std::filesystem::path> whole_log(const std::filesystem::path& path);

}  // namespace tune::worker
