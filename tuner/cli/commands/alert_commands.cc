// tune alert add, ls and rm: rules of the server for NaN, plateau and silence, over its REST
// routes. The metric is NAME or NAME:GOAL, split at the last colon and only before min or max,
// since names may hold colons too.

#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "base/text/percent.h"
#include "tracker/client/client.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/config/study_config.h"

namespace tune::cli {
namespace {

constexpr const char* kAlerts = "/api/2.0/tune/alerts";
constexpr std::int64_t kSecond_ms = 1000;

/// "loss:max" is the metric and its goal; a metric's own name may hold colons too.
void put_metric(Json& body, const std::string& metric) {
    const std::size_t colon = metric.rfind(':');
    const std::string goal = colon == std::string::npos ? "" : metric.substr(colon + 1);
    const bool has_goal = goal == "min" || goal == "max";
    body["metric"] = has_goal ? metric.substr(0, colon) : metric;
    if (has_goal) body["goal"] = goal;
}

Result<Json> request_of(const AlertCommand& options) {
    Json body = {{"kind", options.kind}};
    if (options.experiment) body["experiment_id"] = *options.experiment;
    if (options.metric) put_metric(body, *options.metric);
    if (options.min_delta) body["min_delta"] = *options.min_delta;
    if (options.points) body["points"] = *options.points;
    if (options.silence) {
        TUNE_TRY(silence_ms, tuner::parse_duration_ms(*options.silence));
        body["seconds"] = (silence_ms + kSecond_ms - 1) / kSecond_ms;
    }
    return body;
}

std::string condition_text(const Json& alert) {
    const std::string kind = text_of(alert, "kind");
    const std::string metric = printable(text_of(alert, "metric"));
    if (kind == "silence") return "no write for " + to_text(alert["seconds"]) + " s";
    if (kind == "nan") return (metric.empty() ? "any metric" : metric) + " is NaN or infinite";
    return metric + " (" + text_of(alert, "goal") + ") without improvement by more than " +
           to_text(alert["min_delta"]) + " in " +
           counted(alert["points"].get<std::int64_t>(), "point");
}

std::string table_of(const Json& alerts) {
    Table table;
    for (const char* column : {"alert", "kind", "experiment", "condition"}) table.column(column);
    for (const Json& alert : alerts)
        table.row({text_of(alert, "alert_id"), text_of(alert, "kind"),
                   alert.contains("experiment_id") ? text_of(alert, "experiment_id") : "all",
                   condition_text(alert)});
    return table.text();
}

}  // namespace

int run_alert_add(const AlertCommand& options) {
    const Result<Json> body = request_of(options);
    if (!body) return fail(body.error(), options.json);
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->post(kAlerts, *body);
    if (!answer) return fail(answer.error(), options.json);
    if (options.json)
        print_json((*answer)["alert"]);
    else
        print(table_of(Json::array({(*answer)["alert"]})));
    return kExitOk;
}

int run_alert_ls(const AlertCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->get(kAlerts);
    if (!answer) return fail(answer.error(), options.json);
    const Json& alerts = (*answer)["alerts"];
    if (options.json)
        print_json(*answer);
    else
        print(alerts.empty() ? "no alerts in " + (*backend)->where() + "\n" : table_of(alerts));
    return kExitOk;
}

int run_alert_rm(const AlertCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer =
        (*backend)->remove(std::string(kAlerts) + "/" + percent_encode(options.alert_id, false));
    if (!answer) return fail(answer.error(), options.json);
    if (options.json) print_json(*answer);
    return kExitOk;
}

}  // namespace tune::cli
