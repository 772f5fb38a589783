#pragma once
// The sending half of a session: a response -> bytes of the connection.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tracker/http/file_sender.h"
#include "tracker/http/session/client_stream.h"
#include "tracker/http/session/session_events.h"
#include "tracker/http/session/session_limits.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// All calls on the worker's thread. Owned by the session, which outlives every operation
/// (SessionEvents::keep_alive). Bodies that are made while they are sent (StreamBody,
/// EventStreamBody) are not its business.
class ResponseWriter {
public:
    ResponseWriter(ClientStream& stream, std::shared_ptr<Worker> worker,
                   std::shared_ptr<ServerContext> context, SessionEvents& session);

    /// Makes room for the response's body in the server's budget of answers that wait to be read.
    /// False: there is none.
    [[nodiscard]] bool reserve(const Response& response) {
        return response.body.size() <= kTransferBytes || share_.grow_to(response.body.size());
    }
    /// Decides what is sent: the body, a part of the file, nothing for HEAD or 304. `request` may
    /// be null (the response refuses what could not be read). Returns the status.
    [[nodiscard]] int prepare(Response response, const Request* request, bool keep_alive);
    /// Sends it, then calls on_written or on_broken.
    void start();
    /// Drops what is left; pending operations have no effect any more.
    void stop();

    [[nodiscard]] std::int64_t deadline_ms() const { return deadline_ms_; }

private:
    enum class State {
        kIdle,
        kSending,      // head and body in memory
        kSendingFile,  // a piece of file_ is sent by sendfile, or read to be sent
    };

    void send();
    void on_sent(const boost::system::error_code& ec, std::size_t count);
    void send_file_piece();
    void on_file_piece(SendOutcome outcome);
    void read_file_piece();
    void on_file_read(std::string piece);
    void finish();
    void extend_deadline();

    ClientStream& stream_;
    const std::shared_ptr<Worker> worker_;
    const std::shared_ptr<ServerContext> context_;
    SessionEvents& session_;

    State state_ = State::kIdle;
    std::int64_t deadline_ms_ = kNoDeadline;
    std::string head_;
    std::string body_;
    std::string_view in_memory_;            // the body to send: body_, or bytes that live for ever
    std::array<std::string_view, 2> rest_;  // of head_ and in_memory_
    FilePart file_;
    MemoryShare share_;  // of the answer under way
};

}  // namespace tune::tracker
