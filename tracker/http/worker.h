#pragma once
// A network thread with its event loop, and what all connections share.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/system/late_wakes.h"
#include "tracker/artifacts/work_pool.h"
#include "tracker/http/http_stats.h"
#include "tracker/http/protocol/host_check.h"
#include "tracker/http/server.h"
#include "tracker/http/session/memory_budget.h"

namespace tune::tracker {

/// Connections that may have a large read buffer at one time; the others make do with a small one,
/// so that thousands of clients that send slowly cost little.
inline constexpr int kLargeBuffersMax = 64;

/// Connections that a worker looks at in one go, for their time-outs or to drain them: 10 us of
/// work, after which whoever has a request gets its turn.
inline constexpr std::size_t kConnectionsAtOnce = 64;

/// What the connections of one server share. Thread-safe.
struct ServerContext {
    ServerContext(const ServerOptions& server_options, const Router& all_routes)
        : options(server_options),
          router(all_routes),
          host_check(options.host, options.allowed_hosts, options.allowed_origins),
          body_budget(std::make_shared<MemoryBudget>(options.body_bytes_total_max)),
          answer_budget(std::make_shared<MemoryBudget>(options.answer_bytes_total_max)) {}

    const ServerOptions options;
    const Router& router;
    const HostCheck host_check;
    /// For reads that must wait for a disk. Used on network threads only, while they run.
    WorkPool* pool = nullptr;
    /// For handshakes; null without TLS.
    WorkPool* handshake_pool = nullptr;
    const std::shared_ptr<MemoryBudget> body_budget;
    const std::shared_ptr<MemoryBudget> answer_budget;
    std::atomic<int> large_buffers{0};

    /// Open connections (ConnectionTicket); stop() waits for none.
    std::mutex mutex;
    std::condition_variable none_left;
    std::size_t connection_count = 0;
    std::unordered_map<std::string, std::size_t> connections_of;  ///< by the client's address
    std::size_t handshake_count = 0;                              ///< of TLS, under way
    std::unordered_map<std::string, std::size_t> handshakes_of;   ///< by the client's address

    /// Whether one more connection may have a large buffer; its end is large_buffers - 1.
    bool take_large_buffer() {
        if (large_buffers.fetch_add(1) < kLargeBuffersMax) return true;
        large_buffers.fetch_sub(1);
        return false;
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
/// locks. Jobs of other threads come by a list of its own, not by asio's: asio wakes the loop's
/// thread while it holds the lock that this thread then wants, and a thread with long work that
/// loses its processor at that point stops all connections.
class Worker final : public Sleeper, public std::enable_shared_from_this<Worker> {
public:
    /// Ticks each connection about every `tick_ms`; `index` is its place among the server's
    /// workers.
    Worker(int tick_ms, std::size_t index);
    ~Worker() override;

    [[nodiscard]] boost::asio::io_context& context() { return context_; }
    [[nodiscard]] static std::int64_t now_ms();
    [[nodiscard]] std::size_t index() const { return index_; }

    void start();

    /// Runs `job` on this worker's thread: later, or now when that is the calling thread. After
    /// finish() it is dropped. Jobs of one thread keep their order. Thread-safe; LateWakes puts off
    /// when the worker hears of it.
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
        add_job(std::make_unique<JobOf<Job>>(std::move(job)));
    }
    void wake() override;

    // On the worker's thread.
    void add(std::shared_ptr<Connection> connection);
    void remove(Connection* connection);
    [[nodiscard]] bool is_draining() const { return draining_; }
    /// All connections, some now and the others soon.
    void drain_all();
    void close_all();

    /// Ends the thread. Jobs posted later are dropped. Idempotent.
    void finish();

private:
    struct AnyJob {
        virtual ~AnyJob() = default;
        virtual void run() = 0;
    };
    template <class Job>
    struct JobOf final : AnyJob {
        explicit JobOf(Job given) : job(std::move(given)) {}
        void run() override { job(); }
        Job job;
    };

    void schedule_tick();
    void look_at_some();
    void drain_some(std::size_t left);
    void add_job(std::unique_ptr<AnyJob> job);
    void wait_for_jobs();
    void run_jobs();

    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
    boost::asio::steady_timer timer_;
    boost::asio::posix::stream_descriptor wakes_;  // an eventfd
    std::uint64_t wake_count_ = 0;                 // what is read from it
    std::atomic<bool> is_woken_{false};            // and has not looked at jobs_ since
    const int tick_ms_;
    const std::size_t index_;
    /// In order of their turns to be looked at; who had one goes to the end.
    std::list<std::shared_ptr<Connection>> turns_;
    std::unordered_map<Connection*, std::list<std::shared_ptr<Connection>>::iterator> connections_;
    bool draining_ = false;
    std::thread thread_;
    std::atomic<std::thread::id> thread_id_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<AnyJob>> jobs_;  // guarded by mutex_
    bool finished_ = false;                      // guarded by mutex_
};

}  // namespace tune::tracker
