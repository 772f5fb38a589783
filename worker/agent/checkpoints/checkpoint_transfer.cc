// Each thread takes the first job whose runs nobody works on, so jobs of one run never overlap and
// a late save cannot follow the last one. A job's client is known while it runs: who gives the job
// up cancels it, whatever it waits for.

#include "worker/agent/checkpoints/checkpoint_transfer.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "worker/agent/checkpoints/folder_record.h"
#include "worker/agent/server/backoff.h"

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

using Kind = CheckpointJob::Kind;

/// A model that could not be logged for so long is given up, and its trial is complete without.
constexpr std::chrono::minutes kModelRetries(10);

/// Of a fetch every run, since its folders must not change meanwhile.
std::vector<std::string> runs_of(const CheckpointJob& job) {
    std::vector<std::string> runs;
    if (job.kind != Kind::kFetch) runs.push_back(job.at.run_id);
    for (const FetchTarget& target : job.targets) runs.push_back(target.at.run_id);
    return runs;
}

/// Of a run that the server does not know, or with a server that knows no runs, nothing is stored.
bool has_nothing(const Error& error) {
    return error.code == Code::kResourceDoesNotExist || error.code == Code::kEndpointNotFound;
}

}  // namespace

Result<std::unique_ptr<CheckpointTransfer>> CheckpointTransfer::create(std::string server_url,
                                                                       Done done) {
    std::unique_ptr<CheckpointTransfer> transfer(
        new CheckpointTransfer(server_url, std::move(done)));
    TUNE_TRY_VOID(transfer->connect(server_url, kThreads));
    return transfer;
}

CheckpointTransfer::~CheckpointTransfer() {
    stop();
}

void CheckpointTransfer::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        for (Active* active : active_)
            if (active->client != nullptr) active->client->cancel();
    }
    Sender::stop();
}

void CheckpointTransfer::submit(CheckpointJob job) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [&job](const CheckpointJob& waiting) {
        return waiting.kind == Kind::kSave && waiting.serial == job.serial;
    });
    if (job.kind == Kind::kSave)
        jobs_.push_back(std::move(job));
    else
        jobs_.push_front(std::move(job));
    changed_.notify_one();
}

void CheckpointTransfer::give_up(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_,
                  [serial](const CheckpointJob& waiting) { return waiting.serial == serial; });
    for (Active* active : active_) {
        if (active->serial != serial) continue;
        active->is_given_up = true;
        if (active->client != nullptr) active->client->cancel();
    }
    changed_.notify_all();
}

void CheckpointTransfer::forget(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    states_.erase(serial);
}

std::optional<CheckpointJob> CheckpointTransfer::next() {
    std::optional<CheckpointJob> job;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
        if (stopping_) return true;
        for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
            const std::vector<std::string> runs = runs_of(*at);
            if (std::any_of(runs.begin(), runs.end(),
                            [this](const std::string& run) { return busy_.contains(run); }))
                continue;
            busy_.insert(runs.begin(), runs.end());
            job = std::move(*at);
            jobs_.erase(at);
            return true;
        }
        return false;
    });
    return job;
}

void CheckpointTransfer::work(tracker::Client&) {
    while (std::optional<CheckpointJob> job = next()) {
        Active active{.serial = job->serial};
        {
            const std::lock_guard lock(mutex_);
            active_.push_back(&active);
        }
        const CheckpointResult result = run(*job, active);
        {
            const std::lock_guard lock(mutex_);
            std::erase(active_, &active);
            for (const std::string& run : runs_of(*job)) busy_.erase(run);
            changed_.notify_all();
            if (stopping_) return;
        }
        done_(*job, result);
    }
}

CheckpointResult CheckpointTransfer::run(const CheckpointJob& job, Active& active) {
    Backoff backoff;
    const auto since = std::chrono::steady_clock::now();
    while (true) {
        CheckpointResult result;
        const Result<void> ran = run_once(job, active, result);
        if (ran) return result;
        result.error = ran.error();
        // Others have a deadline; a model may be large, and only errors are not to last for ever.
        const bool is_late =
            job.kind == Kind::kModel && std::chrono::steady_clock::now() - since > kModelRetries;
        const bool is_repeated = job.kind != Kind::kSave && !is_late && is_passing(ran.error());
        std::unique_lock lock(mutex_);
        const auto is_over = [&] { return stopping_ || active.is_given_up; };
        if (!is_repeated || is_over()) return result;
        if (changed_.wait_for(lock, std::chrono::milliseconds(backoff.next_ms()), is_over))
            return result;
    }
}

