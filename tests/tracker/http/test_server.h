#pragma once
// A real server on a free port with a few routes that show what the network side does.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/artifacts/work_pool.h"
#include "tracker/http/server.h"

namespace tune::tracker {

/// Collects uploads; each chunk is taken on a pool thread, and only while `open` says so.
struct UploadLog {
    std::mutex mutex;
    std::condition_variable changed;
    std::string bytes;
    std::size_t largest_chunk = 0;
    bool is_gate_open = true;
    int waiting = 0;
    int abandoned = 0;
    Result<void> verdict = {};

    void set_gate(bool is_open) {
        const std::lock_guard lock(mutex);
        is_gate_open = is_open;
        changed.notify_all();
    }
    template <class Ready>
    void wait_until(Ready ready) {
        std::unique_lock lock(mutex);
        changed.wait(lock, ready);
    }
};

class LoggingSink final : public BodySink {
public:
    LoggingSink(UploadLog& log, WorkPool& pool) : log_(log), pool_(pool) {}
    ~LoggingSink() override {
        const std::lock_guard lock(log_.mutex);
        if (!is_finished_) ++log_.abandoned;
        log_.changed.notify_all();
    }
    void write(std::string_view chunk, std::function<void(Result<void>)> done) override {
        pool_.post([&log = log_, chunk, done] {
            std::unique_lock lock(log.mutex);
            ++log.waiting;
            log.changed.notify_all();
            log.changed.wait(lock, [&log] { return log.is_gate_open; });
            --log.waiting;
            log.bytes.append(chunk);
            log.largest_chunk = std::max(log.largest_chunk, chunk.size());
            const Result<void> verdict = log.verdict;
            log.changed.notify_all();
            lock.unlock();
            done(verdict);
        });
    }
    void finish(Responder respond) override {
        is_finished_ = true;
        respond(text_response("stored"));
    }

private:
    UploadLog& log_;
    WorkPool& pool_;
    bool is_finished_ = false;
};

class TestServer {
public:
    /// Its end is quick; a test of the drain itself asks for more patience.
    explicit TestServer(ServerOptions options = {}, int drain_max_ms = 2000,
                        const Authenticator* authenticator = nullptr) {
        add_routes();
        if (authenticator != nullptr) router.set_authenticator(*authenticator);
        options.port = 0;
        options.drain_timeout_ms = std::min(options.drain_timeout_ms, drain_max_ms);
        auto started = Server::start(options, router);
        TUNE_CHECK(started.has_value(), "the test server starts");
        server = std::move(started).value();
    }
    ~TestServer() {
        held.clear();
        upload.set_gate(true);
        server->stop();
        for (std::thread& thread : threads) thread.join();
    }

    [[nodiscard]] std::uint16_t port() const { return server->port(); }

    SystemClock clock;
    Router router;
    EventHub hub{clock};
    UploadLog upload;
    WorkPool pool{2};
    std::string large_body = std::string(100'000, 'j');
    std::mutex held_mutex;
    std::condition_variable held_changed;
    std::vector<Responder> held;
    std::vector<std::thread> threads;
    std::shared_ptr<const UniqueFd> file;
    std::uint64_t file_size = 0;
    std::unique_ptr<Server> server;

private:
    void add_routes() {
        const auto add = [this](Method method, std::string pattern, Body body, Handler handler) {
            router.add({method, Access::kOpen, std::move(pattern), body, "", std::move(handler)});
        };
        add(Method::kGet, "/health", Body::kNone,
            [](auto, const Responder& respond) { respond(text_response("OK")); });
        add(Method::kGet, "/hello/{name}", Body::kNone,
            [](const auto& request, const Responder& respond) {
                respond(text_response("hello " + request->parameter("name")));
            });
        add(Method::kPost, "/echo", Body::kJson, [](const auto& request, const Responder& respond) {
            respond(json_text_response(request->body));
        });
        add(Method::kGet, "/large", Body::kNone,
            [this](auto, const Responder& respond) { respond(json_text_response(large_body)); });
        add(Method::kGet, "/held", Body::kNone, [this](auto, const Responder& respond) {
            const std::lock_guard lock(held_mutex);
            held.push_back(respond);
            held_changed.notify_all();
        });
        add(Method::kPost, "/held", Body::kJson, [this](auto, const Responder& respond) {
            const std::lock_guard lock(held_mutex);
            held.push_back(respond);
            held_changed.notify_all();
        });
        add(Method::kGet, "/elsewhere", Body::kNone, [this](auto, const Responder& respond) {
            pool.post([respond] { respond(text_response("from another thread")); });
        });
        add(Method::kGet, "/forgotten", Body::kNone, [](auto, auto) {});
        add(Method::kGet, "/file", Body::kNone, [this](auto, const Responder& respond) {
            Response response;
            response.content_type = "application/octet-stream";
            response.etag = "\"v1\"";
            response.special = FileBody{file, file_size};
            respond(std::move(response));
        });
        add(Method::kGet, "/events", Body::kNone,
            [this](const auto& request, const Responder& respond) {
                Response response;
                response.content_type = "text/event-stream";
                const std::string last(request->header("Last-Event-ID"));
                std::optional<std::uint64_t> id;
                if (!last.empty()) id = std::stoull(last);
                response.special = EventStreamBody{hub.subscribe({"t"}, id)};
                respond(std::move(response));
            });
        router.add(
            {Method::kPut, Access::kOpen, "/upload/{path...}", Body::kStream, "", nullptr,
             [this](const std::shared_ptr<Request>& request) -> Result<std::unique_ptr<BodySink>> {
                 if (request->parameter("path") == "forbidden")
                     return Error{Code::kPermissionDenied, "not here"};
                 return std::unique_ptr<BodySink>(std::make_unique<LoggingSink>(upload, pool));
             }});
    }
};

}  // namespace tune::tracker
