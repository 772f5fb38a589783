#include "tracker/alerts/alert_routes.h"

#include <nlohmann/json.hpp>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"

namespace tune::tracker {
namespace {

Result<std::string> create(AlertEngine& engine, const Request& request) {
    // Refuses other content types than JSON, which a page of somebody else could send.
    TUNE_TRY(unused, Message::read(request));
    static_cast<void>(unused);
    TUNE_TRY(json, parse_json(request.body.empty() ? "{}" : request.body));
    TUNE_TRY(rule, alert_rule_from_json(json));
    TUNE_TRY(created, engine.create(std::move(rule)));
    return to_text({{"alert", alert_rule_to_json(created)}});
}

Result<std::string> list(AlertEngine& engine, const Request&) {
    Json alerts = Json::array();
    for (const AlertRule& rule : engine.rules()) alerts.push_back(alert_rule_to_json(rule));
    return to_text({{"alerts", std::move(alerts)}});
}

Result<std::string> remove(AlertEngine& engine, const Request& request) {
    TUNE_TRY_VOID(engine.remove(request.parameter("alert_id")));
    return std::string("{}");
}

}  // namespace

void add_alert_routes(Router& router, Store& store, AlertEngine& engine) {
    // Creating waits for a commit, which takes about as long as a read.
    const auto call = [&store, &engine](Result<std::string> (*work)(AlertEngine&, const Request&)) {
        return read_handler(
            store, [&engine, work](const Request& request) { return work(engine, request); });
    };
    router.add_api(2, {Method::kPost,
                       {Access::kWrite, Subject::kServer},
                       "/tune/alerts",
                       Body::kJson,
                       "Mark runs: kind! (nan, plateau, silence), experiment_id, metric, goal, "
                       "min_delta, points, seconds",
                       call(create)});
    router.add_api(2, {Method::kGet,
                       {Access::kRead, Subject::kServer},
                       "/tune/alerts",
                       Body::kNone,
                       "List the alerts",
                       call(list)});
    router.add_api(2, {Method::kDelete,
                       {Access::kWrite, Subject::kServer},
                       "/tune/alerts/{alert_id}",
                       Body::kNone,
                       "Delete an alert",
                       call(remove)});
}

void write_alert_metrics(PrometheusText& out, const AlertEngine& engine) {
    const AlertEngine::Stats now = engine.stats();
    out.single("tune_alert_rules", "gauge", "Rules of alerts.", static_cast<double>(now.rules));
    out.single("tune_alert_watched_runs", "gauge", "RUNNING runs watched for silence.",
               static_cast<double>(now.watched_runs));
    out.single("tune_alert_queue", "gauge", "Alerts and histories that wait for their turn.",
               static_cast<double>(now.waiting));
    out.single("tune_alert_dropped_total", "counter", "Alerts put off because too many waited.",
               static_cast<double>(now.dropped));
    out.family("tune_alerts_total", "counter", "Runs that were marked, by kind.");
    for (const AlertKind kind : {AlertKind::kNan, AlertKind::kPlateau, AlertKind::kSilence})
        out.sample("tune_alerts_total", {{"kind", alert_kind_name(kind)}},
                   static_cast<double>(now.given[static_cast<std::size_t>(kind)]));
}

}  // namespace tune::tracker
