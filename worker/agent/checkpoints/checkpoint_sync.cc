// Files are stored under their digests, so equal ones are stored once, an interrupted upload costs
// only what it had not sent, and no attempt can damage what another one stored. A file counts as
// stored only if a readable manifest names it: what an interrupted upload left is written over.

#include "worker/agent/checkpoints/checkpoint_sync.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFiles = "files";

std::string file_name(const std::string& sha256) {
    return std::string(kFiles) + "/" + sha256;
}

Result<std::vector<CheckpointNumber>> numbers_of(CheckpointStore& store) {
    TUNE_TRY(names, store.list(""));
    std::vector<CheckpointNumber> numbers;
    for (const std::string& name : names)
        if (const std::optional<CheckpointNumber> number = manifest_number(name))
            numbers.push_back(*number);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

/// What is wrong with a set, as opposed to the way to it.
bool is_damage(const Error& error) {
    return error.code == Code::kDataLoss || error.code == Code::kResourceDoesNotExist;
}

Result<CheckpointSet> read_set(CheckpointStore& store, const CheckpointNumber& number) {
    Result<std::string> text = store.read(manifest_name(number));
    if (!text && text.error().code == Code::kResourceDoesNotExist)
        return Error{Code::kDataLoss, "its manifest is not there"};
    if (!text) return text.error();
    return read_manifest(*text);
}

void add_digests(const std::vector<CheckpointFile>& files, std::set<std::string>& digests) {
    for (const CheckpointFile& file : files)
        if (file.link.empty()) digests.insert(file.sha256);
}

/// What the sets of the store name, of those that will be kept.
Result<void> learn(CheckpointStore& store, const SaveOrder& order, SaveState& state) {
    TUNE_TRY(numbers, numbers_of(store));
    std::set<std::string> stored;
    const std::size_t kept = std::min<std::size_t>(numbers.size(), order.keep);
    for (std::size_t i = numbers.size() - kept; i < numbers.size(); ++i) {
        const Result<CheckpointSet> set = read_set(store, numbers[i]);
        if (set) add_digests(set->files, stored);
        if (!set && !is_damage(set.error())) return set.error();
    }
    // Somebody may have removed files, or a disk lost them.
    TUNE_TRY(names, store.list(kFiles));
    const std::set<std::string> there(names.begin(), names.end());
    std::erase_if(stored, [&there](const std::string& digest) { return !there.contains(digest); });
    state.numbers = std::move(numbers);
    state.stored = std::move(stored);
    state.is_known = true;
    return {};
}

Error later_attempt() {
    return {Code::kResourceConflict, "a later attempt of the trial has stored a checkpoint"};
}

/// Sends the file unless it is there; its digest.
Result<std::string> send(CheckpointStore& store, const FolderSnapshot& snapshot, std::size_t index,
                         SaveState& state, Saved& saved) {
    const SeenFile& file = snapshot.files()[index];
    const auto key = std::tuple(file.inode, file.bytes, file.changed_ns);
    const auto known = state.digests.find(key);
    std::string digest;
    if (known != state.digests.end()) {
        digest = known->second;
    } else {
        TUNE_TRY(computed, file_sha256(snapshot.path(index)));
        digest = std::move(computed);
    }
    if (!state.stored.contains(digest)) {
        TUNE_TRY_VOID(store.put(file_name(digest), snapshot.path(index)));
        saved.bytes_sent += file.bytes;
    }
    if (!snapshot.is_intact(index))
        return Error{Code::kTemporarilyUnavailable,
                     "the program wrote into '" + file.path +
                         "' while it was stored; it should write another file and rename it"};
    state.stored.insert(digest);
    state.digests[key] = digest;
    return digest;
}

/// Removes what is older than the last `keep` sets. A file goes after the last manifest that names
/// it.
Result<void> clean(CheckpointStore& store, const SaveOrder& order, SaveState& state) {
    TUNE_TRY(numbers, numbers_of(store));
    if (!numbers.empty() && numbers.back().attempt > order.attempt) return later_attempt();
    const std::size_t kept = std::min<std::size_t>(numbers.size(), order.keep);
    const auto first_kept = numbers.end() - static_cast<std::ptrdiff_t>(kept);
    std::set<std::string> needed;
    for (auto at = first_kept; at != numbers.end(); ++at) {
        const Result<CheckpointSet> set = read_set(store, *at);
        if (set) add_digests(set->files, needed);
        if (!set && !is_damage(set.error())) return set.error();
    }
    for (auto at = numbers.begin(); at != first_kept; ++at)
        TUNE_TRY_VOID(store.remove(manifest_name(*at)));
    TUNE_TRY(files, store.list(kFiles));
    for (const std::string& digest : files)
        if (!needed.contains(digest)) TUNE_TRY_VOID(store.remove(file_name(digest)));
    state.numbers.assign(first_kept, numbers.end());
    state.stored = std::move(needed);
    return {};
}

/// A file that is damaged twice is so in the store: it goes, or later sets would rely on it.
Result<void> fetch_file(CheckpointStore& store, const CheckpointFile& file, const fs::path& to) {
    for (int i = 0; i < 2; ++i) {
        const Result<void> got = store.get(file_name(file.sha256), to);
        if (!got && got.error().code == Code::kResourceDoesNotExist)
            return Error{Code::kDataLoss, "its file '" + file.path + "' is not there"};
        if (!got) return got.error();
        TUNE_TRY(digest, file_sha256(to));
        if (digest == file.sha256) return {};
    }
    static_cast<void>(store.remove(file_name(file.sha256)));
    return Error{Code::kDataLoss, "its file '" + file.path + "' is damaged"};
}

/// Downloads one set to `staging` and compares it with its manifest.
Result<CheckpointSet> fetch_set(CheckpointStore& store, const CheckpointNumber& number,
                                const fs::path& staging) {
    TUNE_TRY(set, read_set(store, number));
    std::error_code error;
    fs::remove_all(staging, error);
    fs::create_directories(staging, error);
    for (const CheckpointFile& file : set.files) {
        const fs::path to = staging / file.path;
        if (!error) fs::create_directories(to.parent_path(), error);
        if (!error && !file.link.empty()) fs::create_symlink(file.link, to, error);
        if (error)
            return Error{Code::kInternalError,
                         "cannot make '" + to.string() + "': " + error.message()};
        if (!file.link.empty()) continue;
        TUNE_TRY_VOID(fetch_file(store, file, to));
    }
    return set;
}

/// `staging` becomes `folder`. A kill between the two renames leaves no folder, and the next
/// attempt fetches it again.
Result<void> replace_folder(const fs::path& staging, const fs::path& folder) {
    const fs::path old = staging.string() + ".old";
    std::error_code error;
    fs::remove_all(old, error);
    fs::create_directories(folder.parent_path(), error);
    fs::rename(folder, old, error);
    if (!error || error == std::errc::no_such_file_or_directory) fs::rename(staging, folder, error);
    if (error)
        return Error{Code::kInternalError, "cannot replace the checkpoint folder '" +
                                               folder.string() + "': " + error.message()};
    fs::remove_all(old, error);
    return {};
}

}  // namespace

