// Joining is what bounds the page's traffic: however often a run changes between two flushes, it
// costs one `run`, one `metrics` and one `params` event. Replaced fields are safe to join since
// each carries a new state, not a difference; points of a run's own page are differences, so they
// are kept one by one, and beyond kPointsMax a `resync` makes the page read the run anew.

#include "tracker/api/ui/live_topic.h"

namespace tune::tracker {
namespace {

/// Whether `metric` is newer than `old` by MLflow's order: step, then timestamp, then value.
bool supersedes(const Metric& metric, const Metric& old) {
    if (metric.step != old.step) return metric.step > old.step;
    if (metric.timestamp_ms != old.timestamp_ms) return metric.timestamp_ms > old.timestamp_ms;
    return !(metric.value < old.value);
}

Json latest_of(const std::map<std::string, Metric>& latest) {
    Json out = Json::object();
    for (const auto& [key, metric] : latest)
        out[key] = {{"value", json_number(metric.value)},
                    {"step", metric.step},
                    {"timestamp", metric.timestamp_ms}};
    return out;
}

Json points_of(const std::vector<Metric>& points) {
    Json out = Json::array();
    for (const Metric& point : points)
        out.push_back({point.key, point.step, point.timestamp_ms, json_number(point.value)});
    return out;
}

}  // namespace

void LiveTopic::merge_run(const std::string& run_id, ExperimentId experiment_id,
                          const Json& fields) {
    runs_[run_id].experiment_id = experiment_id;
    Json& into = runs_[run_id].fields;
    if (into.is_null())
        into = {{"run_id", run_id}, {"experiment_id", std::to_string(experiment_id)}};
    for (const auto& [name, value] : fields.items()) {
        if (name == "tags" && into.contains("tags"))
            into["tags"].update(value);
        else
            into[name] = value;
    }
}

void LiveTopic::merge_metrics(const MetricsLogged& logged) {
    RunChanges& run = runs_[logged.run_id];
    run.experiment_id = logged.experiment_id;
    if (is_run_) {
        if (run.points.size() + logged.metrics.size() > kPointsMax) {
            run.points.clear();
            lost_points_ = true;
            lost_of_ = logged.experiment_id;
        } else {
            run.points.insert(run.points.end(), logged.metrics.begin(), logged.metrics.end());
        }
        return;
    }
    for (const Metric& metric : logged.metrics) {
        const auto [at, is_new] = run.latest.emplace(metric.key, metric);
        if (!is_new && supersedes(metric, at->second)) at->second = metric;
    }
}

void LiveTopic::merge_params(const ParamsLogged& logged) {
    RunChanges& run = runs_[logged.run_id];
    run.experiment_id = logged.experiment_id;
    for (const Param& param : logged.params) run.params[param.key] = param.value;
}

void LiveTopic::merge_experiment(const Experiment& experiment) {
    const std::string id = std::to_string(experiment.experiment_id);
    experiments_[experiment.experiment_id] = {
        {"experiment_id", id},
        {"name", experiment.name},
        {"lifecycle_stage", lifecycle_name(experiment.lifecycle_stage)}};
}

void LiveTopic::mark_active(ExperimentId experiment_id) {
    active_experiments_.insert(experiment_id);
}

bool LiveTopic::is_empty() const {
    return runs_.empty() && experiments_.empty() && active_experiments_.empty() && !lost_points_;
}

void LiveTopic::flush(EventHub& hub, const std::string& name, std::int64_t now_ms) {
    std::size_t sent = 0;
    ExperimentId of = 0;  // the experiment of what is sent
    const auto send = [&](std::string_view type, const Json& data) {
        hub.publish(name, type, data, of);
        ++sent;
    };
    of = lost_of_;
    if (lost_points_) send("resync", Json::object());
    lost_points_ = false;
    for (const auto& [id, fields] : experiments_) {
        of = id;
        send("experiment", fields);
    }
    experiments_.clear();
    for (const ExperimentId id : active_experiments_) {
        of = id;
        send("activity", {{"experiment_id", std::to_string(id)}});
    }
    active_experiments_.clear();
    while (!runs_.empty() && sent < kFlushEventsMax) {
        const auto& [run_id, run] = *runs_.begin();
        of = run.experiment_id;
        if (!run.fields.is_null()) send("run", run.fields);
        if (!run.latest.empty())
            send("metrics", {{"run_id", run_id}, {"latest", latest_of(run.latest)}});
        if (!run.points.empty())
            send("metrics", {{"run_id", run_id}, {"points", points_of(run.points)}});
        if (!run.params.empty()) send("params", {{"run_id", run_id}, {"params", run.params}});
        runs_.erase(runs_.begin());
    }
    last_flush_ms_ = now_ms;
}

}  // namespace tune::tracker
