// A job posted from another thread wakes the loop by an eventfd at most once until the loop has
// looked; the flag is cleared before the list is taken, so a job added in between wakes it again
// and none is lost.

#include "tracker/http/worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <chrono>
#include <vector>

#include "base/system/thread.h"
#include "tracker/http/file_sender.h"

namespace tune::tracker {

Worker::Worker(int tick_ms, std::size_t index)
    : guard_(boost::asio::make_work_guard(context_)),
      timer_(context_),
      wakes_(context_, ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      tick_ms_(tick_ms),
      index_(index) {}

Worker::~Worker() {
    finish();
}

std::int64_t Worker::now_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

void Worker::start() {
    schedule_tick();
    wait_for_jobs();
    thread_ = std::thread([this] {
        name_thread("network");
        take_short_turns();
        block_sigpipe();
        thread_id_ = std::this_thread::get_id();
        context_.run();
    });
}

void Worker::add_job(std::unique_ptr<AnyJob> job) {
    {
        const std::lock_guard lock(mutex_);
        if (finished_) return;
        jobs_.push_back(std::move(job));
    }
    LateWakes::wake(shared_from_this());
}

void Worker::wake() {
    if (is_woken_.exchange(true)) return;
    const std::uint64_t one = 1;
    // Fails only when the count is full, and then the worker has been woken already.
    [[maybe_unused]] const auto written = ::write(wakes_.native_handle(), &one, sizeof one);
}

void Worker::wait_for_jobs() {
    wakes_.async_read_some(boost::asio::buffer(&wake_count_, sizeof wake_count_),
                           [this](const boost::system::error_code& ec, std::size_t) {
                               if (ec) return;
                               run_jobs();
                               wait_for_jobs();
                           });
}

void Worker::run_jobs() {
    is_woken_ = false;  // before the look: what comes after it wakes again
    std::vector<std::unique_ptr<AnyJob>> jobs;
    {
        const std::lock_guard lock(mutex_);
        jobs.swap(jobs_);
    }
    for (std::unique_ptr<AnyJob>& job : jobs) {
        job->run();
        job.reset();
    }
}

void Worker::add(std::shared_ptr<Connection> connection) {
    Connection* const key = connection.get();
    connections_.emplace(key, std::move(connection));
}

void Worker::remove(Connection* connection) {
    connections_.erase(connection);
}

void Worker::schedule_tick() {
    timer_.expires_after(std::chrono::milliseconds(tick_ms_));
    timer_.async_wait([this](const boost::system::error_code& ec) {
        if (ec) return;
        std::vector<std::shared_ptr<Connection>> all;
        all.reserve(connections_.size());
        for (const auto& [key, connection] : connections_) all.push_back(connection);
        const std::int64_t now = now_ms();
        for (const auto& connection : all) connection->tick(now);
        schedule_tick();
    });
}

void Worker::drain_all() {
    draining_ = true;
    const auto all = connections_;
    for (const auto& [key, connection] : all) connection->drain();
}

void Worker::close_all() {
    const auto all = connections_;
    for (const auto& [key, connection] : all) connection->close();
}

void Worker::finish() {
    {
        const std::lock_guard lock(mutex_);
        if (finished_) return;
        finished_ = true;
    }
    guard_.reset();
    context_.stop();
    if (thread_.joinable()) thread_.join();
    // What is left in the queue holds references to connections: let it run out here, where
    // everything is closed already.
    timer_.cancel();
    close_all();
    run_jobs();
    boost::system::error_code ignored;
    wakes_.cancel(ignored);
    context_.restart();
    context_.poll();
}

}  // namespace tune::tracker
