// A piece is asked for when the one before is with the kernel, so a slow client holds one piece and
// its source rests. A source that fails in the middle closes the connection without the last chunk,
// which is how a client learns that the body is not whole.

#include "tracker/http/body_stream.h"

#include <sys/socket.h>

#include <array>
#include <cstdio>

#include "tracker/http/session/session_limits.h"
#include "tracker/http/until_end.h"

namespace tune::tracker {
namespace {

using boost::system::error_code;

/// How long the client may take to close after the end; closing first, with something of its
/// unread, would reset the connection and could destroy the body's end on its way.
constexpr int kCloseWait_ms = 2000;

class BodyStream final : public Connection, public std::enable_shared_from_this<BodyStream> {
public:
    BodyStream(ClientStream stream, std::shared_ptr<Worker> worker,
               std::shared_ptr<ServerContext> context, std::unique_ptr<ConnectionTicket> ticket,
               StreamedResponse answer)
        : stream_(std::move(stream)),
          worker_(std::move(worker)),
          context_(std::move(context)),
          ticket_(std::move(ticket)),
          source_(std::move(answer.source)),
          out_(std::move(answer.head)),
          is_chunked_(answer.is_chunked) {}

    void start() {
        worker_->add(shared_from_this());
        rest_ = out_;
        write();
    }

    void tick(std::int64_t now_ms) override {
        if (now_ms >= deadline_ms_) close();
    }

    void drain() override {}  // the answer is under way

    void close() override {
        if (is_closed_) return;
        is_closed_ = true;
        source_.reset();
        stream_.close(is_sent_);
        ticket_.reset();
        worker_->remove(this);
    }

private:
    void ask() {
        deadline_ms_ = kNoDeadline;  // the source has limits of its own
        source_->read([self = shared_from_this()](Result<std::string> piece) {
            self->worker_->post([self, piece = std::move(piece)]() mutable {
                if (!self->is_closed_) self->on_piece(std::move(piece));
            });
        });
    }

    void on_piece(Result<std::string> piece) {
        if (!piece) return close();
        is_last_ = piece->empty();
        out_.clear();
        if (is_chunked_) {
            std::array<char, 24> size{};
            std::snprintf(size.data(), size.size(), "%zx\r\n", piece->size());
            out_ = size.data();
        }
        out_ += *piece;
        if (is_chunked_) out_ += "\r\n";
        rest_ = out_;
        if (rest_.empty()) return finish();
        write();
    }

    void write() {
        deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
        stream_.async_write_some(
            rest_, [self = shared_from_this()](const error_code& ec, std::size_t count) {
                self->on_written(ec, count);
            });
    }

    void on_written(const error_code& ec, std::size_t count) {
        if (is_closed_) return;
        if (ec) return close();
        rest_.remove_prefix(count);
        if (!rest_.empty()) return write();
        if (is_last_) return finish();
        ask();
    }

    void finish() {
        is_sent_ = true;
        source_.reset();
        stream_.end_sending();
        deadline_ms_ = Worker::now_ms() + kCloseWait_ms;
        close_at_end(shared_from_this(), stream_, dropped_);
    }

    ClientStream stream_;
    std::shared_ptr<Worker> worker_;
    std::shared_ptr<ServerContext> context_;
    std::unique_ptr<ConnectionTicket> ticket_;
    std::shared_ptr<BodySource> source_;
    std::string out_;
    std::string_view rest_;  // of out_
    const bool is_chunked_;
    DroppedBytes dropped_{};
    bool is_last_ = false;
    bool is_sent_ = false;  // to its end
    bool is_closed_ = false;
    std::int64_t deadline_ms_ = kNoDeadline;
};

}  // namespace

void serve_body_stream(ClientStream stream, std::shared_ptr<Worker> worker,
                       std::shared_ptr<ServerContext> context,
                       std::unique_ptr<ConnectionTicket> ticket, StreamedResponse answer) {
    std::make_shared<BodyStream>(std::move(stream), std::move(worker), std::move(context),
                                 std::move(ticket), std::move(answer))
        ->start();
}

}  // namespace tune::tracker
