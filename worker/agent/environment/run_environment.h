#pragma once
// What a trial ran in, so that its result can be had again: code, command, versions, devices, data.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/agent/devices/nvml.h"

namespace tune::worker {

struct EnvironmentQuestion {
    std::vector<std::string> command;
    std::string working_dir;  ///< empty: the agent's own
    std::string search_path;  ///< PATH of the trial
    std::vector<GpuFacts> gpus = {};
    std::string driver_version = {};
};

struct RunEnvironment {
    /// Tags of the run: those of MLflow where it has one, else `tune....`. What cannot be known is
    /// left out.
    std::vector<std::pair<std::string, std::string>> tags = {};
    /// What differs from the commit, at most kDiffBytesMax; empty: nothing, or there is no git.
    std::string diff = {};
};

inline constexpr std::size_t kDiffBytesMax = 1u << 20;

/// Finds it out on a thread of its own, where it may run git and the trial's Python: some 50 ms for
/// the first trial. What they said is used again, of git for
/// kGitAge_ms or twenty times as long as it took, so that later trials cost
/// microseconds. All methods from any thread.
class EnvironmentCapture {
public:
    static constexpr std::int64_t kGitAge_ms = 10'000;

    EnvironmentCapture() = default;
    ~EnvironmentCapture();
    EnvironmentCapture(const EnvironmentCapture&) = delete;
    EnvironmentCapture& operator=(const EnvironmentCapture&) = delete;

    void start();
    /// Idempotent. Questions that wait are not answered.
    void stop();
    /// `done` is called on the thread.
    void ask(EnvironmentQuestion question, std::function<void(RunEnvironment)> done);

    /// The answer, found out here and now. One thread at a time.
    [[nodiscard]] RunEnvironment capture(const EnvironmentQuestion& question);

private:
    struct Git {
        std::int64_t read_ms = 0;   // 0: never
        std::int64_t until_ms = 0;  // it holds
        std::vector<std::pair<std::string, std::string>> tags;
        std::string diff;
    };
    struct Asked {
        EnvironmentQuestion question;
        std::function<void(RunEnvironment)> done;
    };
    void work();
    const Git& git_of(const std::string& folder);
    static Git ask_git(const std::string& folder);
    const std::string& versions_of(const std::string& python);
    std::string digest_of(const std::string& path);
    void add_data(const EnvironmentQuestion& question, RunEnvironment& environment);

    // Of the thread:
    std::map<std::string, Git> git_;
    std::map<std::string, std::string> versions_;  // by interpreter, with its time of change
    std::map<std::string, std::string> digests_;   // by path, with size and time of change

    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Asked> asked_;  // guarded by mutex_
    bool stopping_ = false;    // guarded by mutex_
};

}  // namespace tune::worker
