#pragma once
// MLflow's routes of webhooks under /mlflow/webhooks, and the same under /tune/webhooks with the
// events of runs, which MLflow's clients cannot read.

#include "tracker/api/http/router.h"
#include "tracker/api/ops/prometheus.h"
#include "tracker/webhooks/webhook_service.h"

namespace tune::tracker {

/// `store` and `service` outlive the router's use.
void add_webhook_routes(Router& router, Store& store, WebhookService& service);

/// For /metrics.
void write_webhook_metrics(PrometheusText& out, const WebhookService& service);

}  // namespace tune::tracker
