// Frames are taken from the subscription when the socket is free, never queued here: what a slow
// reader cannot take is bounded by the hub, which replaces it with a `resync`. Comments keep
// proxies from closing a silent stream.

#include "tracker/http/event_stream.h"

#include "tracker/http/session/session_limits.h"
#include "tracker/http/until_end.h"

namespace tune::tracker {
namespace {

using boost::system::error_code;

class EventStream final : public Connection, public std::enable_shared_from_this<EventStream> {
public:
    EventStream(ClientStream stream, std::shared_ptr<Worker> worker,
                std::shared_ptr<ServerContext> context, std::unique_ptr<ConnectionTicket> ticket,
                std::shared_ptr<EventSubscription> subscription, std::string head)
        : stream_(std::move(stream)),
          worker_(std::move(worker)),
          context_(std::move(context)),
          ticket_(std::move(ticket)),
          subscription_(std::move(subscription)),
          out_(std::move(head)) {}

    void start() {
        worker_->add(shared_from_this());
        // The browser waits this long before it connects again.
        out_ += "retry: 1000\n\n";
        subscription_->on_ready([weak = weak_from_this(), worker = worker_] {
            worker->post([weak] {
                if (const auto self = weak.lock()) self->pump();
            });
        });
        close_at_end(shared_from_this(), stream_, dropped_);
        write();
    }

    void tick(std::int64_t now_ms) override {
        if (now_ms >= deadline_ms_) return close();
        if (writing_ || now_ms - last_write_ms_ < context_->options.event_keep_alive_ms) return;
        out_ = ": keep-alive\n\n";
        write();
    }

    void drain() override { close(); }

    void close() override {
        if (closed_) return;
        closed_ = true;
        subscription_->on_ready({});
        subscription_.reset();
        stream_.close(!writing_);
        ticket_.reset();
        worker_->remove(this);
    }

private:
    /// Sends what waits, unless a write is under way; that one's end looks again.
    void pump() {
        if (closed_) return;
        // Also what is half sent: the rest is not the reader's any more.
        if (subscription_->has_ended()) return close();
        if (writing_) return;
        out_.clear();
        for (const auto& frame : subscription_->take()) out_ += *frame;
        if (!out_.empty()) write();
    }

    void write() {
        writing_ = true;
        deadline_ms_ = Worker::now_ms() + context_->options.request_timeout_ms;
        stream_.async_write_some(
            std::string_view(out_),
            [self = shared_from_this()](const error_code& ec, std::size_t count) {
                self->on_written(ec, count);
            });
    }

    void on_written(const error_code& ec, std::size_t count) {
        if (closed_) return;
        if (ec) return close();
        out_.erase(0, count);
        if (!out_.empty()) return write();
        writing_ = false;
        last_write_ms_ = Worker::now_ms();
        deadline_ms_ = kNoDeadline;
        pump();
    }

    ClientStream stream_;
    std::shared_ptr<Worker> worker_;
    std::shared_ptr<ServerContext> context_;
    std::unique_ptr<ConnectionTicket> ticket_;
    std::shared_ptr<EventSubscription> subscription_;
    std::string out_;
    DroppedBytes dropped_{};
    bool writing_ = false;
    bool closed_ = false;
    std::int64_t last_write_ms_ = 0;
    std::int64_t deadline_ms_ = kNoDeadline;
};

}  // namespace

void serve_event_stream(ClientStream stream, std::shared_ptr<Worker> worker,
                        std::shared_ptr<ServerContext> context,
                        std::unique_ptr<ConnectionTicket> ticket,
                        std::shared_ptr<EventSubscription> subscription, std::string head) {
    std::make_shared<EventStream>(std::move(stream), std::move(worker), std::move(context),
                                  std::move(ticket), std::move(subscription), std::move(head))
        ->start();
}

}  // namespace tune::tracker
