#include "worker/agent/server/sender.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "tracker/client/mlflow_environment.h"
#include "tuner/protocol.h"

namespace tune::worker {

bool is_passing(const Error& error) {
    switch (error.code) {
        case Code::kTemporarilyUnavailable:
        case Code::kDeadlineExceeded:
        case Code::kRequestLimitExceeded:
        case Code::kInternalError:
        case Code::kDataLoss: return true;
        default: return false;
    }
}

Result<std::unique_ptr<tracker::Client>> connect_to(const std::string& server_url) {
    tracker::ClientOptions options;
    options.url = server_url;
    options.retries = 0;
    options.user_agent = "tune-agent";
    return tracker::create_client(std::move(options));
}

Result<std::unique_ptr<tracker::Client>> connect_as(const std::string& server_url,
                                                    const std::string& token) {
    if (token.empty()) return connect_to(server_url);
    tracker::ClientOptions options;
    options.url = server_url;
    options.retries = 0;
    options.user_agent = "tune-agent";
    TUNE_TRY_VOID(tracker::read_mlflow_environment(options));  // for its certificates
    options.authorization = "Bearer " + token;
    return tracker::Client::create(std::move(options));
}

bool trials_take_tokens() {
    for (const char* name : {"MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4"})
        if (const char* const value = std::getenv(name); value != nullptr && *value != '\0')
            return false;
    tracker::ClientOptions options;
    if (!tracker::read_mlflow_environment(options)) return false;  // connect_to says why
    const std::string& login = options.authorization;
    return login.empty() || login.starts_with("Bearer " + std::string(tuner::kAttemptTokenPrefix));
}

Sender::~Sender() = default;

Result<void> Sender::connect(const std::string& server_url, int threads) {
    for (int i = 0; i < threads; ++i) {
        TUNE_TRY(client, connect_to(server_url));
        clients_.push_back(std::move(client));
    }
    return {};
}

void Sender::start() {
    for (const auto& client : clients_)
        threads_.emplace_back([this, at = client.get()] { work(*at); });
}

void Sender::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    for (const auto& client : clients_) client->cancel();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

bool Sender::pause(int delay_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(delay_ms), [this] { return stopping_; });
    return !stopping_;
}

}  // namespace tune::worker
