// Checkpoints of attempts beyond this machine: fetched before an attempt starts, stored while it
// runs, and stored once more before its end is reported, since the next attempt may start elsewhere
// as soon as it is.

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempts.h"
#include "worker/agent/checkpoints/folder_record.h"

namespace tune::worker {
namespace {

/// Who wants it killed at once does not wait long for its checkpoint.
constexpr std::int64_t kHurriedDeadline_ms = 10'000;

std::string key_of(const tuner::Lease& lease) {
    return lease.checkpoint_dir.empty() ? lease.run_id : lease.checkpoint_dir;
}

/// Whether another attempt of the trial may follow.
bool may_run_again(tuner::Outcome outcome) {
    return outcome == tuner::Outcome::kPreempted || outcome == tuner::Outcome::kLost ||
           outcome == tuner::Outcome::kOom || outcome == tuner::Outcome::kFailed;
}

}  // namespace

std::string Attempts::store_of(const tuner::Lease& lease) const {
    const std::string& store = lease.checkpoints.store;
    if (store == "local") return {};
    if (store == "auto") return settings_.stores_checkpoints ? "artifacts" : "";
    return store;
}

// ---- Before it starts ----------------------------------------------------------------------

bool Attempts::fetch_if_needed(tuner::Lease& lease) {
    const std::string store = store_of(lease);
    const bool has_parent = !lease.resume_from.empty() && !lease.resume_run_id.empty();
    if (store.empty() || (lease.attempt <= 1 && !has_parent)) return false;
    CheckpointJob job{.serial = std::strtoull(random_hex(8).c_str(), nullptr, 16),
                      .kind = CheckpointJob::Kind::kFetch};
    const auto add = [&](const std::string& key, const std::string& run_id) {
        const Result<std::filesystem::path> folder = checkpoint_path(key);
        if (!folder) return;  // prepare() says so
        const FolderRecord record = read_folder_record(settings_.checkpoint_state, key);
        job.targets.push_back({{store, run_id},
                               settings_.checkpoint_state,
                               key,
                               *folder,
                               staging_folder(settings_.checkpoint_state, "fetch-" + key),
                               record.at.run_id == run_id ? record.attempt : 0});
    };
    if (lease.attempt > 1) add(key_of(lease), lease.run_id);
    if (has_parent) add(lease.resume_from, lease.resume_run_id);
    if (job.targets.empty()) return false;
    const std::uint64_t serial = job.serial;
    const Loop::TimerId timer =
        parts_.loop->at(parts_.loop->now_ms() + settings_.checkpoint_deadline_ms, [this, serial] {
            parts_.transfer->give_up(serial);
            on_fetched(serial, {.error = Error{Code::kDeadlineExceeded,
                                               "the stored checkpoint did not arrive in time"}});
        });
    fetching_.emplace(serial, Fetching{std::move(lease), timer});
    parts_.transfer->submit(std::move(job));
    return true;
}

void Attempts::on_fetched(std::uint64_t serial, const CheckpointResult& result) {
    auto fetched = fetching_.extract(serial);
    if (fetched.empty()) return;  // it was given up
    tuner::Lease lease = std::move(fetched.mapped().lease);
    parts_.loop->cancel(fetched.mapped().timer);
    for (const std::string& note : result.notes) log_info(short_name(lease) + ": " + note);
    if (result.error && result.error->code != Code::kInvalidParameterValue) {
        // It would begin anew here, and might go on elsewhere.
        refuse(lease, tuner::Outcome::kLost,
               "its stored checkpoint could not be fetched: " + result.error->message);
        return publish();
    }
    if (result.error) log_warning(result.error->message);
    if (!lease.pool) notes_[lease.run_id] = result.notes;
    // Its parent's record says that what is here now is what is stored.
    begin(std::move(lease));
    publish();
}

std::optional<tuner::Lease> Attempts::take_unstarted(const tuner::AttemptId& id) {
    const auto is_meant = [&id](const tuner::Lease& lease) {
        return lease.run_id == id.run_id && lease.attempt == id.attempt;
    };
    std::optional<tuner::Lease> taken;
    for (auto at = waiting_.begin(); at != waiting_.end() && !taken; ++at) {
        if (!is_meant(*at)) continue;
        taken = std::move(*at);
        waiting_.erase(at);
        return taken;
    }
    for (auto at = fetching_.begin(); at != fetching_.end(); ++at) {
        if (!is_meant(at->second.lease)) continue;
        taken = std::move(at->second.lease);
        parts_.loop->cancel(at->second.timer);
        parts_.transfer->give_up(at->first);
        fetching_.erase(at);
        return taken;
    }
    return taken;
}

/// From now on what is in the folder is this attempt's.
Result<void> Attempts::note_folder(const tuner::Lease& lease) {
    const std::string store = store_of(lease);
    if (store.empty()) return {};
    return write_folder_record(settings_.checkpoint_state, key_of(lease),
                               {lease.attempt, {store, lease.run_id}});
}

// ---- While it runs -------------------------------------------------------------------------

void Attempts::watch_checkpoint(std::uint64_t serial, const tuner::Lease& lease,
                                const std::filesystem::path& folder, const AttemptFiles& files) {
    watch_model(serial, lease, short_name(lease), files);
    const std::string store = store_of(lease);
    // Of several machines the first has the rank that writes checkpoints.
    if (folder.empty() || store.empty() || (lease.gang && lease.gang->node > 0)) return;
    const std::string name = "save-" + lease.run_id + "-" + std::to_string(lease.attempt);
    Stored stored{.job = {.serial = serial,
                          .at = {store, lease.run_id},
                          .token = lease.token,
                          .order = {.folder = folder,
                                    .staging = staging_folder(settings_.checkpoint_state, name),
                                    .attempt = lease.attempt,
                                    .keep = lease.checkpoints.keep}},
                  .files = files,
                  .name = short_name(lease),
                  .is_continued = lease.is_continued,
                  .is_kept = lease.checkpoints.keeps_after_end,
                  .every_ms = std::max<std::int64_t>(1, lease.checkpoints.every_ms)};
    stored_.insert_or_assign(serial, std::move(stored));
    schedule_save(serial);
}

void Attempts::schedule_save(std::uint64_t serial) {
    Stored& stored = stored_.at(serial);
    stored.timer = parts_.loop->at(parts_.loop->now_ms() + stored.every_ms, [this, serial] {
        const auto due = stored_.find(serial);
        if (due == stored_.end()) return;
        parts_.transfer->submit(due->second.job);
        schedule_save(serial);
    });
}

void Attempts::stop_saving(std::uint64_t serial) {
    const auto stored = stored_.find(serial);
    if (stored != stored_.end()) parts_.loop->cancel(stored->second.timer);
}

// ---- Its end -------------------------------------------------------------------------------

void Attempts::report_with_checkpoint(std::uint64_t serial, tuner::FinishRequest request,
                                      std::function<void(tuner::FinishRequest)> report) {
    stop_saving(serial);
    if (log_model_first(serial, request, report)) return;
    const auto found = stored_.find(serial);
    if (found == stored_.end()) return report(std::move(request));
    Stored& stored = found->second;
    const bool is_saved = may_run_again(request.outcome) ||
                          (request.outcome == tuner::Outcome::kDone && stored.is_continued) ||
                          stored.is_kept;
    const bool has_work = is_saved ? is_filled(stored.job.order.folder)
                                   : stored.has_stored || stored.job.order.attempt > 1;
    if (!has_work) {
        forget_checkpoint(serial);
        return report(std::move(request));
    }
    stored.job.kind = is_saved ? CheckpointJob::Kind::kSaveFinally : CheckpointJob::Kind::kClear;
    stored.held = std::move(request);
    stored.report = std::move(report);
    const std::int64_t deadline_ms =
        is_hurried_ ? std::min<std::int64_t>(kHurriedDeadline_ms, settings_.checkpoint_deadline_ms)
                    : settings_.checkpoint_deadline_ms;
    stored.timer = parts_.loop->at(parts_.loop->now_ms() + deadline_ms, [this, serial] {
        parts_.transfer->give_up(serial);
        release_end(serial, Error{Code::kDeadlineExceeded, "there was no more time for it"});
    });
    parts_.transfer->submit(stored.job);
}

void Attempts::forget_checkpoint(std::uint64_t serial) {
    stop_saving(serial);
    models_.erase(serial);
    if (stored_.erase(serial) > 0) parts_.transfer->forget(serial);
}

void Attempts::release_end(std::uint64_t serial, const std::optional<Error>& error) {
    const auto found = stored_.find(serial);
    if (found == stored_.end() || !found->second.held) return;
    Stored stored = std::move(found->second);
    forget_checkpoint(serial);
    parts_.loop->cancel(stored.timer);
    if (error) {
        const std::string text =
            "the last checkpoint was not stored, so another machine goes on "
            "from an earlier one: " +
            error->message;
        stored.files.note(text);
        log_warning(stored.name + ": " + text);
    }
    stored.report(std::move(*stored.held));
    publish();
}

void Attempts::on_checkpoint(const CheckpointJob& job, const CheckpointResult& result) {
    if (job.kind == CheckpointJob::Kind::kFetch) return on_fetched(job.serial, result);
    if (job.kind == CheckpointJob::Kind::kModel) return on_model(job.serial, result.error);
    if (job.kind != CheckpointJob::Kind::kSave) {
        const bool is_clear = job.kind == CheckpointJob::Kind::kClear;
        if (is_clear && result.error)
            log_warning("the stored checkpoints of run " + job.at.run_id +
                        " could not be removed: " + result.error->message);
        return release_end(job.serial, is_clear ? std::nullopt : result.error);
    }
    const auto found = stored_.find(job.serial);
    if (found == stored_.end()) return;
    Stored& stored = found->second;
    if (result.saved && result.saved->is_new) stored.has_stored = true;
    const bool is_news = result.error && !std::exchange(stored.has_warned, true);
    if (!is_news) return;
    const std::string text = "a checkpoint was not stored: " + result.error->message;
    stored.files.note(text);
    log_warning(stored.name + ": " + text);
}

}  // namespace tune::worker
