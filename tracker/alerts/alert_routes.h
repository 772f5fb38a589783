#pragma once

#include "tracker/alerts/alert_engine.h"
#include "tracker/api/http/router.h"
#include "tracker/api/ops/prometheus.h"

namespace tune::tracker {

/// /api/2.0/tune/alerts: POST creates a rule and answers {"alert"}, GET answers {"alerts"},
/// DELETE /{alert_id} answers {}. `store` and `engine` outlive the router's use.
void add_alert_routes(Router& router, Store& store, AlertEngine& engine);

/// For /metrics.
void write_alert_metrics(PrometheusText& out, const AlertEngine& engine);

}  // namespace tune::tracker
