#pragma once
// Folders of attempts that have ended, emptied for the next ones: making and removing a dozen files
// for each would cost more than a short trial itself.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "worker/agent/attempts/attempt_files.h"

namespace tune::worker {

/// Not thread-safe.
class SpareFolders {
public:
    /// `root`: on the file system of the attempts' folders. What an earlier agent left in it goes.
    explicit SpareFolders(std::filesystem::path root);
    ~SpareFolders();
    SpareFolders(const SpareFolders&) = delete;
    SpareFolders& operator=(const SpareFolders&) = delete;

    /// Makes the folder of an attempt (AttemptFiles::create), of a spare one if there is one: it
    /// appears with its attempt.json in it. Errors: those of AttemptFiles::create.
    [[nodiscard]] Result<void> make(const AttemptFiles& files, const AttemptRecord& record);

    /// The attempt is over and settled: keeps its folder for another, or removes it.
    void take_back(const AttemptFiles& files);

private:
    static constexpr std::size_t kMax = 64;  ///< more are removed

    const std::filesystem::path root_;
    std::vector<std::filesystem::path> spare_;
    std::uint64_t next_ = 0;
};

}  // namespace tune::worker
