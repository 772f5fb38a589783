#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

enum class ArtifactMode {
    kCopy,  ///< files are copied into the artifact store
    kLink,  ///< hard links where possible: no space, but a file changed in place changes in both
    kNone,  ///< files stay, and so do their addresses
};

struct MovedFiles {
    std::int64_t files = 0;      // that are in the store now
    std::int64_t files_new = 0;  // of these, brought by this call
    std::uint64_t bytes = 0;
    std::vector<std::string> left_out = {};  // links, special files, names that are not allowed
};

/// Brings the artifacts of runs and models into the artifact store. What was brought is read back
/// and its SHA-256 compared with that of what the source gave. A file that is there already is left
/// as it is if it has the same bytes, or, where the source's files are not on this machine, the
/// same size. One thread.
class ArtifactMover {
public:
    /// `root`: the folder of `store`.
    ArtifactMover(FileSource& source, const ArtifactStore& store, std::filesystem::path root,
                  ArtifactMode mode)
        : source_(source), store_(store), root_(std::move(root)), mode_(mode) {}

    /// Moves `files`, listed by the source for `owner`, to `folder` under the root. Errors:
    /// kDataLoss for a file that reads back differently; those of source and store.
    [[nodiscard]] Result<MovedFiles> move(const ArtifactOwner& owner, const SourceFiles& files,
                                          const std::string& folder) const;

private:
    [[nodiscard]] Result<bool> is_there(const ArtifactOwner& owner, const SourceFile& file,
                                        const std::string& target) const;
    [[nodiscard]] Result<void> move_one(const ArtifactOwner& owner, const SourceFile& file,
                                        const std::string& target) const;
    [[nodiscard]] Result<bool> link_one(const ArtifactOwner& owner, const SourceFile& file,
                                        const std::string& target) const;

    FileSource& source_;
    const ArtifactStore& store_;
    std::filesystem::path root_;
    ArtifactMode mode_;
};

}  // namespace tune::tracker
