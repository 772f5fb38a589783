#include "tracker/api/ui/live_events.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace tune::tracker {
namespace {

std::string experiment_topic(ExperimentId id) {
    return "experiment:" + std::to_string(id);
}

Json run_fields(const RunInfo& info) {
    Json fields = {{"run_id", info.run_id},
                   {"experiment_id", std::to_string(info.experiment_id)},
                   {"name", info.run_name},
                   {"status", status_name(info.status)},
                   {"start_time", info.start_time_ms},
                   {"end_time", nullptr},
                   {"lifecycle_stage", lifecycle_name(info.lifecycle_stage)}};
    if (info.end_time_ms) fields["end_time"] = *info.end_time_ms;
    return fields;
}

/// Whether `metric` is newer than `old` by MLflow's order: step, then timestamp, then value.
bool supersedes(const Metric& metric, const Metric& old) {
    if (metric.step != old.step) return metric.step > old.step;
    if (metric.timestamp_ms != old.timestamp_ms) return metric.timestamp_ms > old.timestamp_ms;
    return !(metric.value < old.value);
}

/// What changed of one run.
struct RunChanges {
    Json fields;
    std::map<std::string, Metric> latest;
    std::vector<Metric> points;
    std::map<std::string, std::string> params;
};

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

struct LiveEvents::Topic {
    /// A topic of one run sends all its points, one of an experiment only the latest of each run.
    bool is_run = false;
    std::int64_t last_flush_ms = std::numeric_limits<std::int64_t>::min() / 2;
    std::map<std::string, RunChanges> runs;
    std::map<std::string, Json> experiments;
    std::map<std::string, bool> active_experiments;
    bool lost_points = false;

    [[nodiscard]] bool is_empty() const {
        return runs.empty() && experiments.empty() && active_experiments.empty() && !lost_points;
    }

    void add_fields(const std::string& run_id, ExperimentId experiment_id, const Json& fields) {
        Json& into = runs[run_id].fields;
        if (into.is_null())
            into = {{"run_id", run_id}, {"experiment_id", std::to_string(experiment_id)}};
        for (const auto& [name, value] : fields.items()) {
            if (name == "tags" && into.contains("tags"))
                into["tags"].update(value);
            else
                into[name] = value;
        }
    }

