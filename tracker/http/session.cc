#include "tracker/http/session.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <vector>

#include "tracker/api/ui/event_hub.h"
#include "tracker/http/answer.h"
#include "tracker/http/body_stream.h"
#include "tracker/http/event_stream.h"
#include "tracker/http/file_sender.h"
#include "tracker/http/protocol/byte_range.h"
#include "tracker/http/protocol/content_coding.h"
#include "tracker/http/protocol/request_parser.h"
#include "tracker/http/protocol/response_head.h"
#include "tracker/http/session_limits.h"

namespace tune::tracker {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

class Session final : public Connection,
                      public AnswerTarget,
                      public std::enable_shared_from_this<Session> {
public:
    Session(tcp::socket socket, std::shared_ptr<Worker> worker,
            std::shared_ptr<ServerContext> context)
        : socket_(std::move(socket)),
          worker_(std::move(worker)),
          context_(std::move(context)),
          parser_(context_->options.header_bytes_max),
          input_(kReadBytes) {}

    void start(bool overloaded);
    void tick(std::int64_t now_ms) override;
    void drain() override;
    void close() override;
    void answer(Response response) override;

private:
    enum class State { kReading, kWaiting, kWriting, kLingering, kClosed };
    enum class BodyMode { kCollect, kStream, kDrop };

    void read();
    void on_read(const error_code& ec, std::size_t count);
    void process();
    bool on_header();
    bool on_chunk();
    void on_request();
    void on_fault();
    bool collect(std::string_view chunk);
    void stream(std::string_view chunk);
    void decompress_then_dispatch();
    void dispatch();
    [[nodiscard]] bool body_is_small() const;
    bool refuse(Response response);
    void refuse_and_close(Response response);

    void count(int status);
    void write_response(Response response);
    void write_event_stream(const EventStreamBody& body, const Response& response);
    void write_stream(const StreamBody& body, Response& response);
    tcp::socket let_go();
    void write_more();
    void on_written(const error_code& ec, std::size_t count);
    void send_file_piece();
    void on_file_piece(SendOutcome outcome);
    void on_response_written();
    void linger();
    void next_request();
    void grow_input();
    void shrink_input();
    void release_body_budget();
    Responder make_responder();

    std::string_view pending_input() const {
        return {input_.data() + input_begin_, input_end_ - input_begin_};
    }
    bool is_head() const { return request_ && request_->method == Method::kHead; }

    tcp::socket socket_;
    std::shared_ptr<Worker> worker_;
    std::shared_ptr<ServerContext> context_;
    RequestParser parser_;
    std::vector<char> input_;
    std::size_t input_begin_ = 0;
    std::size_t input_end_ = 0;

    State state_ = State::kReading;
    BodyMode body_mode_ = BodyMode::kCollect;
    std::shared_ptr<Request> request_;
    const Route* route_ = nullptr;
    std::unique_ptr<BodySink> sink_;
    std::optional<Response> refusal_;
    std::size_t charged_bytes_ = 0;
    std::size_t offered_bytes_ = 0;
    bool last_read_was_full_ = false;
    bool has_large_buffer_ = false;
    std::int64_t deadline_ms_ = kNoDeadline;
    std::int64_t linger_end_ms_ = 0;
    std::chrono::steady_clock::time_point received_;  // the headers of request_
    bool close_after_ = false;
    bool unread_input_ = false;
    std::string remote_address_;
    std::string local_address_;
    bool is_loopback_ = false;

    std::string out_head_;
    std::string out_body_;
    std::string_view out_static_;
    std::array<std::string_view, 2> out_;
    FilePart file_;
};

void Session::start(bool overloaded) {
    error_code ec;
    socket_.set_option(tcp::no_delay(true), ec);
    if (const auto remote = socket_.remote_endpoint(ec); !ec) {
        remote_address_ = remote.address().to_string();
        is_loopback_ = remote.address().is_loopback();
    }
    if (const auto local = socket_.local_endpoint(ec); !ec)
        local_address_ = local.address().to_string();
    worker_->add(shared_from_this());
    if (overloaded) {
        Response response = error_response(
            {Code::kRequestLimitExceeded,
             "The server has " + std::to_string(context_->options.connections_max) +
                 " open connections, which is its limit. Try again later, or reuse connections."});
        response.headers.emplace_back("Retry-After", "1");
        return refuse_and_close(std::move(response));
    }
    deadline_ms_ = Worker::now_ms() + context_->options.idle_timeout_ms;
    if (worker_->is_draining()) return close();
    read();
}

void Session::tick(std::int64_t now_ms) {
    if (now_ms < deadline_ms_) return;
    if (state_ != State::kReading || !parser_.started()) return close();
    // A request that does not come to its end (slow loris). The pending read must not go on.
    error_code ignored;
    socket_.cancel(ignored);
    sink_.reset();
    Response response =
        error_response({Code::kDeadlineExceeded,
                        "The request did not arrive whole within " +
                            std::to_string(context_->options.request_timeout_ms / 1000) + " s."});
    response.status = 408;
    refuse_and_close(std::move(response));
}

void Session::drain() {
    close_after_ = true;
    if (state_ == State::kReading && !parser_.started()) close();
}

void Session::close() {
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    sink_.reset();
    file_ = {};
    release_body_budget();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    context_->connection_closed();
    worker_->remove(this);
}

// --- reading -------------------------------------------------------------------------------------

void Session::read() {
    if (input_begin_ == input_end_) {
        input_begin_ = input_end_ = 0;
    } else if (input_begin_ > 0 && input_end_ == input_.size()) {
        std::copy(input_.begin() + static_cast<std::ptrdiff_t>(input_begin_),
                  input_.begin() + static_cast<std::ptrdiff_t>(input_end_), input_.begin());
        input_end_ -= input_begin_;
        input_begin_ = 0;
    }
    // Headers are limited by the parser, bodies leave the buffer as they come: doubling ends soon.
    if (input_end_ == input_.size()) input_.resize(input_.size() * 2);
    if (parser_.has_body() && last_read_was_full_) grow_input();
    offered_bytes_ = input_.size() - input_end_;
    socket_.async_read_some(boost::asio::buffer(input_.data() + input_end_, offered_bytes_),
                            [self = shared_from_this()](const error_code& ec, std::size_t count) {
                                self->on_read(ec, count);
                            });
}

/// A client that sends faster than it is read gets a larger buffer.
void Session::grow_input() {
    if (input_.size() < kBodyReadBytes) return input_.resize(kBodyReadBytes);
    if (has_large_buffer_ || input_.size() >= kTransferBytes) return;
    has_large_buffer_ = context_->take_large_buffer();
    if (has_large_buffer_) input_.resize(kTransferBytes);
}

void Session::on_read(const error_code& ec, std::size_t count) {
    last_read_was_full_ = count == offered_bytes_;
    if (state_ == State::kLingering && !ec) return linger();
    if (state_ != State::kReading) {
        if (state_ == State::kLingering) close();
        return;
    }
    if (ec) return close();  // also in the middle of a request: the sink vanishes unfinished
    if (!parser_.started()) deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
    input_end_ += count;
    process();
}

/// Goes through the input until something must be waited for.
void Session::process() {
    for (;;) {
        std::size_t consumed = 0;
        const RequestParser::Progress progress = parser_.feed(pending_input(), consumed);
        input_begin_ += consumed;
        switch (progress) {
            case RequestParser::Progress::kNeedMore: return read();
            case RequestParser::Progress::kHeader:
                if (!on_header()) return;
                break;
            case RequestParser::Progress::kChunk:
                if (!on_chunk()) return;
                break;
            case RequestParser::Progress::kDone: return on_request();
            case RequestParser::Progress::kFault: return on_fault();
        }
    }
}

/// Decides on the request by its headers. False: the answer, or a 100, is on its way.
bool Session::on_header() {
    request_ = parser_.request();
    received_ = std::chrono::steady_clock::now();
    request_->remote_address = remote_address_;
    context_->router.strip_prefix(*request_);
    if (!parser_.keep_alive()) close_after_ = true;
    if (auto answer = context_->host_check.objection(*request_, local_address_))
        return refuse(std::move(*answer));
    Response refusal;
    route_ = context_->router.resolve(*request_, refusal);
    if (!route_) return refuse(std::move(refusal));
    const std::string_view coding = request_->header("Content-Encoding");
    const bool is_plain = coding.empty() || coding == "identity";
    if (!is_plain && (route_->body == Body::kStream || coding != "gzip")) {
        Response response = error_response(
            {Code::kBadRequest,
             "This route does not take a body with Content-Encoding " + std::string(coding) + "."});
        response.status = 415;
        return refuse(std::move(response));
    }
    if (route_->body == Body::kStream) {
        body_mode_ = BodyMode::kStream;
        Result<std::unique_ptr<BodySink>> sink = route_->open_sink(request_);
        if (!sink) return refuse(error_response(sink.error()));
        sink_ = std::move(sink).value();
    } else {
        const std::size_t limit = context_->options.json_body_bytes_max;
        if (parser_.content_length().value_or(0) > limit)
            return refuse(error_response(
                {Code::kRequestEntityTooLarge,
                 "The request body has " + std::to_string(*parser_.content_length()) +
                     " bytes; the limit is " + std::to_string(limit) + "."}));
        body_mode_ = BodyMode::kCollect;
        parser_.limit_body(limit);
    }
    if (!parser_.expects_continue()) return true;
    state_ = State::kWaiting;
    deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    socket_.async_write_some(boost::asio::buffer(kContinue.data(), kContinue.size()),
                             [self = shared_from_this()](const error_code& ec, std::size_t) {
                                 if (self->state_ != State::kWaiting) return;
                                 if (ec) return self->close();
                                 self->state_ = State::kReading;
                                 self->process();
                             });
    return false;
}

bool Session::body_is_small() const {
    if (!parser_.has_body()) return true;
    const auto length = parser_.content_length();
    return length && *length <= kDrainedBodyMax && !parser_.expects_continue();
}

/// Answers without the route. Returns whether reading goes on (to get past the request's body).
bool Session::refuse(Response response) {
    sink_.reset();
    if (body_is_small()) {
        body_mode_ = BodyMode::kDrop;
        refusal_ = std::move(response);
        return true;
    }
    refuse_and_close(std::move(response));
    return false;
}

void Session::refuse_and_close(Response response) {
    close_after_ = true;
    unread_input_ = true;
    state_ = State::kWaiting;
    write_response(std::move(response));
}

void Session::on_fault() {
    sink_.reset();
    refuse_and_close(fault_response(parser_.fault_status(), parser_.fault_text()));
}

/// Takes one piece of the body. False: something must be waited for.
bool Session::on_chunk() {
    const std::string_view chunk = parser_.chunk();
    switch (body_mode_) {
        case BodyMode::kDrop: return true;
        case BodyMode::kCollect: return collect(chunk);
        case BodyMode::kStream: stream(chunk); return false;
    }
    return true;
}

bool Session::collect(std::string_view chunk) {
    std::string& body = request_->body;
    if (body.empty())
        body.reserve(std::min<std::size_t>(
            static_cast<std::size_t>(parser_.content_length().value_or(0)), kTransferBytes));
    body.append(chunk);
    const std::size_t above = body.size() > kDrainedBodyMax ? body.size() - charged_bytes_ : 0;
    if (above == 0) return true;
    charged_bytes_ += above;
    if (context_->body_bytes.fetch_add(above) + above <= kBodyBytesTotalMax) return true;
    Response response =
        error_response({Code::kRequestLimitExceeded,
                        "The server is receiving as many large requests as it can hold. Try again "
                        "later."});
    response.headers.emplace_back("Retry-After", "1");
    refuse_and_close(std::move(response));
    return false;
}

void Session::stream(std::string_view chunk) {
    state_ = State::kWaiting;
    deadline_ms_ = kNoDeadline;
    sink_->write(chunk, [self = shared_from_this()](Result<void> result) {
        self->worker_->post([self, result = std::move(result)] {
            if (self->state_ != State::kWaiting) return;
            if (!result) {
                self->sink_.reset();
                return self->refuse_and_close(error_response(result.error()));
            }
            self->state_ = State::kReading;
            self->deadline_ms_ = Worker::now_ms() + self->context_->options.request_timeout_ms;
            self->process();
        });
    });
}

// --- the route's turn ----------------------------------------------------------------------------

void Session::on_request() {
    state_ = State::kWaiting;
    deadline_ms_ = kNoDeadline;
    if (refusal_) {
        write_response(std::move(*refusal_));
        return;
    }
    if (body_mode_ == BodyMode::kStream) return sink_->finish(make_responder());
    if (request_->header("Content-Encoding") == "gzip") return decompress_then_dispatch();
    dispatch();
}

Responder Session::make_responder() {
    AnswerOptions options;
    options.may_compress = (!is_loopback_ || context_->options.compress_for_loopback) &&
                           accepts_gzip(request_->header("Accept-Encoding"));
    return responder_to(shared_from_this(), worker_, options);
}

void Session::dispatch() {
    route_->handler(request_, make_responder());
}

void Session::decompress_then_dispatch() {
    context_->pool->post([self = shared_from_this()] {
        Result<std::string> body =
            gunzip(self->request_->body, self->context_->options.json_body_bytes_max);
        self->worker_->post([self, body = std::move(body)]() mutable {
            if (self->state_ != State::kWaiting) return;
            if (!body) return self->write_response(error_response(body.error()));
            self->request_->body = std::move(body).value();
            self->dispatch();
        });
    });
}

void Session::answer(Response response) {
    if (state_ != State::kWaiting) return;
    sink_.reset();
    write_response(std::move(response));
}

// --- writing -------------------------------------------------------------------------------------

void Session::count(int status) {
    HttpStatistics* const statistics = context_->options.statistics.get();
    if (statistics == nullptr) return;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - received_;
    statistics->count(worker_->index(), route_, status, request_ ? time.count() : 0);
}

void Session::write_response(Response response) {
    if (worker_->is_draining()) close_after_ = true;
    const bool reads = request_ && (request_->method == Method::kGet || is_head());
    if (const auto* stream = std::get_if<EventStreamBody>(&response.special);
        stream && request_->method == Method::kGet)
        return write_event_stream(*stream, response);
    if (const auto* stream = std::get_if<StreamBody>(&response.special); stream && !is_head())
        return write_stream(*stream, response);
    HeadOptions head;
    head.status = response.status;
    head.keep_alive = !close_after_;
    out_static_ = {};
    out_body_.clear();
    if (reads && response.status == 200 &&
        etag_listed(request_->header("If-None-Match"), response.etag)) {
        head.status = 304;
    } else if (const auto* file = std::get_if<FileBody>(&response.special)) {
        file_ = choose_part(*file, *request_, response, head.status);
        head.content_length = file_.end - file_.at;
    } else if (const auto* bytes = std::get_if<StaticBody>(&response.special)) {
        out_static_ = bytes->bytes;
        head.content_length = out_static_.size();
    } else {
        out_body_ = std::move(response.body);
        out_static_ = out_body_;
        head.content_length = out_static_.size();
    }
    if (is_head()) {
        out_static_ = {};
        file_ = {};
    }
    out_head_.clear();
    append_head(out_head_, response, head);
    out_ = {out_head_, out_static_};
    count(head.status);
    state_ = State::kWriting;
    write_more();
}

void Session::write_event_stream(const EventStreamBody& body, const Response& response) {
    HeadOptions head;
    head.keep_alive = false;
    std::string text;
    append_head(text, response, head);
    serve_event_stream(let_go(), worker_, context_, body.subscription, std::move(text));
}

void Session::write_stream(const StreamBody& body, Response& response) {
    HeadOptions head{response.status, {}, false};
    const bool is_chunked = parser_.understands_chunks();
    if (is_chunked) response.headers.emplace_back("Transfer-Encoding", "chunked");
    std::string text;
    append_head(text, response, head);
    serve_body_stream(let_go(), worker_, context_, {body.source, std::move(text), is_chunked});
}

/// The connection goes on as a stream, still counted; the session ends.
tcp::socket Session::let_go() {
    count(200);
    tcp::socket socket = std::move(socket_);
    state_ = State::kClosed;
    release_body_budget();
    const auto self = shared_from_this();
    worker_->remove(this);
    return socket;
}

void Session::write_more() {
    deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
    const std::array buffers = {boost::asio::buffer(out_[0].data(), out_[0].size()),
                                boost::asio::buffer(out_[1].data(), out_[1].size())};
    socket_.async_write_some(buffers,
                             [self = shared_from_this()](const error_code& ec, std::size_t count) {
                                 self->on_written(ec, count);
                             });
}

void Session::on_written(const error_code& ec, std::size_t count) {
    if (state_ != State::kWriting) return;
    if (ec) return close();
    for (std::string_view& part : out_) {
        const std::size_t taken = std::min(count, part.size());
        part.remove_prefix(taken);
        count -= taken;
    }
    if (!out_[0].empty() || !out_[1].empty()) return write_more();
    if (!file_.is_done()) return send_file_piece();
    on_response_written();
}

/// At once when the file is in the page cache; a pool thread waits for the disk otherwise.
void Session::send_file_piece() {
    if (is_cached(file_)) return on_file_piece(send_piece(socket_.native_handle(), file_));
    auto socket = std::make_shared<const UniqueFd>(duplicate_socket(socket_.native_handle()));
    if (!*socket) return close();
    deadline_ms_ = kNoDeadline;
    context_->pool->post([self = shared_from_this(), part = file_, socket] {
        block_sigpipe();
        const SendOutcome outcome = send_piece(socket->get(), part);
        self->worker_->post([self, outcome] {
            if (self->state_ == State::kWriting) self->on_file_piece(outcome);
        });
    });
}

void Session::on_file_piece(SendOutcome outcome) {
    // The file may have become shorter: what was announced cannot be sent any more.
    if (outcome.failed) return close();
    file_.at += outcome.sent_bytes;
    if (file_.is_done()) return on_response_written();
    deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
    socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const error_code& ec) {
        if (self->state_ != State::kWriting) return;
        if (ec) return self->close();
        self->send_file_piece();
    });
}

