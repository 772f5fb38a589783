// metrics/*: histories of one or many runs, and buckets for charts.
//
// get-history-bulk and its interval form follow MLflow's (3.17.2), with its limits on runs and
// points and its choice of steps. The buckets are ours: last, least and greatest value of each part
// of the steps, which the store reads from blocks' summaries, so a chart of a million points costs
// about as much as one of a thousand and still shows its extremes.

#include <algorithm>

#include "tracker/api/app.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/history_stream.h"
#include "tracker/api/mlflow/serializers.h"
#include "tracker/store/metrics/read_metrics.h"

namespace tune::tracker {
namespace {

/// The first of `ids` that are there more than once stays.
std::vector<std::string> without_repeats(const std::vector<std::string>& ids) {
    std::vector<std::string> out;
    for (const std::string& id : ids)
        if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    return out;
}

Result<std::string> get_history_bulk(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(ids, message.texts("run_id"));
    if (ids.empty())
        return Error{Code::kInvalidParameterValue,
                     "GetMetricHistoryBulk request must specify at least one run_id."};
    if (ids.size() > kBulkRunsMax)
        return Error{Code::kInvalidParameterValue,
                     "GetMetricHistoryBulk request cannot specify more than " +
                         std::to_string(kBulkRunsMax) + " run_ids. Received " +
                         std::to_string(ids.size()) + " run_ids."};
    TUNE_TRY(key, message.optional_text("metric_key"));
    if (!key)
        return Error{Code::kInvalidParameterValue,
                     "GetMetricHistoryBulk request must specify a metric_key."};
    TUNE_TRY(asked, message.integer("max_results"));
    const std::int64_t max_results = std::min(asked.value_or(kBulkResultsMax), kBulkResultsMax);
    if (max_results <= 0) return histories_response({}, true);
    TUNE_TRY(histories, store.metric_history_bulk(without_repeats(ids), *key, max_results));
    return histories_response(histories, true);
}

Result<std::optional<StepRange>> read_range(const Message& message) {
    TUNE_TRY(first, message.integer("start_step"));
    TUNE_TRY(last, message.integer("end_step"));
    if (first.has_value() != last.has_value())
        return Error{Code::kInvalidParameterValue,
                     "If either start step or end step are specified, both must be specified."};
    if (!first) return std::optional<StepRange>();
    if (*first > *last)
        return Error{Code::kInvalidParameterValue,
                     "end_step must be greater than start_step. Found start_step=" +
                         std::to_string(*first) + " and end_step=" + std::to_string(*last) + "."};
    return std::optional<StepRange>(StepRange{*first, *last});
}

Result<std::string> get_history_bulk_interval(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(ids, message.texts("run_ids"));
    if (ids.empty())
        return Error{Code::kInvalidParameterValue,
                     std::string("Missing value for required parameter 'run_ids'.") + kSeeDocs};
    if (ids.size() > kBulkRunsMax)
        return Error{Code::kInvalidParameterValue,
                     "GetMetricHistoryBulkInterval request must specify at most " +
                         std::to_string(kBulkRunsMax) + " run_ids. Received " +
                         std::to_string(ids.size()) + " run_ids." + kSeeDocs};
    TUNE_TRY(key, message.required_text("metric_key"));
    TUNE_TRY(max_results, message.integer("max_results"));
    if (max_results && (*max_results < 1 || *max_results > kBulkIntervalResultsMax))
        return Error{Code::kInvalidParameterValue, "max_results must be between 1 and " +
                                                       std::to_string(kBulkIntervalResultsMax) +
                                                       "." + kSeeDocs};
    TUNE_TRY(range, read_range(message));
    TUNE_TRY(histories,
             store.metric_history_bulk_interval(without_repeats(ids), key, range,
                                                max_results.value_or(kBulkIntervalResultsMax)));
    return histories_response(histories, false);
}

// --- beyond MLflow -------------------------------------------------------------------------------

Result<std::optional<SeriesWindow>> read_window(const Message& message) {
    SeriesWindow window;
    TUNE_TRY(first_step, message.integer("start_step"));
    TUNE_TRY(last_step, message.integer("end_step"));
    TUNE_TRY(first_ms, message.integer("start_time"));
    TUNE_TRY(last_ms, message.integer("end_time"));
    window.is_by_time = first_ms.has_value() || last_ms.has_value();
    if (window.is_by_time && (first_step || last_step))
        return Error{Code::kInvalidParameterValue,
                     "Give start_step and end_step, or start_time and end_time, not both."};
    if (!window.is_by_time && !first_step && !last_step) return std::optional<SeriesWindow>();
    window.first = (window.is_by_time ? first_ms : first_step).value_or(window.first);
    window.last = (window.is_by_time ? last_ms : last_step).value_or(window.last);
    if (window.first > window.last)
        return Error{Code::kInvalidParameterValue,
                     "The window ends before it begins: " + std::to_string(window.first) + " to " +
                         std::to_string(window.last) + "."};
    return std::optional<SeriesWindow>(window);
}

void write_bucket(JsonWriter& out, const SeriesBucket& bucket) {
    out.begin_object();
    out.field("first_step", bucket.first_step).field("last_step", bucket.last_step);
    out.field("first_time", bucket.first_timestamp_ms).field("last_time", bucket.last_timestamp_ms);
    out.key("min").real(bucket.min).key("max").real(bucket.max).key("last").real(bucket.last);
    out.field("count", bucket.count).field("nan_count", bucket.nan_count);
    out.end_object();
}

Result<std::string> get_buckets(const Store& store, const Request& request) {
    constexpr std::int64_t kBucketsUnasked = 400;
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(ids, message.texts("run_ids"));
    if (ids.empty() || ids.size() > kBulkRunsMax)
        return Error{Code::kInvalidParameterValue, "Give 1 to " + std::to_string(kBulkRunsMax) +
                                                       " run_ids, got " +
                                                       std::to_string(ids.size()) + "."};
    TUNE_TRY(key, message.required_text("metric_key"));
    TUNE_TRY(buckets, message.integer("buckets"));
    TUNE_TRY(window, read_window(message));
    const std::vector<std::string> run_ids = without_repeats(ids);
    TUNE_TRY(all, store.snapshot([&](sqlite::Connection& connection) {
        return series(connection, run_ids, key, buckets.value_or(kBucketsUnasked), window);
    }));
    JsonWriter out;
    out.begin_object().key("series").begin_array();
    for (const Series& one : all) {
        out.begin_object().field("run_id", one.run_id).key("buckets").begin_array();
        for (const SeriesBucket& bucket : one.buckets) write_bucket(out, bucket);
        out.end_array().end_object();
    }
    out.end_array().end_object();
    return out.take();
}

}  // namespace

void add_metric_routes(Router& router, Store& store) {
    const auto add = [&](std::string pattern, std::string summary,
                         Result<std::string> (*read)(const Store&, const Request&)) {
        router.add_api(2, {Method::kGet,
                           {Access::kRead, Subject::kRuns},
                           std::move(pattern),
                           Body::kNone,
                           std::move(summary),
                           read_handler(store, [&store, read](const Request& request) {
                               return read(store, request);
                           })});
    };
    router.add_api(2, {Method::kGet,
                       {Access::kRead, Subject::kRun},
                       "/mlflow/metrics/get-history",
                       Body::kNone,
                       "run_id!, metric_key!, max_results, page_token",
                       history_handler(store)});
    add("/mlflow/metrics/get-history-bulk", "run_id! (repeated), metric_key!, max_results",
        get_history_bulk);
    add("/mlflow/metrics/get-history-bulk-interval",
        "run_ids!, metric_key!, start_step, end_step, max_results", get_history_bulk_interval);
    add("/tune/metrics/get-history-buckets",
        "run_ids!, metric_key!, buckets, start_step, end_step or start_time, end_time",
        get_buckets);
}

}  // namespace tune::tracker
