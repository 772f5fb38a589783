// Two queues for one set of threads. Short requests go first: somebody waits for each. Long ones
// are limited to the number of connections, and there are more threads than that, so a flood of
// short ones never takes the threads that long ones run on for more than the time of one short
// request.

#include "loader/source/range_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace tune::loader {
namespace {

/// Threads at most, most of which wait for an answer.
constexpr std::size_t kThreadsOfConnection = 5;
/// A thread beyond one for each connection ends when it had nothing to do for this long.
constexpr std::chrono::seconds kIdleMax(10);

Result<void> write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
            return Error{is_full ? Code::kResourceExhausted : Code::kInternalError,
                         std::string("cannot write what was fetched: ") + std::strerror(errno)};
        }
        offset += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace

RangeReader::RangeReader(int connections) : files_at_once_(static_cast<std::size_t>(connections)) {}

RangeReader::~RangeReader() {
    stop();
    for (std::thread& thread : threads_) thread.join();
}

void RangeReader::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        for (Tasks* const tasks : {&files_, &samples_}) {
            for (const Task& task : *tasks) {
                if (!task.group->error)
                    task.group->error = Error{Code::kCancelled, "it was cancelled"};
                if (--task.group->left == 0) task.group->done.notify_all();
            }
            tasks->clear();
        }
    }
    waiting_.notify_all();
}

Result<void> RangeReader::run(std::vector<Job> jobs, Kind kind) {
    if (jobs.empty()) return {};
    Group group;
    group.left = jobs.size();
    std::unique_lock lock(mutex_);
    if (is_stopping_) return Error{Code::kCancelled, "it was cancelled"};
    for (Job& job : jobs) of(kind).push_back({std::move(job), &group});
    start_threads();
    for (std::size_t i = 0; i < std::min(group.left, threads_.size()); ++i) waiting_.notify_one();
    group.done.wait(lock, [&group] { return group.left == 0; });
    if (group.error) return *std::move(group.error);
    return {};
}

std::optional<RangeReader::Kind> RangeReader::next_kind() const {
    if (!samples_.empty()) return Kind::kSample;
    if (!files_.empty() && files_running_ < files_at_once_) return Kind::kFile;
    return {};
}

/// A thread for each job that can begin, within the limits. REQUIRES: mutex_.
void RangeReader::start_threads() {
    for (const auto ended : ended_) {
        ended->join();  // it has let go of everything
        threads_.erase(ended);
    }
    ended_.clear();
    const std::size_t files = std::min(files_.size(), files_at_once_ - files_running_);
    const std::size_t wanted = files + samples_.size();
    const std::size_t most = kThreadsOfConnection * files_at_once_;
    for (std::size_t i = idle_; i < wanted && threads_.size() < most; ++i)
        threads_.emplace_back([this] { work(); });
}

void RangeReader::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_;
        const bool has_work = waiting_.wait_for(
            lock, kIdleMax, [this] { return is_stopping_ || next_kind().has_value(); });
        --idle_;
        if (is_stopping_) return;
        if (!has_work && threads_.size() - ended_.size() <= files_at_once_) continue;
        if (!has_work) {
            ended_.push_back(
                std::ranges::find(threads_, std::this_thread::get_id(), &std::thread::get_id));
            return;
        }
        const Kind kind = *next_kind();
        const Task task = std::move(of(kind).front());
        of(kind).pop_front();
        files_running_ += kind == Kind::kFile ? 1 : 0;
        Result<void> done;
        if (!task.group->error) {
            lock.unlock();
            done = task.job();
            lock.lock();
        }
        files_running_ -= kind == Kind::kFile ? 1 : 0;
        if (!done && !task.group->error) task.group->error = std::move(done).error();
        if (--task.group->left == 0) task.group->done.notify_all();
    }
}

Result<void> RangeReader::to_file(const ObjectSource& source, const ObjectInfo& object,
                                  std::uint64_t offset, std::uint64_t bytes, int fd) {
    std::vector<Job> jobs;
    for (std::uint64_t at = 0; at < bytes; at += kRangeBytes) {
        const std::size_t count = std::min<std::uint64_t>(kRangeBytes, bytes - at);
        jobs.push_back([&source, &object, fd, offset, at, count]() -> Result<void> {
            thread_local std::vector<std::byte> buffer;
            buffer.resize(count);
            TUNE_TRY_VOID(source.read(object, offset + at, buffer));
            return write_all(fd, buffer, at);
        });
    }
    Result<void> done = run(std::move(jobs));
    if (done || done.error().code != Code::kNotImplemented || bytes != object.bytes) return done;
    return run({[&source, &object, fd]() -> Result<void> {
        std::vector<std::byte> whole(object.bytes);
        TUNE_TRY_VOID(source.read(object, 0, whole));
        return write_all(fd, whole, 0);
    }});
}

Result<void> RangeReader::to_memory(const ObjectSource& source, const ObjectInfo& object,
                                    std::uint64_t offset, std::span<std::byte> bytes) {
    std::vector<Job> jobs;
    for (std::size_t at = 0; at < bytes.size(); at += kRangeBytes) {
        const std::span<std::byte> range =
            bytes.subspan(at, std::min(kRangeBytes, bytes.size() - at));
        jobs.push_back([&source, &object, offset, at, range] {
            return source.read(object, offset + at, range);
        });
    }
    Result<void> done = run(std::move(jobs));
    if (done || done.error().code != Code::kNotImplemented || bytes.size() != object.bytes)
        return done;
    return run({[&source, &object, bytes] { return source.read(object, 0, bytes); }});
}

}  // namespace tune::loader
