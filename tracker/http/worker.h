#pragma once
// A network thread with its event loop, and what all connections share.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tracker/artifacts/work_pool.h"
#include "tracker/http/host_check.h"
#include "tracker/http/http_statistics.h"
#include "tracker/http/server.h"

namespace tune::tracker {

/// Bytes of JSON bodies held at one time by all connections together; one more is 429. Without it
/// kConnectionsMax bodies of kJsonBodyBytesMax would be 32 GB.
inline constexpr std::size_t kBodyBytesTotalMax = 256u << 20;

/// Connections that may have a large read buffer at one time; the others make do with a small one,
/// so that thousands of clients that send slowly cost little.
inline constexpr int kLargeBuffersMax = 64;

/// What the connections of one server share. Thread-safe.
struct ServerContext {
    ServerContext(const ServerOptions& server_options, const Router& all_routes)
        : options(server_options),
          router(all_routes),
          host_check(options.host, options.allowed_hosts, options.allowed_origins) {}

    const ServerOptions options;
    const Router& router;
    const HostCheck host_check;
    /// For reads that must wait for a disk. Used on network threads only, while they run.
    WorkPool* pool = nullptr;
    std::atomic<std::size_t> body_bytes{0};
    std::atomic<int> large_buffers{0};

    /// Open connections; stop() waits for none.
    std::mutex mutex;
    std::condition_variable none_left;
    std::size_t connection_count = 0;

    /// Whether one more connection may have a large buffer; its end is large_buffers - 1.
    bool take_large_buffer() {
        if (large_buffers.fetch_add(1) < kLargeBuffersMax) return true;
        large_buffers.fetch_sub(1);
        return false;
    }

    void connection_closed() {
        if (options.statistics) options.statistics->connection_closed();
        const std::lock_guard lock(mutex);
        if (--connection_count == 0) none_left.notify_all();
    }
};

/// A connection as its worker sees it. All calls on the worker's thread.
class Connection {
public:
    virtual ~Connection() = default;
    /// Closes the connection if it is past its deadline. Called about once a second.
    virtual void tick(std::int64_t now_ms) = 0;
    /// The server stops: close when idle, else after the running request.
    virtual void drain() = 0;
    virtual void close() = 0;
};

/// One event loop and its thread. Connections never move between workers, so their state needs no
/// locks.
class Worker {
public:
    /// Ticks every `tick_ms`; `index` is its place among the server's workers.
    Worker(int tick_ms, std::size_t index);
    ~Worker();

    [[nodiscard]] boost::asio::io_context& context() { return context_; }
    [[nodiscard]] static std::int64_t now_ms();
    [[nodiscard]] std::size_t index() const { return index_; }

    void start();

    /// Runs `job` on this worker's thread: later, or now when that is the calling thread. After
    /// finish() it is dropped. Thread-safe.
    template <class Job>
    void dispatch(Job job) {
        if (std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed)) {
            job();
            return;
        }
        post(std::move(job));
    }
    template <class Job>
    void post(Job job) {
        const std::lock_guard lock(mutex_);
        if (!finished_) boost::asio::post(context_, std::move(job));
    }

    // On the worker's thread.
    void add(std::shared_ptr<Connection> connection);
    void remove(Connection* connection);
    [[nodiscard]] bool is_draining() const { return draining_; }
    void drain_all();
    void close_all();

    /// Ends the thread. Jobs posted later are dropped. Idempotent.
    void finish();

private:
    void schedule_tick();

    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
    boost::asio::steady_timer timer_;
    const int tick_ms_;
    const std::size_t index_;
    std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
    bool draining_ = false;
    std::thread thread_;
    std::atomic<std::thread::id> thread_id_;
    std::mutex mutex_;
    bool finished_ = false;
};

}  // namespace tune::tracker
