// Head and body leave in one gathered write where the kernel takes them; a file follows by
// sendfile. A file in the page cache is sent on the network thread, one piece at a time, so that
// other connections have their turn; what must be read from the disk is sent by a pool thread on a
// second descriptor of the socket, since this one may be closed meanwhile. Through TLS a file is
// read in small pieces instead, which are sent as the body is.

#include "tracker/http/session/response_writer.h"

#include <algorithm>
#include <utility>

#include "tracker/http/protocol/byte_range.h"
#include "tracker/http/protocol/response_head.h"

namespace tune::tracker {

using boost::asio::ip::tcp;
using boost::system::error_code;

ResponseWriter::ResponseWriter(ClientStream& stream, std::shared_ptr<Worker> worker,
                               std::shared_ptr<ServerContext> context, SessionEvents& session)
    : stream_(stream),
      worker_(std::move(worker)),
      context_(std::move(context)),
      session_(session),
      share_(context_->answer_budget) {}

int ResponseWriter::prepare(Response response, const Request* request, bool keep_alive) {
    HeadOptions head;
    head.status = response.status;
    head.keep_alive = keep_alive;
    in_memory_ = {};
    body_.clear();
    file_ = {};
    const bool is_head = request != nullptr && request->method == Method::kHead;
    const bool reads = is_head || (request != nullptr && request->method == Method::kGet);
    if (reads && response.status == 200 &&
        etag_listed(request->header("If-None-Match"), response.etag)) {
        head.status = 304;
    } else if (const auto* file = std::get_if<FileBody>(&response.special)) {
        file_ = choose_part(*file, *request, response, head.status);
        head.content_length = file_.end - file_.at;
    } else {
        if (const auto* bytes = std::get_if<StaticBody>(&response.special)) {
            in_memory_ = bytes->bytes;
        } else {
            body_ = std::move(response.body);
            in_memory_ = body_;
        }
        head.content_length = in_memory_.size();
    }
    if (is_head) {
        in_memory_ = {};
        file_ = {};
    }
    head_.clear();
    append_head(head_, response, head);
    rest_ = {head_, in_memory_};
    return head.status;
}

void ResponseWriter::start() {
    state_ = State::kSending;
    send();
}

void ResponseWriter::stop() {
    state_ = State::kIdle;
    deadline_ms_ = kNoDeadline;
    file_ = {};
    if (body_.capacity() > kTransferBytes) std::string().swap(body_);
    share_.release();
}

void ResponseWriter::extend_deadline() {
    deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
}

void ResponseWriter::send() {
    extend_deadline();
    stream_.async_write_some(
        rest_, [this, self = session_.keep_alive()](const error_code& ec, std::size_t count) {
            on_sent(ec, count);
        });
}

void ResponseWriter::on_sent(const error_code& ec, std::size_t count) {
    if (state_ != State::kSending) return;
    if (ec) return session_.on_broken();
    for (std::string_view& part : rest_) {
        const std::size_t taken = std::min(count, part.size());
        part.remove_prefix(taken);
        count -= taken;
    }
    if (!rest_[0].empty() || !rest_[1].empty()) return send();
    if (file_.is_done()) return finish();
    state_ = State::kSendingFile;
    send_file_piece();
}

/// At once when the file is in the page cache; a pool thread waits for the disk otherwise.
void ResponseWriter::send_file_piece() {
    if (stream_.is_encrypted()) return read_file_piece();
    const int handle = stream_.socket().native_handle();
    if (is_cached(file_, kFilePieceBytes)) return on_file_piece(send_piece(handle, file_));
    auto socket = std::make_shared<const UniqueFd>(duplicate_socket(handle));
    if (!*socket) return session_.on_broken();
    deadline_ms_ = kNoDeadline;
    context_->pool->post([this, self = session_.keep_alive(), part = file_, socket] {
        block_sigpipe();
        const SendOutcome outcome = send_piece(socket->get(), part);
        worker_->post([this, self, outcome] {
            if (state_ == State::kSendingFile) on_file_piece(outcome);
        });
    });
}

void ResponseWriter::on_file_piece(SendOutcome outcome) {
    // The file may have become shorter: what was announced cannot be sent any more.
    if (outcome.failed) return session_.on_broken();
    file_.at += outcome.sent_bytes;
    if (file_.is_done()) return finish();
    extend_deadline();
    stream_.socket().async_wait(tcp::socket::wait_write,
                                [this, self = session_.keep_alive()](const error_code& ec) {
                                    if (state_ != State::kSendingFile) return;
                                    if (ec) return session_.on_broken();
                                    send_file_piece();
                                });
}

/// What is encrypted passes through this process: the next piece of the file becomes the body.
void ResponseWriter::read_file_piece() {
    if (is_cached(file_, kReadPieceBytes)) return on_file_read(read_piece(file_));
    deadline_ms_ = kNoDeadline;
    context_->pool->post([this, self = session_.keep_alive(), part = file_] {
        worker_->post([this, self, piece = read_piece(part)]() mutable {
            if (state_ == State::kSendingFile) on_file_read(std::move(piece));
        });
    });
}

void ResponseWriter::on_file_read(std::string piece) {
    if (piece.empty()) return session_.on_broken();  // as in on_file_piece()
    file_.at += piece.size();
    body_ = std::move(piece);
    rest_ = {body_, {}};
    state_ = State::kSending;
    send();
}

void ResponseWriter::finish() {
    stop();
    session_.on_written();
}

}  // namespace tune::tracker
