#pragma once
// Removes checkpoints of population based training that no trial will continue any more. They may
// be large, so this has a thread of its own: neither the loop nor the conversation with the server
// waits for a disk.

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tuner/protocol.h"

namespace tune::worker {

/// All methods from any thread. A kill at any moment leaves at most folders that the next answer of
/// the server names again.
class CheckpointCleaner {
public:
    /// `root`: that of AttemptSettings::checkpoint_root. `removed` is called on its thread with the
    /// key (tuner::Lease::checkpoint_dir) of each folder that is gone.
    explicit CheckpointCleaner(std::filesystem::path root,
                               std::function<void(const std::string& key)> removed = {})
        : root_(std::move(root)), removed_(std::move(removed)) {}
    ~CheckpointCleaner();
    CheckpointCleaner(const CheckpointCleaner&) = delete;
    CheckpointCleaner& operator=(const CheckpointCleaner&) = delete;

    void start();
    /// What waits is one entry a study: what either of two answers calls needless is.
    void submit(tuner::NeededCheckpoints needed);
    /// Removes what was submitted and ends the thread. Idempotent.
    void stop();

private:
    void work();
    void clean(const tuner::NeededCheckpoints& needed);

    const std::filesystem::path root_;
    const std::function<void(const std::string& key)> removed_;
    std::thread thread_;
    bool warned_ = false;  // of the thread

    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_:
    std::map<std::string, tuner::NeededCheckpoints> waiting_;  // by folder
    bool stopping_ = false;
};

}  // namespace tune::worker