Result<void> CheckpointTransfer::run_once(const CheckpointJob& job, Active& active,
                                          CheckpointResult& result) {
    if (job.kind == Kind::kFetch) {
        for (const FetchTarget& target : job.targets)
            TUNE_TRY_VOID(fetch(target, job, active, result));
        return fetch_models(job, active, result);
    }
    if (job.kind == Kind::kModel) return send_model(job, active);
    std::unique_ptr<tracker::Client> client;
    TUNE_TRY(store, open(job.at, job.token, active, client));
    Result<void> done;
    if (job.kind == Kind::kClear) {
        done = store->clear();
    } else {
        std::shared_ptr<SaveState> state;
        {
            const std::lock_guard lock(mutex_);
            std::shared_ptr<SaveState>& known = states_[job.serial];
            if (!known) known = std::make_shared<SaveState>();
            state = known;
        }
        Result<Saved> saved = save(*store, job.order, *state);
        if (saved)
            result.saved = *saved;
        else
            done = saved.error();
    }
    let_go(active);
    return done;
}

Result<void> CheckpointTransfer::send_model(const CheckpointJob& job, Active& active) {
    TUNE_TRY(client, open_client(job.token, active));
    const Result<std::string> logged = log_model(*client, job.model);
    let_go(active);
    if (!logged) return logged.error();
    return {};
}

Result<void> CheckpointTransfer::fetch_models(const CheckpointJob& job, Active& active,
                                              CheckpointResult& result) {
    if (job.models.empty()) return {};
    TUNE_TRY(client, open_client(job.token, active));
    Result<void> all;
    for (const std::string& uri : job.models) {
        Result<FetchedModel> fetched = fetch_registered_model(*client, uri, job.model_root);
        if (fetched) {
            result.notes.push_back(fetched->note);
            result.models.push_back(std::move(*fetched));
            continue;
        }
        if (fetched.error().code == Code::kInvalidParameterValue)
            result.model_error = fetched.error();
        else
            all = fetched.error();
        break;
    }
    let_go(active);
    return all;
}

Result<void> CheckpointTransfer::fetch(const FetchTarget& target, const CheckpointJob& job,
                                       Active& active, CheckpointResult& result) {
    std::unique_ptr<tracker::Client> client;
    Result<std::unique_ptr<CheckpointStore>> opened = open(target.at, job.token, active, client);
    if (!opened && has_nothing(opened.error())) return {};
    if (!opened) return opened.error();
    const std::unique_ptr<CheckpointStore> store = std::move(*opened);
    const auto bring = [&]() -> Result<void> {
        TUNE_TRY(number, latest(*store));
        // What this machine has of the same attempt is at least as new: it was stored from here.
        const bool has_newer = number && number->attempt > target.local_attempt;
        if (!number || (is_filled(target.folder) && !has_newer)) return {};
        TUNE_TRY(restored, restore(*store, target.folder, target.staging));
        result.notes.insert(result.notes.end(), restored.damaged.begin(), restored.damaged.end());
        if (!restored.number) return {};
        TUNE_TRY_VOID(
            write_folder_record(target.state, target.key, {restored.number->attempt, target.at}));
        result.notes.push_back("resumes from the stored checkpoint " +
                               std::to_string(restored.number->number) + " of attempt " +
                               std::to_string(restored.number->attempt) + " (" +
                               std::to_string(restored.bytes) + " bytes)");
        return {};
    };
    const Result<void> brought = bring();
    let_go(active);
    return brought;
}

Result<std::unique_ptr<CheckpointStore>> CheckpointTransfer::open(
    const StoredAt& at, const std::string& token, Active& active,
    std::unique_ptr<tracker::Client>& client) {
    constexpr std::string_view kFolder = "file://";
    if (at.store.starts_with(kFolder))
        return folder_store(at.store.substr(kFolder.size()), at.run_id);
    TUNE_TRY(made, open_client(token, active));
    client = std::move(made);
    Result<std::unique_ptr<CheckpointStore>> store = artifact_store(*client, at.run_id);
    if (!store) let_go(active);
    return store;
}

/// A client that give_up() and stop() know of.
Result<std::unique_ptr<tracker::Client>> CheckpointTransfer::open_client(const std::string& token,
                                                                         Active& active) {
    TUNE_TRY(client, connect_as(server_url_, token));
    const std::lock_guard lock(mutex_);
    if (stopping_ || active.is_given_up) return Error{Code::kCancelled, "it was given up"};
    active.client = client.get();
    return client;
}

/// Before its client goes.
void CheckpointTransfer::let_go(Active& active) {
    const std::lock_guard lock(mutex_);
    active.client = nullptr;
}

}  // namespace tune::worker
