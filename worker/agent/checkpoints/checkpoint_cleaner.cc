// Answers about one study are merged while they wait: what any of them calls needless is needless
// for ever, so their order does not matter. A folder is removed only if its name is a number inside
// a folder of the root.

#include "worker/agent/checkpoints/checkpoint_cleaner.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"

namespace tune::worker {
namespace {

/// The number in a checkpoint folder's name, e.g. "00000012"; nothing for what is none of ours.
std::optional<std::uint64_t> trial_of(const std::string& name) {
    std::uint64_t number = 0;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data(), end, number);
    if (name.empty() || error != std::errc() || at != end) return std::nullopt;
    return number;
}

bool is_needed(const tuner::NeededCheckpoints& needed, std::uint64_t number) {
    if (number < needed.from || number >= needed.below) return true;
    return std::find(needed.trials.begin(), needed.trials.end(), number) != needed.trials.end();
}

/// A name in the root, never a way out of it.
bool is_one_folder(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

/// What one of them does not need is not needed.
tuner::NeededCheckpoints merged(const tuner::NeededCheckpoints& a,
                                const tuner::NeededCheckpoints& b) {
    tuner::NeededCheckpoints both{
        a.folder, std::max(a.from, b.from), std::max(a.below, b.below), {}};
    std::vector<std::uint64_t> either = a.trials;
    either.insert(either.end(), b.trials.begin(), b.trials.end());
    std::sort(either.begin(), either.end());
    either.erase(std::unique(either.begin(), either.end()), either.end());
    for (const std::uint64_t number : either)
        if (is_needed(a, number) && is_needed(b, number)) both.trials.push_back(number);
    return both;
}

}  // namespace

CheckpointCleaner::~CheckpointCleaner() {
    stop();
}

void CheckpointCleaner::start() {
    thread_ = std::thread([this] { work(); });
}

void CheckpointCleaner::submit(tuner::NeededCheckpoints needed) {
    if (!is_one_folder(needed.folder)) return;
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = waiting_.try_emplace(needed.folder, needed);
    if (!is_new) at->second = merged(at->second, needed);
    changed_.notify_one();
}

void CheckpointCleaner::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

void CheckpointCleaner::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const tuner::NeededCheckpoints needed =
            std::move(waiting_.extract(waiting_.begin()).mapped());
        lock.unlock();
        clean(needed);
        lock.lock();
    }
}

void CheckpointCleaner::clean(const tuner::NeededCheckpoints& needed) {
    std::error_code error;
    std::vector<std::filesystem::path> needless;
    std::filesystem::directory_iterator item(root_ / needed.folder, error);
    for (; !error && item != std::filesystem::directory_iterator(); item.increment(error)) {
        const std::optional<std::uint64_t> number = trial_of(item->path().filename().string());
        if (number && !is_needed(needed, *number)) needless.push_back(item->path());
    }
    for (const std::filesystem::path& folder : needless) {
        std::filesystem::remove_all(folder, error);
        if (!error && removed_)
            removed_((std::filesystem::path(needed.folder) / folder.filename()).string());
        if (!error || std::exchange(warned_, true)) continue;
        log_warning("the checkpoint '" + folder.string() +
                    "', which no trial will continue, cannot be removed: " + error.message());
    }
}

}  // namespace tune::worker
