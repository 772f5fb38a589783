// ETags name the store's position and this process; the position is read before the data, so a
// commit in between makes a tag too old, never too new, and a cached page is never newer than its
// tag says.

#include "tracker/api/ui/ui.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/json.h"
#include "tracker/api/ui/ui_columns.h"

namespace tune::tracker {
namespace {

/// Runs in one read of the store; bounds the memory that full runs take beside their columns.
constexpr std::int64_t kRunsPerRead = 5'000;

using RequestPtr = std::shared_ptr<Request>;

/// Answers with what `work` returns, computed on a reader thread.
template <class Work>
void answer_by_read(Store& store, Responder respond, Work work) {
    auto answer = std::make_shared<Responder>(std::move(respond));
    const bool queued = store.post_read([answer, work = std::move(work)] {
        Result<Response> response = work();
        (*answer)(response ? std::move(*response) : error_response(response.error()));
    });
    if (!queued)
        (*answer)(error_response(
            Error{Code::kRequestLimitExceeded, "The server is busy with other reads. Try again."}));
}

// --- experiments ---------------------------------------------------------------------------------

Result<std::vector<Experiment>> all_experiments(const Store& store,
                                                const std::optional<Viewer>& viewer) {
    std::vector<Experiment> all;
    SearchExperiments query{.max_results = 1000, .visible_to = viewer};
    do {
        TUNE_TRY(page, store.search_experiments(query));
        std::move(page.items.begin(), page.items.end(), std::back_inserter(all));
        query.page_token = page.next_page_token;
    } while (!query.page_token.empty());
    return all;
}

Json experiment_row(const Experiment& experiment, const ExperimentStatistics& statistics) {
    return {{"experiment_id", std::to_string(experiment.experiment_id)},
            {"name", experiment.name},
            {"runs", statistics.run_count},
            {"running", statistics.running_count},
            {"created_ms", experiment.creation_time_ms},
            {"last_activity_ms", statistics.last_activity_ms}};
}

Result<Response> list_experiments(const Store& store, const std::optional<Viewer>& viewer) {
    TUNE_TRY(experiments, all_experiments(store, viewer));
    TUNE_TRY(statistics, store.experiment_statistics());
    std::map<ExperimentId, ExperimentStatistics> by_id;
    for (const ExperimentStatistics& entry : statistics) by_id[entry.experiment_id] = entry;
    Json rows = Json::array();
    for (const Experiment& experiment : experiments) {
        ExperimentStatistics& entry = by_id[experiment.experiment_id];
        entry.last_activity_ms = std::max(entry.last_activity_ms, experiment.creation_time_ms);
        rows.push_back(experiment_row(experiment, entry));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
        return a["last_activity_ms"] > b["last_activity_ms"];
    });
    return json_response({{"experiments", std::move(rows)}});
}

// --- runs ----------------------------------------------------------------------------------------

struct RunsRequest {
    ExperimentId experiment_id = 0;
    ViewType view = ViewType::kActiveOnly;
};

Result<RunsRequest> parse_runs_request(const Request& request) {
    RunsRequest parsed;
    TUNE_TRY(id, parse_experiment_id(request.parameter("experiment_id")));
    parsed.experiment_id = id;
    const std::string_view view = request.query_value("view").value_or("active");
    if (view == "deleted") {
        parsed.view = ViewType::kDeletedOnly;
    } else if (view == "all") {
        parsed.view = ViewType::kAll;
    } else if (view != "active") {
        return Error{Code::kInvalidParameterValue,
                     "Unknown view '" + std::string(view) + "': use active, deleted or all."};
    }
    return parsed;
}

std::string experiment_json(const Experiment& experiment) {
    Json tags = Json::object();
    for (const Tag& tag : experiment.tags) tags[tag.key] = tag.value;
    return to_text({{"experiment_id", std::to_string(experiment.experiment_id)},
                    {"name", experiment.name},
                    {"lifecycle_stage", lifecycle_name(experiment.lifecycle_stage)},
                    {"artifact_location", experiment.artifact_location},
                    {"created_ms", experiment.creation_time_ms},
                    {"tags", std::move(tags)}});
}

Result<std::string> runs_json(const Store& store, const RunsRequest& wanted) {
    TUNE_TRY(experiment, store.get_experiment(wanted.experiment_id));
    RunColumns columns;
    SearchRuns query{.experiment_ids = {wanted.experiment_id},
                     .view_type = wanted.view,
                     .max_results = kRunsPerRead};
    do {
        TUNE_TRY(page, store.search_runs(query));
        for (const Run& run : page.items) columns.add(run);
        query.page_token = page.next_page_token;
    } while (!query.page_token.empty() &&
             static_cast<std::int64_t>(columns.run_count()) + kRunsPerRead <= kUiRunsMax);
    return "{\"experiment\":" + experiment_json(experiment) +
           ",\"truncated\":" + (query.page_token.empty() ? "false," : "true,") +
           columns.to_json_fields() + "}";
}

/// `server_mark` distinguishes this process's responses from those of another one on the same
/// address, which may serve other data under the same position.
Result<Response> list_runs(const Store& store, const std::string& server_mark,
                           const Request& request) {
    TUNE_TRY(wanted, parse_runs_request(request));
    // Read before the runs: a commit in between makes the tag too old, never the answer.
    const std::string etag = '"' + server_mark + '-' + std::to_string(store.last_position()) + '"';
    Response response;
    if (request.header("If-None-Match") == etag) {
        response = json_text_response("{}");
    } else {
        TUNE_TRY(text, runs_json(store, wanted));
        response = json_text_response(std::move(text));
    }
    response.etag = etag;
    return response;
}

// --- series --------------------------------------------------------------------------------------

struct SeriesRequest {
    std::vector<std::string> run_ids;
    std::vector<std::string> metrics;
    std::int64_t buckets = kUiSeriesBuckets;
};

void split_into(std::vector<std::string>& parts, std::string_view text) {
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        if (comma > 0) parts.emplace_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
}

Result<SeriesRequest> parse_series_request(const Request& request) {
    SeriesRequest parsed;
    for (const std::string_view ids : request.query_values("run_ids"))
        split_into(parsed.run_ids, ids);
    for (const std::string_view metric : request.query_values("metric"))
        parsed.metrics.emplace_back(metric);
    const auto invalid = [](std::string text) {
        return Error{Code::kInvalidParameterValue, std::move(text)};
    };
    if (parsed.run_ids.empty() || parsed.run_ids.size() > kBulkRunsMax)
        return invalid("Give 1 to " + std::to_string(kBulkRunsMax) + " run ids in 'run_ids', got " +
                       std::to_string(parsed.run_ids.size()) + ".");
    if (parsed.metrics.empty() || parsed.metrics.size() > kUiSeriesMetricsMax)
        return invalid("Give 1 to " + std::to_string(kUiSeriesMetricsMax) +
                       " values of 'metric', got " + std::to_string(parsed.metrics.size()) + ".");
    if (const auto text = request.query_value("buckets")) {
        const auto [end, error] =
            std::from_chars(text->data(), text->data() + text->size(), parsed.buckets);
        if (error != std::errc() || end != text->data() + text->size() || parsed.buckets < 1 ||
            parsed.buckets > kSeriesBucketsMax)
            return invalid("'buckets' must be a number from 1 to " +
                           std::to_string(kSeriesBucketsMax) + ", got '" + std::string(*text) +
                           "'.");
    }
    return parsed;
}

template <class Member>
void append_integers(std::string& out, std::string_view name, const Series& series, Member member) {
    out += ",\"";
    out += name;
    out += "\":[";
    const char* comma = "";
    for (const SeriesBucket& bucket : series.buckets) {
        out += comma;
        comma = ",";
        out += std::to_string(bucket.*member);
    }
    out += ']';
}

void append_numbers(std::string& out, std::string_view name, const Series& series,
                    double SeriesBucket::*member) {
    out += ",\"";
    out += name;
    out += "\":[";
    const char* comma = "";
    for (const SeriesBucket& bucket : series.buckets) {
        out += comma;
        comma = ",";
        append_json_number(out, bucket.*member, "null");
    }
    out += ']';
}

void append_series(std::string& out, const Series& series) {
    std::int64_t count = 0;
    std::int64_t nan_count = 0;
    for (const SeriesBucket& bucket : series.buckets) {
        count += bucket.count;
        nan_count += bucket.nan_count;
    }
    out += "{\"run_id\":";
    append_json_string(out, series.run_id);
    out += ",\"count\":" + std::to_string(count) + ",\"nan_count\":" + std::to_string(nan_count);
    append_integers(out, "step", series, &SeriesBucket::last_step);
    append_integers(out, "time", series, &SeriesBucket::last_timestamp_ms);
    append_numbers(out, "last", series, &SeriesBucket::last);
    if (count > static_cast<std::int64_t>(series.buckets.size())) {
        append_numbers(out, "min", series, &SeriesBucket::min);
        append_numbers(out, "max", series, &SeriesBucket::max);
        append_integers(out, "counts", series, &SeriesBucket::count);
    }
    out += '}';
}

Result<Response> list_series(const Store& store, const Request& request) {
    TUNE_TRY(wanted, parse_series_request(request));
    std::string out = "{\"metrics\":[";
    const char* comma = "";
    for (const std::string& metric : wanted.metrics) {
        TUNE_TRY(all, store.series(wanted.run_ids, metric, wanted.buckets));
        out += comma;
        comma = ",";
        out += "{\"metric\":";
        append_json_string(out, metric);
        out += ",\"series\":[";
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i > 0) out += ',';
            append_series(out, all[i]);
        }
        out += "]}";
    }
    out += "]}";
    return json_text_response(std::move(out));
}

}  // namespace

