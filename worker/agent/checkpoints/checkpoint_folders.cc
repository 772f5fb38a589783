#include "worker/agent/checkpoints/checkpoint_folders.h"

#include <system_error>
#include <utility>

#include "worker/agent/checkpoints/folder_record.h"

namespace tune::worker {

std::string checkpoint_key(const tuner::Lease& lease) {
    return lease.checkpoint_dir.empty() ? lease.run_id : lease.checkpoint_dir;
}

CheckpointFolders::CheckpointFolders(CheckpointPlaces places)
    : places_(std::move(places)), empty_(places_.spare, places_.own) {}

std::string CheckpointFolders::store_of(const tuner::Lease& lease) const {
    const std::string& store = lease.checkpoints.store;
    if (store == "local") return {};
    if (store == "auto") return places_.stores ? "artifacts" : "";
    return store;
}

Result<std::filesystem::path> CheckpointFolders::path_of(const std::filesystem::path& key) const {
    for (const std::filesystem::path& part : key)
        if (part == "..")
            return Error{Code::kInvalidParameterValue,
                         "the checkpoint folder '" + key.string() + "' must not contain '..'"};
    return key.is_absolute() ? key : places_.root / key;
}

Result<std::filesystem::path> CheckpointFolders::make(const tuner::Lease& lease) {
    const std::string key = checkpoint_key(lease);
    TUNE_TRY(folder, path_of(key));
    TUNE_TRY_VOID(empty_.make(folder));
    const std::string store = store_of(lease);
    if (!store.empty())
        TUNE_TRY_VOID(
            write_folder_record(places_.state, key, {lease.attempt, {store, lease.run_id}}));
    return folder;
}

Result<std::filesystem::path> CheckpointFolders::find_parent(
    const tuner::Lease& lease, const std::filesystem::path& own) const {
    if (lease.resume_from.empty()) return std::filesystem::path();
    TUNE_TRY(folder, path_of(lease.resume_from));
    // An attempt that was interrupted has a checkpoint of its own.
    if (is_filled(folder) || is_filled(own)) return folder;
    return Error{
        Code::kInvalidParameterValue,
        "there is no checkpoint in '" + folder.string() +
            "', which this trial continues: the command must write one to TUNE_CHECKPOINT_DIR, and "
            "agents on several machines need a store (checkpoints: in the study) or a shared "
            "folder "
            "(--checkpoints)"};
}

}  // namespace tune::worker
