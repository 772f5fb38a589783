// One thread writes what is queued: lines, which are never dropped (the producer waits when the
// queue is full), and at most one checkpoint, which the next one replaces. A checkpoint waits for
// the lines given before it. Files are replaced atomically; `best` lands before the `last` that
// refers to it.

#include "worker/train/recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <thread>

#include "base/json.h"
#include "base/system/file.h"

namespace tune::train {
namespace {

/// False when nobody can read any more. Works on non-blocking descriptors too.
bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(fd, text.data(), text.size());
        if (count >= 0) {
            text.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/// Until a pipe is empty. There is no event for that at the end that writes, so it is looked at
/// again and again; a supervisor has read it before the first look mostly.
void wait_until_read(int fd) {
    using Time = std::chrono::steady_clock;
    struct stat what {};
    if (fstat(fd, &what) != 0 || !S_ISFIFO(what.st_mode)) return;
    const Time::time_point end = Time::now() + std::chrono::milliseconds(kReaderWait_ms);
    int unread = 0;
    while (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0 && Time::now() < end)
        std::this_thread::sleep_for(std::chrono::microseconds(500));
}

bool is_leftover(const std::string& name) {
    return name.starts_with(".last.safetensors.") || name.starts_with(".best.safetensors.") ||
           name.starts_with(".best-epoch-");
}

/// `name` becomes another name of `file`, or, where a file has only one, of a copy.
Result<void> name_too(const std::filesystem::path& file, const std::filesystem::path& name) {
    std::error_code error;
    const std::filesystem::path link = name.string() + ".new";
    std::filesystem::remove(link, error);
    std::filesystem::create_hard_link(file, link, error);
    if (error) std::filesystem::copy_file(file, link, error);
    if (!error) std::filesystem::rename(link, name, error);
    if (error)
        return Error{Code::kInternalError, "cannot write it: " + error.message(), name.string()};
    return {};
}

}  // namespace

std::string metric_line(std::span<const NamedValue> values, std::int64_t step) {
    nlohmann::ordered_json line = nlohmann::ordered_json::object();
    for (const NamedValue& value : values) line[value.name] = json_number(value.value);
    line["step"] = step;
    return "tune: " + line.dump() + "\n";
}

std::string artifact_line(const std::filesystem::path& file) {
    nlohmann::ordered_json line = nlohmann::ordered_json::object();
    line["artifact"] = file.string();
    return "tune: " + line.dump() + "\n";
}

LineSink lines_to(int fd) {
    return [fd](const std::string& lines) { return write_all(fd, lines); };
}

Result<CheckpointDirectory> CheckpointDirectory::open(const std::filesystem::path& path) {
    const auto failed = [&](const std::string& what, const std::string& reason) {
        return Error{Code::kInternalError, "checkpoint directory '" + path.string() + "': cannot " +
                                               what + ": " + reason};
    };
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return failed("make it", error.message());
    const int fd = ::open((path / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return failed("write in it", std::strerror(errno));
    CheckpointDirectory directory(path, fd);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return Error{Code::kResourceConflict, "checkpoint directory '" + path.string() +
                                                  "': another process is training in it"};
    for (const auto& entry : std::filesystem::directory_iterator(path, error))
        if (is_leftover(entry.path().filename().string())) {
            std::error_code ignored;
            std::filesystem::remove(entry.path(), ignored);
        }
    if (error) return failed("list it", error.message());
    return directory;
}

CheckpointDirectory::CheckpointDirectory(std::filesystem::path path, int lock_fd)
    : path_(std::move(path)), lock_fd_(lock_fd) {}

CheckpointDirectory::CheckpointDirectory(CheckpointDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_fd_(std::exchange(other.lock_fd_, -1)) {}

void CheckpointDirectory::remove_best_except(const std::vector<std::int64_t>& kept) const {
    std::set<std::string> names;
    for (const std::int64_t epoch : kept) names.insert(best_of(epoch).filename().string());
    std::vector<std::filesystem::path> others;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(kBestOfPrefix) && name.ends_with(".safetensors") &&
            !names.contains(name))
            others.push_back(entry.path());
    }
    for (const std::filesystem::path& other : others) std::filesystem::remove(other, ignored);
}

CheckpointDirectory::~CheckpointDirectory() {
    if (lock_fd_ >= 0) close(lock_fd_);
}

Recorder::Recorder(int metrics_fd, const CheckpointDirectory* directory)
    : Recorder(lines_to(metrics_fd), metrics_fd, directory) {}

Recorder::Recorder(LineSink lines, const CheckpointDirectory* directory)
    : Recorder(std::move(lines), STDOUT_FILENO, directory) {}

Recorder::Recorder(LineSink lines, int outlet, const CheckpointDirectory* directory)
    : sink_(std::move(lines)),
      outlet_(outlet),
      directory_(directory),
      thread_([this] { work(); }) {}

Recorder::~Recorder() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    given_.notify_one();
    thread_.join();
}

void Recorder::line(std::string text) {
    {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return lines_.size() < kLinesWaitingMax; });
        lines_.push_back(std::move(text));
    }
    given_.notify_one();
}