void Session::on_response_written() {
    file_ = {};
    if (out_body_.capacity() > kTransferBytes) std::string().swap(out_body_);
    if (!close_after_) return next_request();
    if (!unread_input_) return close();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    state_ = State::kLingering;
    linger_end_ms_ = Worker::now_ms() + kLingerTotal_ms;
    linger();
}

void Session::linger() {
    deadline_ms_ = std::min(Worker::now_ms() + kLinger_ms, linger_end_ms_);
    input_begin_ = input_end_ = 0;
    read();
}

/// Back to the first buffer; what the client has sent ahead moves along.
void Session::shrink_input() {
    if (input_.size() == kReadBytes) return;
    std::vector<char> rest(pending_input().begin(), pending_input().end());
    input_begin_ = 0;
    input_end_ = rest.size();
    rest.resize(std::max(rest.size(), kReadBytes));
    input_ = std::move(rest);
}

void Session::next_request() {
    release_body_budget();
    shrink_input();
    request_.reset();
    refusal_.reset();
    route_ = nullptr;
    parser_.reset();
    state_ = State::kReading;
    const bool more = input_begin_ < input_end_;
    deadline_ms_ = Worker::now_ms() + (more ? context_->options.request_timeout_ms
                                            : context_->options.idle_timeout_ms);
    if (more) return process();
    if (worker_->is_draining()) return close();
    read();
}

void Session::release_body_budget() {
    if (charged_bytes_ > 0) context_->body_bytes.fetch_sub(charged_bytes_);
    charged_bytes_ = 0;
    if (std::exchange(has_large_buffer_, false)) context_->large_buffers.fetch_sub(1);
}

}  // namespace

void serve_connection(tcp::socket socket, std::shared_ptr<Worker> worker,
                      std::shared_ptr<ServerContext> context, bool overloaded) {
    std::make_shared<Session>(std::move(socket), std::move(worker), std::move(context))
        ->start(overloaded);
}

}  // namespace tune::tracker