Result<Saved> save(CheckpointStore& store, const SaveOrder& order, SaveState& state) {
    Saved saved;
    // Nothing may be new; that costs a look at the folder and no call.
    TUNE_TRY(seen, list_folder(order.folder));
    if (seen.empty() || (state.last && seen == state.seen)) return saved;
    if (!state.is_known) TUNE_TRY_VOID(learn(store, order, state));
    if (!state.numbers.empty() && state.numbers.back().attempt > order.attempt)
        return later_attempt();
    TUNE_TRY(snapshot, FolderSnapshot::take(order.folder, order.staging));
    CheckpointSet set;
    for (std::size_t i = 0; i < snapshot.files().size(); ++i) {
        const SeenFile& file = snapshot.files()[i];
        CheckpointFile entry{.path = file.path, .link = file.link};
        if (file.link.empty()) {
            TUNE_TRY(digest, send(store, snapshot, i, state, saved));
            entry.bytes = file.bytes;
            entry.sha256 = std::move(digest);
        }
        set.files.push_back(std::move(entry));
    }
    for (std::size_t i = 0; i < snapshot.files().size(); ++i)
        if (!snapshot.is_intact(i))
            return Error{Code::kTemporarilyUnavailable, "the program wrote into '" +
                                                            snapshot.files()[i].path +
                                                            "' while the checkpoint was stored"};
    state.seen = snapshot.files();
    if (set.files.empty() || (state.last && *state.last == set.files)) return saved;
    const bool is_first = state.numbers.empty() || state.numbers.back().attempt < order.attempt;
    set.number = {order.attempt, is_first ? 1 : state.numbers.back().number + 1};
    TUNE_TRY_VOID(store.write(manifest_name(set.number), manifest_text(set)));
    state.numbers.push_back(set.number);
    saved.is_new = true;
    saved.number = set.number;
    state.last = std::move(set.files);
    std::erase_if(state.digests, [&state](const auto& known) {
        return std::none_of(state.seen.begin(), state.seen.end(), [&known](const SeenFile& file) {
            return known.first == std::tuple(file.inode, file.bytes, file.changed_ns);
        });
    });
    // The set is stored, whatever becomes of the older ones: the next call cleans again.
    if (const Result<void> cleaned = clean(store, order, state);
        !cleaned && cleaned.error().code == Code::kResourceConflict)
        return cleaned.error();
    return saved;
}

Result<std::optional<CheckpointNumber>> latest(CheckpointStore& store) {
    TUNE_TRY(numbers, numbers_of(store));
    if (numbers.empty()) return std::optional<CheckpointNumber>();
    return std::optional(numbers.back());
}

Result<Restored> restore(CheckpointStore& store, const fs::path& folder, const fs::path& staging) {
    TUNE_TRY(numbers, numbers_of(store));
    Restored restored;
    for (auto at = numbers.rbegin(); at != numbers.rend(); ++at) {
        Result<CheckpointSet> set = fetch_set(store, *at, staging);
        if (set) {
            TUNE_TRY_VOID(replace_folder(staging, folder));
            restored.number = *at;
            restored.bytes = set->bytes();
            return restored;
        }
        std::error_code ignored;
        fs::remove_all(staging, ignored);
        if (!is_damage(set.error())) return set.error();
        restored.damaged.push_back("the stored checkpoint " + std::to_string(at->number) +
                                   " of attempt " + std::to_string(at->attempt) +
                                   " cannot be used: " + set.error().message);
    }
    return restored;
}

}  // namespace tune::worker
