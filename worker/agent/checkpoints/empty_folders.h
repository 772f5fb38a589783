#pragma once
// Checkpoint folders that attempts left empty, kept for the next ones: a short trial writes none,
// and to make and remove a folder for each costs a file system more than to give one another name.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"

namespace tune::worker {

/// Not thread-safe.
class EmptyFolders {
public:
    /// `root`: where they wait; what an earlier agent left there goes. Only folders below `served`
    /// are kept: it is this agent's alone, so that none gets rights that it would not have had.
    EmptyFolders(std::filesystem::path root, const std::filesystem::path& served);
    ~EmptyFolders();
    EmptyFolders(const EmptyFolders&) = delete;
    EmptyFolders& operator=(const EmptyFolders&) = delete;

    /// Makes the folder and those above it, unless it is there. Errors: kInternalError.
    [[nodiscard]] Result<void> make(const std::filesystem::path& folder);

    /// Nobody uses the folder any more: if it is empty it goes, to be another's or for good.
    void take_back(const std::filesystem::path& folder);

private:
    static constexpr std::size_t kMax = 256;  ///< more are removed

    [[nodiscard]] bool is_served(const std::filesystem::path& folder) const;

    const std::filesystem::path root_;
    const std::filesystem::path served_;
    std::vector<std::filesystem::path> spare_;
    unsigned mode_ = 0;  ///< of a folder that was made here; 0: none was yet
    std::uint64_t next_ = 0;
};

}  // namespace tune::worker