void add_ui_routes(Router& router, Store& store) {
    router.add({.method = Method::kGet,
                .access = {Access::kRead, Subject::kCut},
                .pattern = "/api/ui/experiments",
                .summary = "Experiments with run counts, latest activity first",
                .handler = [&store](RequestPtr request, Responder respond) {
                    answer_by_read(store, std::move(respond), [&store, request] {
                        return list_experiments(store, request->viewer);
                    });
                }});
    router.add({.method = Method::kGet,
                .access = {Access::kRead, Subject::kRunsOfExperiment},
                .pattern = "/api/ui/experiments/{experiment_id}/runs",
                .summary = "All runs of an experiment, column by column",
                .handler = [&store, mark = random_hex(6)](RequestPtr request, Responder respond) {
                    answer_by_read(store, std::move(respond), [&store, mark, request] {
                        return list_runs(store, mark, *request);
                    });
                }});
    router.add({.method = Method::kGet,
                .access = {Access::kRead, Subject::kRuns},
                .pattern = "/api/ui/series",
                .summary = "Metric histories of several runs, down-sampled with exact extrema",
                .handler = [&store](RequestPtr request, Responder respond) {
                    answer_by_read(store, std::move(respond),
                                   [&store, request] { return list_series(store, *request); });
                }});
}

}  // namespace tune::tracker
