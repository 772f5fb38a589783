// A page is one snapshot. A stream of lines fixes its list of rows in one snapshot and reads the
// runs of each piece in another: the list is consistent, the runs are as new as they can be, and
// one that was purged meanwhile is left out.

#include "tracker/api/mlflow/run_search.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "base/limits.h"
#include "tracker/api/http/body_source.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/run_serializer.h"
#include "tracker/api/mlflow/withheld.h"
#include "tracker/store/reads/runs/read_runs.h"
#include "tracker/store/reads/search_page.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kJsonLines = "application/x-ndjson";

struct SearchRequest {
    SearchRuns query;
    RunFields fields;
    std::optional<std::int64_t> max_results;
};

Result<RunFields> read_fields(const Request& request, const Message& message) {
    TUNE_TRY(names, message.texts("fields"));
    TUNE_TRY(fields, parse_run_fields(names));
    withhold(fields, request.viewer);
    return fields;
}

Result<SearchRequest> parse_search(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    SearchRequest parsed;
    SearchRuns& query = parsed.query;
    TUNE_TRY(experiment_ids, message.experiment_ids());
    TUNE_TRY(filter, message.text("filter"));
    TUNE_TRY(view_type, message.view_type("run_view_type"));
    TUNE_TRY(max_results, message.integer("max_results"));
    TUNE_TRY(order_by, message.texts("order_by"));
    TUNE_TRY(page_token, message.text("page_token"));
    TUNE_TRY(fields, read_fields(request, message));
    TUNE_TRY(readable,
             readable_experiments(store, request, std::move(experiment_ids), ResourceType::kRun));
    query.experiment_ids = std::move(readable);
    query.filter = std::move(filter);
    query.view_type = view_type.value_or(ViewType::kActiveOnly);
    query.max_results = max_results.value_or(query.max_results);
    query.order_by = std::move(order_by);
    query.page_token = std::move(page_token);
    parsed.fields = std::move(fields);
    parsed.max_results = max_results;
    return parsed;
}

/// MLflow checks this limit of runs/search with the types, before the store.
Error too_many_wanted(std::int64_t max_results) {
    return {Code::kInvalidParameterValue,
            "Invalid value " + std::to_string(max_results) +
                " for parameter 'max_results' supplied:  Hint: Value was of type 'int'. See the "
                "API docs for more information about request parameters."};
}

Result<std::string> page_response(const Store& store, const SearchRequest& wanted) {
    if (wanted.query.max_results > kSearchResultsMax)
        return too_many_wanted(wanted.query.max_results);
    return store.snapshot([&wanted](const ReadSnapshot& snapshot) -> Result<std::string> {
        TUNE_TRY(found, find_runs(snapshot, wanted.query));
        JsonWriter out;
        out.begin_object();
        // MLflow leaves out an empty list.
        if (!found.rows.empty()) out.key("runs").begin_array();
        TUNE_TRY_VOID(visit_runs(snapshot, found.rows, wanted.fields,
                                 [&out](std::size_t, const RunView& run) {
                                     write_run(out, run);
                                     return true;
                                 }));
        if (!found.rows.empty()) out.end_array();
        if (!found.next_page_token.empty()) out.field("next_page_token", found.next_page_token);
        out.end_object();
        return out.take();
    });
}

// --- JSON lines ----------------------------------------------------------------------------------

/// One of kRunStreamsMax.
class StreamPlace {
public:
    explicit StreamPlace(std::shared_ptr<std::atomic<int>> count)
        : count_(std::move(count)), is_taken_(count_->fetch_add(1) < kRunStreamsMax) {}
    ~StreamPlace() { count_->fetch_sub(1); }
    StreamPlace(const StreamPlace&) = delete;
    StreamPlace& operator=(const StreamPlace&) = delete;
    [[nodiscard]] bool is_taken() const { return is_taken_; }

private:
    const std::shared_ptr<std::atomic<int>> count_;
    const bool is_taken_;
};

