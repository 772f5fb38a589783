#pragma once
// Metrics in the text format of Prometheus (version 0.0.4), and the route that answers them.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "tracker/api/http/router.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Writes families of samples. The caller keeps the order: a family, then its samples.
class PrometheusText {
public:
    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    /// `type`: "counter", "gauge" or "histogram"; `help`: one line.
    void family(std::string_view name, std::string_view type, std::string_view help);
    void sample(std::string_view name, Labels labels, double value);
    /// The samples of one histogram: _bucket, _sum, _count.
    void histogram(std::string_view name, Labels labels, const HistogramCounts& counts);

    /// A family with one sample without labels.
    void single(std::string_view name, std::string_view type, std::string_view help, double value);

    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    void begin(std::string_view name, std::string_view suffix, Labels labels, std::string_view le);
    void end(double value);

    std::string out_;
};

/// Appends what one part of the server counts. Any thread; takes well below a millisecond.
using MetricsSource = std::function<void(PrometheusText&)>;

/// GET /metrics. The sources are called on a reader thread of the store, or on the network thread
/// when too many reads wait: monitoring must work then.
void add_metrics_route(Router& router, Store& store, std::vector<MetricsSource> sources);

// Sources.
void write_process_metrics(PrometheusText& out);
void write_store_metrics(PrometheusText& out, const Store& store);
void write_hub_metrics(PrometheusText& out, const EventHub& hub);

}  // namespace tune::tracker
