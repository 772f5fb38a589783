// One connection's turns: read a request, let its route answer, write the response, again. The
// bytes are the business of RequestReader and ResponseWriter; a session decides whose turn it is,
// how long that may take, and when the connection ends.
//
// Exactly one half is active at a time, so nothing is read while a response is made or sent: a
// client that pipelines without reading is held back by the kernel. A response that becomes a
// stream takes the socket out of the session, which ends there; the connection stays counted.

#include "tracker/http/session/session.h"

#include <boost/asio/buffer.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "tracker/api/ui/event_hub.h"
#include "tracker/http/body_stream.h"
#include "tracker/http/event_stream.h"
#include "tracker/http/protocol/content_coding.h"
#include "tracker/http/protocol/response_head.h"
#include "tracker/http/responder.h"
#include "tracker/http/session/request_reader.h"
#include "tracker/http/session/response_writer.h"

namespace tune::tracker {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

Endpoints endpoints_of(const ClientStream& stream) {
    Endpoints endpoints;
    endpoints.is_encrypted = stream.is_encrypted();
    endpoints.has_client_certificate = stream.has_client_certificate();
    const tcp::socket& socket = stream.socket();
    error_code ec;
    if (const auto remote = socket.remote_endpoint(ec); !ec) {
        endpoints.remote_address = remote.address().to_string();
        endpoints.is_loopback = remote.address().is_loopback();
    }
    if (const auto local = socket.local_endpoint(ec); !ec)
        endpoints.local_address = local.address().to_string();
    return endpoints;
}

Response try_later(std::string why) {
    Response response = error_response({Code::kRequestLimitExceeded, std::move(why)});
    response.headers.emplace_back("Retry-After", "1");
    return response;
}

/// Nothing: the connection is within the limits.
std::optional<Response> refuse_connection(const ConnectionTicket& ticket,
                                          const ServerOptions& options) {
    if (ticket.count() > options.connections_max)
        return try_later("The server has " + std::to_string(options.connections_max) +
                         " open connections, which is its limit (--connections, and the limit of "
                         "open files). Try again later, or reuse connections.");
    if (ticket.count_of_address() > options.connections_per_client_max)
        return try_later("Your address has " + std::to_string(options.connections_per_client_max) +
                         " open connections, which is the share of one client "
                         "(--connections-per-client) without an agent's token. Try again later, or "
                         "reuse connections.");
    return {};
}

Response too_slow(int timeout_ms) {
    Response response =
        error_response({Code::kDeadlineExceeded, "The request did not arrive whole within " +
                                                     std::to_string(timeout_ms / 1000) + " s."});
    response.status = 408;
    return response;
}

/// Agents and what they run are no strangers: any number of them may have one address. Who only
/// says to be somebody is one.
bool is_of_agent(const Principal& principal) {
    if (std::holds_alternative<ClaimedPrincipal>(principal)) return false;
    return current_attempt(principal) != nullptr ||
           check_access(principal, Access::kAgent, Access::kOpen).has_value();
}

class Session final : public Connection,
                      public ResponseTarget,
                      public SessionEvents,
                      public std::enable_shared_from_this<Session> {
public:
    Session(ClientStream stream, std::shared_ptr<Worker> worker,
            std::shared_ptr<ServerContext> context, std::unique_ptr<ConnectionTicket> ticket)
        : stream_(std::move(stream)),
          worker_(std::move(worker)),
          context_(std::move(context)),
          ticket_(std::move(ticket)),
          endpoints_(endpoints_of(stream_)),
          reader_(stream_, worker_, context_, endpoints_, *this),
          writer_(stream_, worker_, context_, *this) {}

    void start(std::optional<Response> refusal);

    void tick(std::int64_t now_ms) override;
    void drain() override;
    void close() override;

    void answer(Response response) override;

    std::shared_ptr<const void> keep_alive() override { return shared_from_this(); }
    void on_request() override;
    void on_refused(Response response) override;
    void on_written() override;
    void on_broken() override { close(); }

private:
    enum class State { kReading, kAnswering, kWriting, kLingering, kClosed };

    Responder make_responder();
    void decompress_then_dispatch();
    void dispatch();

    void respond(Response response);
    [[nodiscard]] bool become_stream(Response& response);
    ClientStream release_stream();
    void count(int status);
    [[nodiscard]] const Request* request() const { return reader_.request().get(); }

    ClientStream stream_;
    const std::shared_ptr<Worker> worker_;
    const std::shared_ptr<ServerContext> context_;
    std::unique_ptr<ConnectionTicket> ticket_;  // null once the connection is closed or a stream's
    const Endpoints endpoints_;
    RequestReader reader_;
    ResponseWriter writer_;
    State state_ = State::kReading;
    bool close_after_ = false;   // the response under way is the last
    bool unread_input_ = false;  // the client may still be sending what nobody reads
};

void Session::start(std::optional<Response> refusal) {
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    worker_->add(shared_from_this());
    if (!refusal) refusal = refuse_connection(*ticket_, context_->options);
    if (refusal) return on_refused(*std::move(refusal));
    reader_.start();
}

void Session::tick(std::int64_t now_ms) {
    if (state_ == State::kAnswering) reader_.release_buffer();
    const std::int64_t deadline_ms =
        state_ == State::kWriting ? writer_.deadline_ms() : reader_.deadline_ms();
    if (now_ms < deadline_ms) return;
    if (!reader_.is_receiving()) return close();
    // A request that does not come to its end (slow loris). The pending read must end too.
    reader_.cancel();
    reader_.stop();
    on_refused(too_slow(context_->options.request_timeout_ms));
}

void Session::drain() {
    close_after_ = true;
    if (reader_.is_idle()) close();
}

void Session::close() {
    if (state_ == State::kClosed) return;
    const bool is_whole = state_ != State::kWriting;
    state_ = State::kClosed;
    reader_.stop();
    writer_.stop();
    reader_.release_budget();
    stream_.close(is_whole);
    ticket_.reset();
    worker_->remove(this);
}

// --- the route's turn ----------------------------------------------------------------------------

void Session::on_request() {
    state_ = State::kAnswering;
    Admission& admission = reader_.admission();
    if (admission.refusal) return respond(std::move(*admission.refusal));
    if (is_of_agent(request()->principal)) ticket_->leave_share();
    if (admission.sink) return admission.sink->finish(make_responder());
    if (request()->header("Content-Encoding") == "gzip") return decompress_then_dispatch();
    dispatch();
}

Responder Session::make_responder() {
    ResponderOptions options;
    options.may_compress = (!endpoints_.is_loopback || context_->options.compress_for_loopback) &&
                           accepts_gzip(request()->header("Accept-Encoding"));
    return responder_to(shared_from_this(), worker_, options);
}

void Session::dispatch() {
    reader_.admission().route->handler(reader_.request(), make_responder());
}

void Session::decompress_then_dispatch() {
    context_->pool->post([self = shared_from_this(), share = reader_.body_share()] {
        Result<std::string> body =
            gunzip(self->request()->body, self->context_->options.json_body_bytes_max,
                   [&share](std::size_t bytes) { return share->grow_to(bytes); });
        self->worker_->post([self, body = std::move(body)]() mutable {
            if (self->state_ != State::kAnswering) return;
            if (!body && body.error().code == Code::kRequestLimitExceeded)
                return self->respond(try_later(body.error().message));
            if (!body) return self->respond(error_response(body.error()));
            self->reader_.request()->body = std::move(body).value();
            self->dispatch();
        });
    });
}

void Session::answer(Response response) {
    if (state_ != State::kAnswering) return;
    reader_.admission().sink.reset();
    respond(std::move(response));
}

void Session::on_refused(Response response) {
    state_ = State::kAnswering;
    close_after_ = true;
    unread_input_ = true;
    respond(std::move(response));
}

// --- the response's turn -------------------------------------------------------------------------

void Session::count(int status) {
    HttpStatistics* const statistics = context_->options.statistics.get();
    if (statistics == nullptr) return;
    std::chrono::duration<double> time{0};
    if (request() != nullptr) time = std::chrono::steady_clock::now() - reader_.received();
    statistics->count(worker_->index(), reader_.admission().route, status, time.count());
}

void Session::respond(Response response) {
    if (!writer_.reserve(response))
        response = try_later(
            "Clients have not read the large answers that the server holds for "
            "them, and it holds no more. Try again later.");
    if (worker_->is_draining() || !reader_.keep_alive()) close_after_ = true;
    if (become_stream(response)) return;
    const int status = writer_.prepare(std::move(response), request(), !close_after_);
    count(status);
    state_ = State::kWriting;
    writer_.start();
}

/// Hands the socket over if the body is made while it is sent.
bool Session::become_stream(Response& response) {
    const Method method = request() != nullptr ? request()->method : Method::kPost;
    if (const auto* body = std::get_if<EventStreamBody>(&response.special);
        body != nullptr && method == Method::kGet) {
        HeadOptions head;
        head.keep_alive = false;
        std::string text;
        append_head(text, response, head);
        serve_event_stream(release_stream(), worker_, context_, std::move(ticket_),
                           body->subscription, std::move(text));
        return true;
    }
    if (const auto* body = std::get_if<StreamBody>(&response.special);
        body != nullptr && method != Method::kHead) {
        HeadOptions head{response.status, {}, false};
        const bool is_chunked = reader_.understands_chunks();
        if (is_chunked) response.headers.emplace_back("Transfer-Encoding", "chunked");
        std::string text;
        append_head(text, response, head);
        serve_body_stream(release_stream(), worker_, context_, std::move(ticket_),
                          {body->source, std::move(text), is_chunked});
        return true;
    }
    return false;
}

/// The connection continues as a stream, still counted; the session ends.
ClientStream Session::release_stream() {
    count(200);
    ClientStream stream = std::move(stream_);
    state_ = State::kClosed;
    reader_.release_budget();
    const auto self = shared_from_this();
    worker_->remove(this);
    return stream;
}

void Session::on_written() {
    if (!close_after_) {
        state_ = State::kReading;
        return reader_.start_next();
    }
    state_ = State::kLingering;
    if (!unread_input_) return close();
    stream_.end_sending();
    reader_.linger();
}

}  // namespace

void serve_connection(ClientStream stream, std::shared_ptr<Worker> worker,
                      std::shared_ptr<ServerContext> context,
                      std::unique_ptr<ConnectionTicket> ticket, std::optional<Response> refusal) {
    std::make_shared<Session>(std::move(stream), std::move(worker), std::move(context),
                              std::move(ticket))
        ->start(std::move(refusal));
}

}  // namespace tune::tracker
