// A few threads upload logs as artifacts. A waiting job is replaced by a later one of the same
// attempt, and jobs of one run go in order, so the last upload is the complete log. A log whose
// middle was given back to the disk is put together from its head, a line about the gap and its
// tail.

#include "worker/agent/server/log_upload.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/log.h"
#include "base/system/unique_fd.h"
#include "base/text/percent.h"
#include "worker/agent/server/artifact_folder.h"
#include "worker/agent/server/backoff.h"

namespace tune::worker {
namespace {

constexpr int kCallTimeout_ms = 30'000;

/// The logs in an attempt's folder: of one process three at most, else one more for each.
std::vector<std::string> log_names(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& item : std::filesystem::directory_iterator(folder, error))
        if (item.path().extension() == ".log") names.push_back(item.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

/// The regular files beneath `folder`, by their paths in it; no link is followed.
std::vector<std::string> artifact_names(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::recursive_directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error))
        if (at->is_regular_file(error) && !at->is_symlink(error))
            names.push_back(at->path().lexically_relative(folder).string());
    std::sort(names.begin(), names.end());
    return names;
}

/// Those of `names` that are among the files in `folder`, by their paths in it. Of another the user
/// is told.
std::vector<std::string> announced_names(const LogJob& job, const std::filesystem::path& folder) {
    const std::vector<std::string> there = artifact_names(folder);
    std::vector<std::string> names;
    for (const std::string& announced : job.artifacts) {
        const std::string name =
            (folder / announced).lexically_normal().lexically_relative(folder).string();
        if (std::binary_search(there.begin(), there.end(), name))
            names.push_back(name);
        else
            job.files.note("a 'tune:' line names the artifact '" + announced +
                           "', which is no file in TUNE_ARTIFACT_DIR");
    }
    return names;
}

bool copy_range(int from, int to, off_t begin, off_t end) {
    while (begin < end) {
        const ssize_t count = sendfile(to, from, &begin, static_cast<std::size_t>(end - begin));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count == 0;
    }
    return true;
}

}  // namespace

Result<std::filesystem::path> whole_log(const std::filesystem::path& path) {
    const UniqueFd log(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!log || fstat(log.get(), &info) != 0)
        return Error{Code::kResourceDoesNotExist, "there is no '" + path.string() + "'"};
    if (info.st_size <= kCompleteLogBytesMax) return path;
    const std::int64_t tail = info.st_size - kLogTailBytes;
    const std::filesystem::path whole = path.string() + ".upload";
    const UniqueFd out(open(whole.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    const std::string marker =
        "\n[" + std::to_string(tail - kLogHeadBytes) + " bytes of output left out here]\n";
    if (!out || !copy_range(log.get(), out.get(), 0, kLogHeadBytes) ||
        write(out.get(), marker.data(), marker.size()) < 0 ||
        !copy_range(log.get(), out.get(), tail, info.st_size))
        return Error{Code::kInternalError,
                     "cannot write '" + whole.string() + "': " + std::strerror(errno)};
    return whole;
}

Result<std::unique_ptr<LogUpload>> LogUpload::create(const std::string& server_url, Done done) {
    std::unique_ptr<LogUpload> upload(new LogUpload(std::move(done)));
    TUNE_TRY_VOID(upload->connect(server_url, kThreads));
    return upload;
}

LogUpload::~LogUpload() {
    stop();
}

void LogUpload::submit(LogJob job) {
    const std::lock_guard lock(mutex_);
    for (LogJob& waiting : jobs_) {
        if (waiting.serial != job.serial) continue;
        job.artifacts.insert(job.artifacts.begin(), waiting.artifacts.begin(),
                             waiting.artifacts.end());
        waiting = std::move(job);
        return;
    }
    jobs_.push_back(std::move(job));
    changed_.notify_one();
}

void LogUpload::forget(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    sent_.erase(serial);
}

void LogUpload::work(tracker::Client& client) {
    while (true) {
        std::optional<LogJob> job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] {
                if (stopping_) return true;
                for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
                    if (busy_.contains(at->id.run_id)) continue;
                    job = std::move(*at);
                    jobs_.erase(at);
                    busy_.insert(job->id.run_id);
                    return true;
                }
                return false;
            });
            if (stopping_) return;
        }
        Backoff backoff;
        Result<void> result = upload(client, *job);
        while (!result && job->final && is_passing(result.error())) {
            if (!pause(backoff.next_ms())) return;
            result = upload(client, *job);
        }
        if (!result && result.error().code == Code::kCancelled) return;
        if (!result && job->final)
            log_warning("the logs of run " + job->id.run_id +
                        " were not uploaded: " + result.error().text());
        {
            const std::lock_guard lock(mutex_);
            busy_.erase(job->id.run_id);
            changed_.notify_all();
        }
        done_(job->serial, job->final, result.has_value());
    }
}

