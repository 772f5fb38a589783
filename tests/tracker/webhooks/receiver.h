#pragma once
// A receiver of webhooks: our own HTTP server on a free port, which keeps what it gets and answers
// what a test wants.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracker/http/server.h"

namespace tune::tracker {

struct Received {
    std::string path;
    std::string body;
    std::string delivery_id;
    std::string timestamp;
    std::string signature;
    std::string content_type;
};

/// Answers with the next status that was queued, else 200 "ok". Thread-safe.
class Receiver {
public:
    Receiver() {
        router_.add({Method::kPost, Access::kOpen, "/{path...}", Body::kJson, "",
                     [this](const std::shared_ptr<Request>& request, const Responder& respond) {
                         respond(take(*request));
                     }});
        server_ = Server::start({.port = 0, .threads = 1}, router_).value();
    }
    ~Receiver() { server_->stop(); }

    [[nodiscard]] std::string url(const std::string& path = "/hook") const {
        return server_->url() + path;
    }
    /// The answer to the next request that has none yet.
    void answer_next(Response response) {
        const std::lock_guard lock(mutex_);
        answers_.push_back(std::move(response));
    }
    void answer_next(int status) { answer_next(text_response("no", status)); }

    /// Waits until there are `count` requests; all of them.
    std::vector<Received> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds(60),
                          [&] { return received_.size() >= count; });
        return received_;
    }
    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock(mutex_);
        return received_.size();
    }

private:
    Response take(const Request& request) {
        const std::lock_guard lock(mutex_);
        received_.push_back({request.path, request.body,
                             std::string(request.header("X-MLflow-Delivery-Id")),
                             std::string(request.header("X-MLflow-Timestamp")),
                             std::string(request.header("X-MLflow-Signature")),
                             std::string(request.header("Content-Type"))});
        changed_.notify_all();
        if (answers_.empty()) return text_response("ok");
        Response answer = std::move(answers_.front());
        answers_.pop_front();
        return answer;
    }

    Router router_;
    std::unique_ptr<Server> server_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Response> answers_;
    std::vector<Received> received_;
};

}  // namespace tune::tracker
