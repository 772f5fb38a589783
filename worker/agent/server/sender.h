#pragma once
// Threads that each send to the server over a connection of their own: how they start, wait
// between two attempts and stop.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "tracker/client/client.h"

namespace tune::worker {

/// An error on the way or of the moment: the same call may succeed later.
[[nodiscard]] bool is_passing(const Error& error);

/// A connection of the agent's. It tries each call once: the loops that use it repeat, with the
/// state of the moment. Errors: those of tracker::create_client.
[[nodiscard]] Result<std::unique_ptr<tracker::Client>> connect_to(const std::string& server_url);
/// The same with the credential of an attempt, if it has one.
[[nodiscard]] Result<std::unique_ptr<tracker::Client>> connect_as(const std::string& server_url,
                                                                  const std::string& token);

/// Whether this agent's trials can be given credentials of their own. Not where the environment (or
/// ~/.mlflow/credentials) has a login for the server: a proxy in front may ask for it, from the
/// trials as from the agent, and a client sends only one. The credential of an outer trial is no
/// such login.
[[nodiscard]] bool trials_take_tokens();

/// A class that derives from it calls stop() in its destructor, before its members go.
class Sender {
public:
    virtual ~Sender();
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    void start();
    /// Ends the threads, with what is unsent unsent. Idempotent.
    void stop();

protected:
    Sender() = default;
    /// A connection for each thread, before start(). Errors: those of connect_to.
    [[nodiscard]] Result<void> connect(const std::string& server_url, int threads);
    /// What each thread does until stopping_.
    virtual void work(tracker::Client& client) = 0;
    /// False when it was ended by stop().
    bool pause(int delay_ms);

    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;  // guarded by mutex_

private:
    std::vector<std::unique_ptr<tracker::Client>> clients_;
    std::vector<std::thread> threads_;
};

}  // namespace tune::worker
