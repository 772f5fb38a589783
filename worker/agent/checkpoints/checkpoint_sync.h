#pragma once
// Brings a trial's checkpoint folder into a store and back. Synchronous, over any store; who calls
// it, when and with whose credential is checkpoint_transfer.h's.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "worker/agent/checkpoints/checkpoint_set.h"
#include "worker/agent/checkpoints/checkpoint_store.h"

namespace tune::worker {

/// What one attempt's stored sets are known to be; kept between two calls of save().
struct SaveState {
    bool is_known = false;                            // the rest was read from the store
    std::vector<CheckpointNumber> numbers;            // of the sets there, ascending
    std::set<std::string> stored;                     // digests that the kept sets name
    std::optional<std::vector<CheckpointFile>> last;  // the files of the last one
    std::vector<SeenFile> seen;                       // the folder then
    /// Digests by inode, size and time, so that a file that stays is read once.
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>, std::string> digests;
};

struct SaveOrder {
    std::filesystem::path folder;
    std::filesystem::path staging;  // on the same file system, for this call alone
    int attempt = 0;
    int keep = 2;
};

struct Saved {
    bool is_new = false;  // false: there was nothing new
    CheckpointNumber number;
    std::uint64_t bytes_sent = 0;
};

/// Stores the folder as it is: files that no kept set has, then the manifest; then what is older
/// than the last `keep` sets goes. Until the manifest is there, nothing has changed for a reader.
/// An empty folder is not stored. Errors: those of the store and of FolderSnapshot;
/// kResourceConflict when a later attempt has stored something; kTemporarilyUnavailable when a
/// program writes into its files all the while.
[[nodiscard]] Result<Saved> save(CheckpointStore& store, const SaveOrder& order, SaveState& state);

/// The latest set's number; nothing when there is none. Errors: those of the store.
[[nodiscard]] Result<std::optional<CheckpointNumber>> latest(CheckpointStore& store);

struct Restored {
    std::optional<CheckpointNumber> number;  // absent: no set was whole
    std::uint64_t bytes = 0;
    std::vector<std::string> damaged;  // a sentence for each later set that was not
};

/// Brings the latest whole set to `folder`, whose content it replaces, by way of `staging` on the
/// same file system: each file is compared with its digest first. Without a whole set the folder
/// stays as it is. Errors: those of the store but for missing files; kInternalError with path and
/// reason.
[[nodiscard]] Result<Restored> restore(CheckpointStore& store, const std::filesystem::path& folder,
                                       const std::filesystem::path& staging);

}  // namespace tune::worker
