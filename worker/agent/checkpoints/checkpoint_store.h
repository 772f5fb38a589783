#pragma once
// Where the sets of one run lie: manifests and, by their digests, the files they name. Either the
// run's artifacts or a folder that all agents see.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/client/client.h"

namespace tune::worker {

/// Names are "manifest-....json" and "files/<sha256>". One thread at a time. Errors of all:
/// kResourceDoesNotExist for what is not there; kResourceConflict when the attempt is over
/// (artifacts); those of tracker::Client; kInternalError with path and reason (folders).
class CheckpointStore {
public:
    virtual ~CheckpointStore() = default;
    CheckpointStore(const CheckpointStore&) = delete;
    CheckpointStore& operator=(const CheckpointStore&) = delete;

    /// The names in `folder` ("" or "files"); nothing where it is not there.
    [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;
    [[nodiscard]] virtual Result<std::string> read(const std::string& name) = 0;
    /// To a new file.
    [[nodiscard]] virtual Result<void> get(const std::string& name,
                                           const std::filesystem::path& to) = 0;
    // Both: the whole of it is there, or nothing.
    [[nodiscard]] virtual Result<void> put(const std::string& name,
                                           const std::filesystem::path& from) = 0;
    [[nodiscard]] virtual Result<void> write(const std::string& name, std::string_view text) = 0;
    /// One that is not there is no error.
    [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
    /// All of the run's.
    [[nodiscard]] virtual Result<void> clear() = 0;

protected:
    CheckpointStore() = default;
};

/// In the artifacts of the run, below checkpoints/; `client` outlives it. Errors: those of the
/// server, kInvalidParameterValue when the server does not serve the run's artifacts.
[[nodiscard]] Result<std::unique_ptr<CheckpointStore>> artifact_store(tracker::Client& client,
                                                                      const std::string& run_id);

/// In `root`/<run_id>.
[[nodiscard]] std::unique_ptr<CheckpointStore> folder_store(const std::filesystem::path& root,
                                                            const std::string& run_id);

}  // namespace tune::worker
