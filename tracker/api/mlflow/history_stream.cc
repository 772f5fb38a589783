// Each piece is made in a snapshot of its own, behind the last point sent, so a stream holds no
// snapshot while a slow client reads (which would keep the write-ahead log from being emptied). One
// piece is ahead of the network, never more.

#include "tracker/api/mlflow/history_stream.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "tracker/api/http/body_source.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/run_search.h"
#include "tracker/api/mlflow/serializers.h"
#include "tracker/store/metrics/metric_series.h"
#include "tracker/store/metrics/read_metrics.h"
#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {
namespace {

struct HistoryRequest {
    std::string run_id;
    std::string key;
    std::optional<std::int64_t> max_results;
    std::string page_token;
};

Result<HistoryRequest> parse(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(key, message.required_text("metric_key"));
    TUNE_TRY(max_results, message.integer("max_results"));
    TUNE_TRY(page_token, message.text("page_token"));
    return HistoryRequest{std::move(run_id), std::move(key), max_results, std::move(page_token)};
}

/// The pieces of one answer. The next one is made while the last one is sent. Each piece is a
/// snapshot of its own: points that come behind the last one sent are in the answer, earlier ones
/// are not.
class HistoryStream final : public BodySource, public std::enable_shared_from_this<HistoryStream> {
public:
    HistoryStream(Store& store, std::shared_ptr<std::atomic<int>> stream_count,
                  HistoryRequest wanted)
        : store_(store), stream_count_(std::move(stream_count)), wanted_(std::move(wanted)) {
        JsonWriter key;
        key.begin_object().field("key", wanted_.key);
        point_begin_ = key.take() + R"(,"value":)";
    }
    ~HistoryStream() override { stream_count_->fetch_sub(1); }
    HistoryStream(const HistoryStream&) = delete;
    HistoryStream& operator=(const HistoryStream&) = delete;

    void read(std::function<void(Result<std::string>)> done) override {
        std::optional<Result<std::string>> piece;
        {
            const std::lock_guard lock(mutex_);
            piece = std::exchange(ready_, std::nullopt);
            if (!piece) waiting_ = done;
        }
        if (!piece) return ask_if_idle();
        const bool is_more = *piece && !(*piece)->empty();
        if (is_more) ask_if_idle();
        done(std::move(*piece));
    }

private:
    /// Has the next piece made on a reader thread, unless it is under way.
    void ask_if_idle() {
        {
            const std::lock_guard lock(mutex_);
            if (is_busy_) return;
            is_busy_ = true;
        }
        const bool posted =
            store_.post_read([self = shared_from_this()] { self->take(self->next_piece()); });
        if (!posted) take(too_busy());
    }

    void take(Result<std::string> piece) {
        std::function<void(Result<std::string>)> done;
        {
            const std::lock_guard lock(mutex_);
            is_busy_ = false;
            done = std::exchange(waiting_, nullptr);
            if (!done) ready_ = std::move(piece);
        }
        if (!done) return;
        const bool is_more = piece && !piece->empty();
        if (is_more) ask_if_idle();
        done(std::move(piece));
    }

    /// Only one is made at a time. Empty after the end.
    Result<std::string> next_piece() {
        if (is_at_end_) return std::string();
        return store_.snapshot([this](sqlite::Connection& connection) -> Result<std::string> {
            // Looked up each time: the run may be removed for good meanwhile.
            TUNE_TRY(series, find_series(connection, wanted_.run_id, wanted_.key));
            if (series.run_row == 0) return no_run(wanted_.run_id);
            JsonWriter out;
            if (!after_) out.begin_object().key("metrics").begin_array();
            bool is_cut = false;
            const auto write = [&](const Point& point) {
                if (out.size() >= kHistoryPieceBytes) {
                    is_cut = true;
                    return false;
                }
                // The comma of the list; a stream's pieces know nothing of each other.
                out.raw(is_first_ ? "" : ",").raw(point_begin_).real(point.value);
                out.raw(R"(,"timestamp":)").integer(point.timestamp_ms);
                out.raw(R"(,"step":)").integer(point.step).raw("}");
                is_first_ = false;
                last_ = point;
                return true;
            };
            TUNE_TRY_VOID(for_each_point(connection, series, after_, write));
            after_ = last_;
            is_at_end_ = !is_cut;
            if (is_at_end_) out.raw("]}");
            return out.take();
        });
    }

    Store& store_;
    const std::shared_ptr<std::atomic<int>> stream_count_;
    const HistoryRequest wanted_;
    std::string point_begin_;

    // Of whoever makes the piece.
    std::optional<Point> after_;
    Point last_;
    bool is_first_ = true;
    bool is_at_end_ = false;

    std::mutex mutex_;
    bool is_busy_ = false;                              // guarded by mutex_, as the rest
    std::optional<Result<std::string>> ready_;          // made, and not asked for yet
    std::function<void(Result<std::string>)> waiting_;  // asked for, and not made yet
};

Result<bool> is_long(const Store& store, const HistoryRequest& wanted) {
    if (wanted.max_results || !wanted.page_token.empty()) return false;
    return store.snapshot([&](sqlite::Connection& connection) -> Result<bool> {
        TUNE_TRY(series, find_series(connection, wanted.run_id, wanted.key));
        TUNE_TRY(count, count_points(connection, series));
        return count >= kStreamedPointsMin;
    });
}

Result<Response> answer(Store& store, const std::shared_ptr<std::atomic<int>>& stream_count,
                        const Request& request) {
    TUNE_TRY(wanted, parse(request));
    TUNE_TRY(streamed, is_long(store, wanted));
    if (!streamed) {
        TUNE_TRY(page, store.metric_history(wanted.run_id, wanted.key, wanted.max_results,
                                            wanted.page_token));
        return response_of(metrics_response(page));
    }
    if (stream_count->fetch_add(1) >= kRunStreamsMax) {
        stream_count->fetch_sub(1);
        return Error{Code::kRequestLimitExceeded,
                     "As many whole histories as the server can stream (" +
                         std::to_string(kRunStreamsMax) +
                         ") are under way. Try again later, or ask for pages by 'max_results'."};
    }
    Response response;
    response.content_type = "application/json";
    response.special =
        StreamBody{std::make_shared<HistoryStream>(store, stream_count, std::move(wanted))};
    return response;
}

}  // namespace

Handler history_handler(Store& store) {
    const auto stream_count = std::make_shared<std::atomic<int>>(0);
    return
        [&store, stream_count](const std::shared_ptr<Request>& request, const Responder& respond) {
            const bool posted = store.post_read([&store, stream_count, request, respond] {
                Result<Response> result = answer(store, stream_count, *request);
                respond(result ? std::move(*result) : error_response(result.error()));
            });
            if (!posted) respond(error_response(too_busy()));
        };
}

}  // namespace tune::tracker