    void add_metrics(const MetricsLogged& logged) {
        RunChanges& run = runs[logged.run_id];
        if (is_run) {
            if (run.points.size() + logged.metrics.size() > kPointsMax) {
                run.points.clear();
                lost_points = true;
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

    /// Sends at most kFlushEventsMax events; what is left stays.
    void flush(EventHub& hub, const std::string& name) {
        std::size_t sent = 0;
        const auto send = [&](std::string_view type, const Json& data) {
            hub.publish(name, type, data);
            ++sent;
        };
        if (lost_points) send("resync", Json::object());
        lost_points = false;
        for (const auto& [id, fields] : experiments) send("experiment", fields);
        experiments.clear();
        for (const auto& [id, unused] : active_experiments)
            send("activity", {{"experiment_id", id}});
        active_experiments.clear();
        while (!runs.empty() && sent < kFlushEventsMax) {
            const auto& [run_id, run] = *runs.begin();
            if (!run.fields.is_null()) send("run", run.fields);
            if (!run.latest.empty())
                send("metrics", {{"run_id", run_id}, {"latest", latest_of(run.latest)}});
            if (!run.points.empty())
                send("metrics", {{"run_id", run_id}, {"points", points_of(run.points)}});
            if (!run.params.empty()) send("params", {{"run_id", run_id}, {"params", run.params}});
            runs.erase(runs.begin());
        }
    }
};

LiveEvents::LiveEvents(EventHub& hub, const Clock& clock)
    : hub_(hub), clock_(clock), thread_([this] { run(); }) {}

LiveEvents::~LiveEvents() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

/// The pending changes of a topic that somebody watches, else nullptr. REQUIRES: mutex_ is held.
LiveEvents::Topic* LiveEvents::topic_of(const std::string& name) {
    const auto found = topics_.find(name);
    if (found != topics_.end()) return found->second.get();
    if (!hub_.wanted(name)) return nullptr;
    auto topic = std::make_unique<Topic>();
    topic->is_run = name.starts_with("run:");
    return topics_.emplace(name, std::move(topic)).first->second.get();
}

void LiveEvents::add(const Event& event) {
    const auto each_topic_of_run = [this](const std::string& run_id, ExperimentId experiment_id,
                                          const auto& work) {
        if (Topic* topic = topic_of(experiment_topic(experiment_id))) work(*topic);
        if (Topic* topic = topic_of("run:" + run_id)) work(*topic);
    };
    const auto add_fields = [&](const std::string& run_id, ExperimentId experiment_id,
                                const auto& make) {
        each_topic_of_run(run_id, experiment_id,
                          [&](Topic& topic) { topic.add_fields(run_id, experiment_id, make()); });
    };
    const auto add_activity = [this](ExperimentId id) {
        if (Topic* topic = topic_of("experiments")) topic->active_experiments[std::to_string(id)];
    };
    const auto tags_json = [](const std::vector<Tag>& tags) {
        Json out = Json::object();
        for (const Tag& tag : tags) out[tag.key] = tag.value;
        return out;
    };
    if (const auto* created = std::get_if<RunCreated>(&event)) {
        add_activity(created->info.experiment_id);
        add_fields(created->info.run_id, created->info.experiment_id, [&] {
            Json fields = run_fields(created->info);
            fields["tags"] = tags_json(created->tags);
            return fields;
        });
    } else if (const auto* updated = std::get_if<RunUpdated>(&event)) {
        add_activity(updated->info.experiment_id);
        add_fields(updated->info.run_id, updated->info.experiment_id,
                   [&] { return run_fields(updated->info); });
    } else if (const auto* tags = std::get_if<TagsSet>(&event)) {
        add_fields(tags->run_id, tags->experiment_id, [&] {
            return Json{{"tags", tags_json(tags->tags)}};
        });
    } else if (const auto* tag = std::get_if<TagDeleted>(&event)) {
        add_fields(tag->run_id, tag->experiment_id, [&] {
            return Json{{"tags", {{tag->key, nullptr}}}};
        });
    } else if (const auto* metrics = std::get_if<MetricsLogged>(&event)) {
        each_topic_of_run(metrics->run_id, metrics->experiment_id,
                          [&](Topic& topic) { topic.add_metrics(*metrics); });
    } else if (const auto* params = std::get_if<ParamsLogged>(&event)) {
        each_topic_of_run(params->run_id, params->experiment_id, [&](Topic& topic) {
            for (const Param& param : params->params)
                topic.runs[params->run_id].params[param.key] = param.value;
        });
    } else if (const auto* changed = std::get_if<ExperimentChanged>(&event)) {
        const Experiment& experiment = changed->experiment;
        const std::string id = std::to_string(experiment.experiment_id);
        const auto work = [&](Topic& topic) {
            topic.experiments[id] = {
                {"experiment_id", id},
                {"name", experiment.name},
                {"lifecycle_stage", lifecycle_name(experiment.lifecycle_stage)}};
        };
        if (Topic* topic = topic_of("experiments")) work(*topic);
        if (Topic* topic = topic_of("experiment:" + id)) work(*topic);
    }
}

void LiveEvents::on_commit(const Commit& commit) {
    const std::lock_guard lock(mutex_);
    const std::size_t known = topics_.size();
    for (const Event& event : commit.events) add(event);
    // The thread knows when the other topics are due.
    if (topics_.size() == known) return;
    has_new_topic_ = true;
    wake_.notify_one();
}

/// Flushes the topics whose time has come, forgets those that nobody watches, and returns when the
/// next one is due (a large value: none waits). REQUIRES: mutex_ is held.
std::int64_t LiveEvents::flush_due(std::int64_t now_ms) {
    std::int64_t next_ms = std::numeric_limits<std::int64_t>::max();
    for (auto at = topics_.begin(); at != topics_.end();) {
        Topic& topic = *at->second;
        const auto is_due = [&topic, now_ms] {
            return topic.last_flush_ms + kFlushInterval_ms <= now_ms;
        };
        if (!topic.is_empty() && is_due()) {
            topic.flush(hub_, at->first);
            topic.last_flush_ms = now_ms;
        }
        // It stays for an interval after a flush, since a new one is flushed at once.
        if (topic.is_empty() && (is_due() || !hub_.wanted(at->first))) {
            at = topics_.erase(at);
            continue;
        }
        next_ms = std::min(next_ms, topic.last_flush_ms + kFlushInterval_ms);
        ++at;
    }
    return next_ms;
}

void LiveEvents::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        has_new_topic_ = false;
        const std::int64_t now_ms = clock_.monotonic_ms();
        const std::int64_t next_ms = flush_due(now_ms);
        const auto woken = [this] { return stopping_ || has_new_topic_; };
        if (topics_.empty())
            wake_.wait(lock, woken);
        else
            wake_.wait_for(lock,
                           std::chrono::milliseconds(std::max<std::int64_t>(1, next_ms - now_ms)),
                           woken);
    }
}

}  // namespace tune::tracker
