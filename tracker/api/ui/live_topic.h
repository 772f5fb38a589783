#pragma once
// What changed in one topic of the live page since it was sent last, and the page's events for it
// (their fields: live_events.h). Changes of one run are joined until the next flush.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/store/commands/events.h"

namespace tune::tracker {

/// Not thread-safe. Memory: what changed since the last flush; at most kPointsMax points.
class LiveTopic {
public:
    /// Events a flush; the rest of a busy experiment's runs follow in the next ones.
    static constexpr std::size_t kFlushEventsMax = 64;
    /// Points between two flushes; more become one `resync`.
    static constexpr std::size_t kPointsMax = 20'000;

    /// The topic of one run sends all its points, one of an experiment only the latest of each run.
    explicit LiveTopic(bool is_run) : is_run_(is_run) {}

    /// Fields of the run's `run` event; tags are joined, other fields replaced.
    void merge_run(const std::string& run_id, ExperimentId experiment_id, const Json& fields);
    void merge_metrics(const MetricsLogged& logged);
    void merge_params(const ParamsLogged& logged);
    void merge_experiment(const Experiment& experiment);
    void mark_active(ExperimentId experiment_id);

    [[nodiscard]] bool is_empty() const;
    [[nodiscard]] bool is_due(std::int64_t now_ms, std::int64_t interval_ms) const {
        return last_flush_ms_ + interval_ms <= now_ms;
    }
    [[nodiscard]] std::int64_t last_flush_ms() const { return last_flush_ms_; }

    /// Sends at most kFlushEventsMax events of runs as topic `name`; what is left stays.
    void flush(EventHub& hub, const std::string& name, std::int64_t now_ms);

private:
    struct RunChanges {
        ExperimentId experiment_id = 0;
        Json fields;
        std::map<std::string, Metric> latest;
        std::vector<Metric> points;
        std::map<std::string, std::string> params;
    };

    const bool is_run_;
    std::int64_t last_flush_ms_ = std::numeric_limits<std::int64_t>::min() / 2;
    std::map<std::string, RunChanges> runs_;
    std::map<ExperimentId, Json> experiments_;
    std::set<ExperimentId> active_experiments_;
    bool lost_points_ = false;
    ExperimentId lost_of_ = 0;  // whose
};

}  // namespace tune::tracker
