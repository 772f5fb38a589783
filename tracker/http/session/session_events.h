#pragma once
// What the two halves of a session report to it.

#include <memory>
#include <string>

#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// The two ends of a connection.
struct Endpoints {
    std::string remote_address;
    std::string local_address;
    bool is_loopback = false;
    bool is_encrypted = false;
    /// The client has shown one that the server's authority of clients has signed.
    bool has_client_certificate = false;
};

/// All calls on the worker's thread. After a call the caller does nothing more of its own accord.
class SessionEvents {
public:
    virtual ~SessionEvents() = default;
    /// Keeps the session and its halves alive while an operation of theirs is under way.
    [[nodiscard]] virtual std::shared_ptr<const void> keep_alive() = 0;
    /// RequestReader: the request is whole, and answered next.
    virtual void on_request() = 0;
    /// RequestReader: answer this and close. The rest of what the client sends is not understood,
    /// or not wanted.
    virtual void on_refused(Response response) = 0;
    /// ResponseWriter: the response is with the kernel.
    virtual void on_written() = 0;
    /// Either: the connection is of no further use.
    virtual void on_broken() = 0;
};

}  // namespace tune::tracker