void Recorder::checkpoint(Checkpoint checkpoint) {
    {
        const std::lock_guard lock(mutex_);
        if (checkpoint_ && checkpoint_->best && !checkpoint.best)
            checkpoint.best = std::move(checkpoint_->best);
        if (checkpoint_ && checkpoint.best_epoch == 0)
            checkpoint.best_epoch = checkpoint_->best_epoch;
        if (checkpoint_)
            for (BestOf& waiting : checkpoint_->added)
                checkpoint.added.push_back(std::move(waiting));
        checkpoint_ = std::move(checkpoint);
    }
    given_.notify_one();
}

void Recorder::drain() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return lines_.empty() && !checkpoint_ && !busy_; });
}

std::optional<Error> Recorder::take_checkpoint_error() {
    const std::lock_guard lock(mutex_);
    return std::exchange(checkpoint_error_, std::nullopt);
}

void Recorder::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        given_.wait(lock, [this] { return stop_ || !lines_.empty() || checkpoint_; });
        if (lines_.empty() && !checkpoint_) return;
        const std::deque<std::string> lines = std::exchange(lines_, {});
        const std::optional<Checkpoint> checkpoint = std::exchange(checkpoint_, std::nullopt);
        busy_ = true;
        lock.unlock();
        done_.notify_all();
        write_lines(lines);
        if (checkpoint) write_checkpoint(*checkpoint);
        lock.lock();
        busy_ = false;
        done_.notify_all();
    }
}

void Recorder::write_lines(const std::deque<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line;
    if (!reader_gone_.load() && !text.empty() && !sink_(text)) reader_gone_.store(true);
}

/// By name only, without a copy. Where that is not possible there is no checkpoint before the last.
void Recorder::keep_previous() const {
    std::error_code ignored;
    const std::filesystem::path link = directory_->previous().string() + ".new";
    std::filesystem::remove(link, ignored);
    std::filesystem::create_hard_link(directory_->last(), link, ignored);
    std::filesystem::rename(link, directory_->previous(), ignored);
}

Result<void> Recorder::write_best(const Checkpoint& checkpoint) const {
    if (checkpoint.best) return write_file_atomic(directory_->best(), checkpoint.best->bytes());
    for (const BestOf& each : checkpoint.added)
        if (std::find(checkpoint.kept.begin(), checkpoint.kept.end(), each.epoch) !=
            checkpoint.kept.end())
            TUNE_TRY_VOID(write_file_atomic(directory_->best_of(each.epoch), each.bytes.bytes()));
    if (checkpoint.best_epoch == 0) return {};
    return name_too(directory_->best_of(checkpoint.best_epoch), directory_->best());
}

Result<void> Recorder::write_files(const Checkpoint& checkpoint) const try {
    TUNE_TRY_VOID(write_best(checkpoint));
    const std::string last = checkpoint.last.bytes();
    keep_previous();
    // `last` remembers the best score: without the file of the best it must not land either.
    return write_file_atomic(directory_->last(), last);
} catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the bytes of a checkpoint",
                 directory_->last().string()};
}

void Recorder::write_checkpoint(const Checkpoint& checkpoint) {
    if (directory_ == nullptr) return;
    if (!reader_gone_.load()) wait_until_read(outlet_);
    const Result<void> written = write_files(checkpoint);
    if (written) return directory_->remove_best_except(checkpoint.kept);
    const std::lock_guard lock(mutex_);
    if (!checkpoint_error_) checkpoint_error_ = written.error();
}

}  // namespace tune::train
