#include "tracker/http/worker.h"

#include <chrono>
#include <vector>

#include "base/thread.h"
#include "tracker/http/file_sender.h"

namespace tune::tracker {

Worker::Worker(int tick_ms, std::size_t index)
    : guard_(boost::asio::make_work_guard(context_)),
      timer_(context_),
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
    thread_ = std::thread([this] {
        name_thread("network");
        take_short_turns();
        block_sigpipe();
        thread_id_ = std::this_thread::get_id();
        context_.run();
    });
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
    context_.restart();
    context_.poll();
}

}  // namespace tune::tracker
