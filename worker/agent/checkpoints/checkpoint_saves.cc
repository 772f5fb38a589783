// One job an attempt is with the transfer's threads at a time; a save that fails is warned of once
// and tried again when the next is due. The last one holds the report of the end back, at most
// until its deadline.

#include "worker/agent/checkpoints/checkpoint_saves.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/checkpoints/folder_record.h"

namespace tune::worker {
namespace {

/// Who wants it killed at once does not wait long for its checkpoint.
constexpr int kHurriedDeadline_ms = 10'000;

}  // namespace

CheckpointSaves::CheckpointSaves(Loop& loop, CheckpointTransfer& transfer,
                                 const CheckpointFolders& folders, int deadline_ms,
                                 std::function<void()> released)
    : loop_(loop),
      transfer_(transfer),
      folders_(folders),
      deadline_ms_(deadline_ms),
      released_(std::move(released)) {}

void CheckpointSaves::watch(std::uint64_t serial, const tuner::Lease& lease, std::string name,
                            const std::filesystem::path& folder, const AttemptFiles& files) {
    const std::string store = folders_.store_of(lease);
    // Of several machines the first has the rank that writes checkpoints.
    if (folder.empty() || store.empty() || (lease.gang && lease.gang->node > 0)) return;
    const std::string place = "save-" + lease.run_id + "-" + std::to_string(lease.attempt);
    Attempt attempt{.job = {.serial = serial,
                            .at = {store, lease.run_id},
                            .token = lease.token,
                            .order = {.folder = folder,
                                      .staging = staging_folder(folders_.state(), place),
                                      .attempt = lease.attempt,
                                      .keep = lease.checkpoints.keep}},
                    .files = files,
                    .name = std::move(name),
                    .is_continued = lease.is_continued,
                    .is_kept = lease.checkpoints.keeps_after_end,
                    .every_ms = std::max<std::int64_t>(1, lease.checkpoints.every_ms)};
    attempts_.insert_or_assign(serial, std::move(attempt));
    schedule(serial);
}

void CheckpointSaves::schedule(std::uint64_t serial) {
    Attempt& attempt = attempts_.at(serial);
    attempt.timer = loop_.at(loop_.now_ms() + attempt.every_ms, [this, serial] {
        const auto due = attempts_.find(serial);
        if (due == attempts_.end()) return;
        transfer_.submit(due->second.job);
        schedule(serial);
    });
}

void CheckpointSaves::stop(std::uint64_t serial) {
    const auto found = attempts_.find(serial);
    if (found != attempts_.end()) loop_.cancel(found->second.timer);
}

void CheckpointSaves::finish(std::uint64_t serial, tuner::FinishRequest request, Report report) {
    stop(serial);
    const auto found = attempts_.find(serial);
    if (found == attempts_.end()) return report(std::move(request));
    Attempt& attempt = found->second;
    const bool is_saved = may_run_again(request.outcome) ||
                          (request.outcome == tuner::Outcome::kDone && attempt.is_continued) ||
                          attempt.is_kept;
    const bool has_work = is_saved ? is_filled(attempt.job.order.folder)
                                   : attempt.has_stored || attempt.job.order.attempt > 1;
    if (!has_work) {
        forget(serial);
        return report(std::move(request));
    }
    attempt.job.kind = is_saved ? CheckpointJob::Kind::kSaveFinally : CheckpointJob::Kind::kClear;
    attempt.held = std::move(request);
    attempt.report = std::move(report);
    const int wait_ms = is_hurried_ ? std::min(kHurriedDeadline_ms, deadline_ms_) : deadline_ms_;
    attempt.timer = loop_.at(loop_.now_ms() + wait_ms, [this, serial] {
        transfer_.give_up(serial);
        release(serial, Error{Code::kDeadlineExceeded, "there was no more time for it"});
    });
    transfer_.submit(attempt.job);
}

void CheckpointSaves::forget(std::uint64_t serial) {
    stop(serial);
    if (attempts_.erase(serial) > 0) transfer_.forget(serial);
}

void CheckpointSaves::release(std::uint64_t serial, const std::optional<Error>& error) {
    const auto found = attempts_.find(serial);
    if (found == attempts_.end() || !found->second.held) return;
    Attempt attempt = std::move(found->second);
    loop_.cancel(attempt.timer);
    forget(serial);
    if (error) {
        const std::string text =
            "the last checkpoint was not stored, so another machine would resume "
            "from an earlier one: " +
            error->message;
        attempt.files.note(text);
        log_warning(attempt.name + ": " + text);
    }
    attempt.report(std::move(*attempt.held));
    released_();
}

void CheckpointSaves::on_result(const CheckpointJob& job, const CheckpointResult& result) {
    if (job.kind != CheckpointJob::Kind::kSave) {
        const bool is_clear = job.kind == CheckpointJob::Kind::kClear;
        if (is_clear && result.error)
            log_warning("the stored checkpoints of run " + job.at.run_id +
                        " could not be removed: " + result.error->message);
        return release(job.serial, is_clear ? std::nullopt : result.error);
    }
    const auto found = attempts_.find(job.serial);
    if (found == attempts_.end()) return;
    Attempt& attempt = found->second;
    if (result.saved && result.saved->is_new) attempt.has_stored = true;
    const bool is_news = result.error && !std::exchange(attempt.has_warned, true);
    if (!is_news) return;
    const std::string text = "a checkpoint was not stored: " + result.error->message;
    attempt.files.note(text);
    log_warning(attempt.name + ": " + text);
}

int CheckpointSaves::finishing() const {
    return static_cast<int>(
        std::count_if(attempts_.begin(), attempts_.end(),
                      [](const auto& entry) { return entry.second.held.has_value(); }));
}

}  // namespace tune::worker