Result<std::string> LogUpload::experiment_root(tracker::Client& client,
                                               const std::string& experiment_id) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = roots_.find(experiment_id);
        if (found != roots_.end()) return found->second;
    }
    TUNE_TRY(answer, client.get("/api/2.0/mlflow/experiments/get?experiment_id=" +
                                    percent_encode(experiment_id, false),
                                kCallTimeout_ms));
    const Json location =
        answer.value("experiment", Json::object()).value("artifact_location", Json());
    if (!location.is_string())
        return Error{Code::kDataLoss,
                     "the server named no artifact location for experiment " + experiment_id};
    TUNE_TRY(folder, proxied_folder(location.get<std::string>(), "logs"));
    const std::lock_guard lock(mutex_);
    roots_[experiment_id] = folder;
    return folder;
}

/// What the attempt ran is beside the logs, in a folder of its own; it does not change.
Result<void> LogUpload::upload_diff(tracker::Client& client, const LogJob& job) {
    const std::filesystem::path file = job.files.path(kDiffFile);
    if (!job.final || !std::filesystem::exists(file)) return {};
    TUNE_TRY(root, experiment_root(client, job.experiment_id));
    const std::string name = root + "/" + job.id.run_id + "/artifacts/environment/" + kDiffFile;
    return client.put_file(kArtifactsPath + percent_encode(name), file, UINT64_MAX,
                           kCallTimeout_ms);
}

/// What the attempt left as artifacts, at its end, or those of them that are complete. One that the
/// server refuses costs the others nothing, and one that it has as it is does not go again.
Result<void> LogUpload::upload_artifacts(tracker::Client& client, const LogJob& job, Sent& sent) {
    const std::filesystem::path folder = job.files.path(kArtifactFolder);
    std::vector<std::string> names =
        job.final ? artifact_names(folder) : announced_names(job, folder);
    if (names.empty()) return {};
    if (names.size() > kArtifactsMax) {
        log_warning("run " + job.id.run_id + " left " + std::to_string(names.size()) +
                    " files as artifacts; the first " + std::to_string(kArtifactsMax) +
                    " are uploaded");
        names.resize(kArtifactsMax);
    }
    TUNE_TRY(root, experiment_root(client, job.experiment_id));
    const std::string place = root + "/" + job.id.run_id + "/artifacts/";
    for (const std::string& name : names) {
        std::error_code unknown;
        const FileState state{std::filesystem::file_size(folder / name, unknown),
                              std::filesystem::last_write_time(folder / name, unknown)};
        const auto known = sent.artifacts.find(name);
        if (known != sent.artifacts.end() && known->second == state) continue;
        const Result<void> put = client.put_file(kArtifactsPath + percent_encode(place + name),
                                                 folder / name, UINT64_MAX, kCallTimeout_ms);
        if (put) {
            sent.artifacts[name] = state;
            continue;
        }
        if (is_passing(put.error()) || put.error().code == Code::kCancelled) return put;
        log_warning("the artifact '" + name + "' of run " + job.id.run_id +
                    " was not uploaded: " + put.error().text());
    }
    return {};
}

Result<void> LogUpload::upload(tracker::Client& client, const LogJob& job) {
    TUNE_TRY_VOID(upload_diff(client, job));
    std::shared_ptr<Sent> sent;  // of this thread alone while the run is busy
    {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<Sent>& known = sent_[job.serial];
        if (!known) known = std::make_shared<Sent>();
        sent = known;
    }
    for (const std::string& name : log_names(job.files.directory())) {
        const std::filesystem::path file = job.files.path(name.c_str());
        TUNE_TRY(root, experiment_root(client, job.experiment_id));
        const std::string folder = root + "/" + job.id.run_id + "/artifacts/logs/" + job.folder;
        TUNE_TRY_VOID(upload_live(client, kArtifactsPath + percent_encode(folder + name), file,
                                  sent->logs[name]));
        if (!job.keep_attempt) continue;
        TUNE_TRY(whole, whole_log(file));
        const std::string attempt = "attempt-" + std::to_string(job.id.attempt) + "/";
        TUNE_TRY_VOID(client.put_file(kArtifactsPath + percent_encode(folder + attempt + name),
                                      whole, UINT64_MAX, kCallTimeout_ms));
    }
    return upload_artifacts(client, job, *sent);
}

/// What is new in the log follows what the server has. It goes whole at first, since another
/// attempt may have left its own log there; where the server has less than it should; and when it
/// is so long that its middle is left out.
Result<void> LogUpload::upload_live(tracker::Client& client, const std::string& address,
                                    const std::filesystem::path& file, std::uint64_t& sent) {
    TUNE_TRY(whole, whole_log(file));
    std::error_code failed;
    const std::uint64_t size = std::filesystem::file_size(whole, failed);
    if (failed) return Error{Code::kInternalError, failed.message(), whole.string()};
    const bool is_complete = whole == file;
    if (sent > 0 && is_complete && sent <= size) {
        if (sent == size) return {};
        const Result<void> added = client.append_file(address, file, sent, size, kCallTimeout_ms);
        if (added) sent = size;
        const bool is_other = !added && (added.error().code == Code::kResourceConflict ||
                                         added.error().code == Code::kResourceDoesNotExist);
        if (!is_other) return added;
    }
    TUNE_TRY_VOID(client.put_file(address, whole, size, kCallTimeout_ms));
    sent = is_complete ? size : 0;
    return {};
}

}  // namespace tune::worker