class RunStream final : public BodySource, public std::enable_shared_from_this<RunStream> {
public:
    RunStream(Store& store, std::unique_ptr<StreamPlace> place, RunFields fields,
              std::vector<std::int64_t> rows)
        : store_(store),
          place_(std::move(place)),
          fields_(std::move(fields)),
          rows_(std::move(rows)) {}

    void read(std::function<void(Result<std::string>)> done) override {
        const auto shared =
            std::make_shared<std::function<void(Result<std::string>)>>(std::move(done));
        const bool posted = store_.post_read(
            [self = shared_from_this(), shared] { (*shared)(self->next_piece()); });
        if (!posted) (*shared)(too_busy());
    }

private:
    /// Lines up to kRunStreamPieceBytes and the one that passes it; empty after the last.
    Result<std::string> next_piece() {
        return store_.snapshot([this](sqlite::Connection& connection) -> Result<std::string> {
            JsonWriter out;
            const std::span rest = std::span(rows_).subspan(at_);
            std::size_t done_count = rest.size();
            const auto write = [&](std::size_t index, const RunView& run) {
                write_run(out, run);
                out.end_line();
                if (out.size() < kRunStreamPieceBytes) return true;
                done_count = index + 1;
                return false;
            };
            TUNE_TRY_VOID(visit_runs(connection, rest, fields_, write));
            at_ += done_count;
            return out.take();
        });
    }

    Store& store_;
    const std::unique_ptr<StreamPlace> place_;
    const RunFields fields_;
    const std::vector<std::int64_t> rows_;
    std::size_t at_ = 0;
};

Result<Response> stream_response(Store& store,
                                 const std::shared_ptr<std::atomic<int>>& stream_count,
                                 SearchRequest wanted) {
    if (!wanted.query.page_token.empty())
        return Error{Code::kInvalidParameterValue,
                     "A search that returns JSON lines has no pages: leave 'page_token' out."};
    const std::int64_t limit =
        std::min(wanted.max_results.value_or(kStreamedRunsMax), kStreamedRunsMax);
    TUNE_TRY_VOID(check_max_results(limit, kStreamedRunsMax));
    auto place = std::make_unique<StreamPlace>(stream_count);
    if (!place->is_taken())
        return Error{Code::kRequestLimitExceeded, "As many searches as the server can stream (" +
                                                      std::to_string(kRunStreamsMax) +
                                                      ") are under way. Try again later."};
    TUNE_TRY(rows, store.snapshot([&](const ReadSnapshot& snapshot) {
        return find_all_runs(snapshot, std::move(wanted.query), limit);
    }));
    Response response;
    response.content_type = kJsonLines;
    response.special = StreamBody{std::make_shared<RunStream>(
        store, std::move(place), std::move(wanted.fields), std::move(rows))};
    return response;
}

bool wants_lines(const Request& request) {
    return request.header("Accept").find(kJsonLines) != std::string_view::npos;
}

}  // namespace

Result<std::string> get_run_response(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(fields, read_fields(request, message));
    return store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
        TUNE_TRY(row, find_run_row(connection, run_id));
        if (row == 0) return no_run(run_id);
        JsonWriter out;
        out.begin_object().key("run");
        const auto write = [&out](std::size_t, const RunView& run) {
            write_run(out, run);
            return true;
        };
        TUNE_TRY_VOID(visit_runs(connection, std::span(&row, 1), fields, write));
        out.end_object();
        return out.take();
    });
}

Handler search_runs_handler(Store& store) {
    const auto stream_count = std::make_shared<std::atomic<int>>(0);
    return
        [&store, stream_count](const std::shared_ptr<Request>& request, const Responder& respond) {
            const bool posted = store.post_read([&store, stream_count, request, respond] {
                Result<SearchRequest> wanted = parse_search(store, *request);
                if (!wanted) return respond(error_response(wanted.error()));
                if (!wants_lines(*request))
                    return respond(response_of(page_response(store, *wanted)));
                Result<Response> answer = stream_response(store, stream_count, std::move(*wanted));
                respond(answer ? std::move(*answer) : error_response(answer.error()));
            });
            if (!posted) respond(error_response(too_busy()));
        };
}

}  // namespace tune::tracker
