#pragma once
// Where on this machine the trials' checkpoints lie: whose folder is which, made before an attempt
// starts, gone when it left nothing in it.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "tuner/protocol.h"
#include "worker/agent/checkpoints/empty_folders.h"

namespace tune::worker {

struct CheckpointPlaces {
    std::filesystem::path root;   // of keys that are relative
    std::filesystem::path state;  // of folder_record.h
    std::filesystem::path spare;  // empty folders wait here, those below `own` alone
    std::filesystem::path own;    // no other agent has folders here
    bool stores = true;           // beyond this machine, where the study leaves it open
};

/// The key of the trial's folder (tuner::Lease::checkpoint_dir).
[[nodiscard]] std::string checkpoint_key(const tuner::Lease& lease);

/// Not thread-safe.
class CheckpointFolders {
public:
    explicit CheckpointFolders(CheckpointPlaces places);

    [[nodiscard]] const std::filesystem::path& state() const { return places_.state; }
    /// Where the attempt's checkpoints are stored beyond this machine; empty: nowhere.
    [[nodiscard]] std::string store_of(const tuner::Lease& lease) const;
    /// Errors: kInvalidParameterValue for a key with "..".
    [[nodiscard]] Result<std::filesystem::path> path_of(const std::filesystem::path& key) const;

    /// Makes the attempt's folder; from now on what is in it is this attempt's. Errors: those of
    /// path_of, kInternalError.
    [[nodiscard]] Result<std::filesystem::path> make(const tuner::Lease& lease);
    /// The folder of the trial that this one continues; empty if it starts from nothing. A trial
    /// that would train from nothing in its place would be a wrong result, so a missing one is an
    /// error: kInvalidParameterValue. `own`: the attempt's folder.
    [[nodiscard]] Result<std::filesystem::path> find_parent(const tuner::Lease& lease,
                                                            const std::filesystem::path& own) const;
    /// Nobody uses the folder any more: if it is empty it goes.
    void leave(const std::filesystem::path& folder) { empty_.take_back(folder); }

private:
    const CheckpointPlaces places_;
    EmptyFolders empty_;
};

}  // namespace tune::worker
