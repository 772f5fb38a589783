// A job posted from another thread wakes the loop by an eventfd at most once until the loop has
// looked; the flag is cleared before the list is taken, so a job added in between wakes it again
// and none is lost.
//
// No event walks all connections: time-outs are looked at in turns of a few, as often as it takes
// for each connection to be looked at once in `tick_ms`.

#include "tracker/http/worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
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
    connections_.emplace(key, turns_.insert(turns_.end(), std::move(connection)));
}

void Worker::remove(Connection* connection) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    turns_.erase(found->second);
    connections_.erase(found);
}

void Worker::schedule_tick() {
    const std::size_t turns = turns_.size() / kConnectionsAtOnce + 1;
    timer_.expires_after(std::chrono::microseconds(tick_ms_ * 1000ll / static_cast<int>(turns)));
    timer_.async_wait([this](const boost::system::error_code& ec) {
        if (ec) return;
        look_at_some();
        schedule_tick();
    });
}

void Worker::look_at_some() {
    const std::int64_t now = now_ms();
    for (std::size_t left = std::min(turns_.size(), kConnectionsAtOnce); left > 0; --left) {
        if (turns_.empty()) return;
        turns_.splice(turns_.end(), turns_, turns_.begin());
        const std::shared_ptr<Connection> connection = turns_.back();  // it may remove itself
        if (draining_) connection->drain();
        if (connections_.contains(connection.get())) connection->tick(now);
    }
}

void Worker::drain_all() {
    draining_ = true;
    drain_some(turns_.size());
}

void Worker::drain_some(std::size_t left) {
    look_at_some();
    if (left <= kConnectionsAtOnce) return;
    post([self = shared_from_this(), left] { self->drain_some(left - kConnectionsAtOnce); });
}

void Worker::close_all() {
    const auto all = turns_;
    for (const auto& connection : all) connection->close();
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
