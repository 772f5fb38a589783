// One buffer, one pending read. The parser consumes the buffer's bytes in place; what it leaves is
// the start of the next request, which a client may send ahead. While a body waits for its sink, or
// the client for its 100 Continue, nothing is read: the kernel's window slows the client down, and
// memory stays at one buffer per connection whatever the body's size. The same holds while it is
// found out who asks: a body is read only for those who may send it.
//
// A refused request with a small body is read to its end, so that the connection lives on; any
// other refusal closes it, after lingering (session_limits.h).

#include "tracker/http/session/request_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tracker/http/protocol/response_head.h"

namespace tune::tracker {

using boost::system::error_code;

RequestReader::RequestReader(ClientStream& stream, std::shared_ptr<Worker> worker,
                             std::shared_ptr<ServerContext> context, const Endpoints& endpoints,
                             SessionEvents& session)
    : stream_(stream),
      worker_(std::move(worker)),
      context_(std::move(context)),
      endpoints_(endpoints),
      session_(session),
      parser_(context_->options.header_bytes_max) {}

void RequestReader::start() {
    state_ = State::kReading;
    deadline_ms_ = Worker::now_ms() + context_->options.idle_timeout_ms;
    if (worker_->is_draining()) return session_.on_broken();
    read();
}

void RequestReader::start_next() {
    release_budget();
    input_.shrink();
    request_.reset();
    admission_ = {};
    parser_.reset();
    if (input_.pending().empty()) return start();
    state_ = State::kReading;
    extend_deadline();
    parse();
}

void RequestReader::linger() {
    state_ = State::kLingering;
    linger_end_ms_ = Worker::now_ms() + kLingerTotal_ms;
    drop_input();
}

void RequestReader::drop_input() {
    deadline_ms_ = std::min(Worker::now_ms() + kLinger_ms, linger_end_ms_);
    input_.drop_pending();
    read();
}

void RequestReader::stop() {
    state_ = State::kStopped;
    deadline_ms_ = kNoDeadline;
    admission_.sink.reset();
}

void RequestReader::cancel() {
    stream_.cancel();
}

void RequestReader::extend_deadline() {
    deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
}

// --- bytes ---------------------------------------------------------------------------------------

void RequestReader::read() {
    if (parser_.has_body() && input_.was_filled()) grow_input();
    stream_.async_read_some(input_.room(),
                            [this, self = session_.keep_alive()](
                                const error_code& ec, std::size_t count) { on_read(ec, count); });
}

/// A client that sends faster than it is read gets a larger buffer.
void RequestReader::grow_input() {
    if (input_.size() < kBodyReadBytes) return input_.grow(kBodyReadBytes);
    if (has_large_buffer_ || input_.size() >= kTransferBytes) return;
    has_large_buffer_ = context_->take_large_buffer();
    if (has_large_buffer_) input_.grow(kTransferBytes);
}

void RequestReader::on_read(const error_code& ec, std::size_t count) {
    input_.add(count);
    if (state_ == State::kLingering && !ec) return drop_input();
    if (state_ != State::kReading) {
        if (state_ == State::kLingering) session_.on_broken();
        return;
    }
    if (ec) return session_.on_broken();  // also in the middle of a request, which is then dropped
    if (!parser_.started()) extend_deadline();
    parse();
}

/// Goes through the input until something must be waited for.
void RequestReader::parse() {
    for (;;) {
        std::size_t consumed = 0;
        const RequestParser::Progress progress = parser_.feed(input_.pending(), consumed);
        input_.consume(consumed);
        switch (progress) {
            case RequestParser::Progress::kNeedMore: return read();
            case RequestParser::Progress::kHeader:
                if (!on_header()) return;
                break;
            case RequestParser::Progress::kChunk:
                if (!on_chunk()) return;
                break;
            case RequestParser::Progress::kDone: return on_whole();
            case RequestParser::Progress::kError:
                return refuse(parse_error_response(parser_.error_status(), parser_.error_text()));
        }
    }
}

void RequestReader::resume() {
    state_ = State::kReading;
    parse();
}

// --- head ----------------------------------------------------------------------------------------

/// Decides on the request by its head. False: something must be waited for, or it is refused.
bool RequestReader::on_header() {
    request_ = parser_.request();
    received_ = std::chrono::steady_clock::now();
    request_->remote_address = endpoints_.remote_address;
    request_->is_encrypted = endpoints_.is_encrypted;
    keep_alive_ = parser_.keep_alive();
    admission_ = admit(*request_, parser_.content_length(), endpoints_, *context_);
    if (admission_.refusal) return drop_body();
    if (!context_->router.needs_proof(*request_, *admission_.route)) return on_admitted();
    await_proof();
    return false;
}

/// A login that nobody knows yet takes a hash to check. Until then the body stays with the kernel.
void RequestReader::await_proof() {
    state_ = State::kPaused;
    deadline_ms_ = kNoDeadline;
    context_->router.prove(request_, *admission_.route,
                           [this, self = session_.keep_alive()](std::optional<Response> refusal) {
                               worker_->post([this, self, refusal = std::move(refusal)]() mutable {
                                   on_proved(std::move(refusal));
                               });
                           });
}

void RequestReader::on_proved(std::optional<Response> refusal) {
    if (state_ != State::kPaused) return;
    extend_deadline();
    admission_.refusal = std::move(refusal);
    const bool goes_on = admission_.refusal ? drop_body() : on_admitted();
    if (goes_on) resume();
}

/// It is known who asks. False: as on_header().
bool RequestReader::on_admitted() {
    open_sink(admission_, request_);
    if (admission_.refusal) return drop_body();
    body_mode_ = admission_.sink ? BodyMode::kStream : BodyMode::kCollect;
    if (!admission_.sink) parser_.limit_body(context_->options.json_body_bytes_max);
    if (!parser_.expects_continue()) return true;
    send_continue();
    return false;
}

/// Gets past the body of a refused request if it is small. False: it is not, and the session ends.
bool RequestReader::drop_body() {
    if (body_is_small()) {
        body_mode_ = BodyMode::kDrop;
        return true;
    }
    refuse(std::move(*admission_.refusal));
    return false;
}

bool RequestReader::body_is_small() const {
    if (!parser_.has_body()) return true;
    const auto length = parser_.content_length();
    return length && *length <= kDrainedBodyMax && !parser_.expects_continue();
}

void RequestReader::send_continue() {
    state_ = State::kPaused;
    extend_deadline();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    stream_.async_write_some(
        kContinue, [this, self = session_.keep_alive()](const error_code& ec, std::size_t) {
            if (state_ != State::kPaused) return;
            if (ec) return session_.on_broken();
            resume();
        });
}

/// The session answers and closes.
void RequestReader::refuse(Response response) {
    stop();
    session_.on_refused(std::move(response));
}

// --- body ----------------------------------------------------------------------------------------

/// Takes one piece of the body. False: something must be waited for.
bool RequestReader::on_chunk() {
    const std::string_view chunk = parser_.chunk();
    switch (body_mode_) {
        case BodyMode::kDrop: return true;
        case BodyMode::kCollect: return collect(chunk);
        case BodyMode::kStream: stream(chunk); return false;
    }
    return true;
}

bool RequestReader::collect(std::string_view chunk) {
    std::string& body = request_->body;
    if (body.empty())
        body.reserve(std::min<std::size_t>(
            static_cast<std::size_t>(parser_.content_length().value_or(0)), kTransferBytes));
    body.append(chunk);
    if (body.size() <= kDrainedBodyMax) return true;
    if (body_share()->grow_to(body.size())) return true;
    Response response =
        error_response({Code::kRequestLimitExceeded,
                        "The server is receiving as many large requests as it can hold. Try again "
                        "later."});
    response.headers.emplace_back("Retry-After", "1");
    refuse(std::move(response));
    return false;
}

void RequestReader::stream(std::string_view chunk) {
    state_ = State::kPaused;
    deadline_ms_ = kNoDeadline;
    admission_.sink->write(chunk, [this, self = session_.keep_alive()](Result<void> result) {
        worker_->post([this, self, result = std::move(result)] {
            if (state_ != State::kPaused) return;
            if (!result) return refuse(error_response(result.error()));
            extend_deadline();
            resume();
        });
    });
}

void RequestReader::on_whole() {
    state_ = State::kStopped;
    deadline_ms_ = kNoDeadline;
    session_.on_request();
}

const std::shared_ptr<MemoryShare>& RequestReader::body_share() {
    if (!body_share_) body_share_ = std::make_shared<MemoryShare>(context_->body_budget);
    return body_share_;
}

void RequestReader::release_budget() {
    body_share_.reset();
    if (std::exchange(has_large_buffer_, false)) context_->large_buffers.fetch_sub(1);
}

}  // namespace tune::tracker
