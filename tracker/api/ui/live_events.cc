// From the store's commits to the page's topics. A table has one row per type of store event: which
// event of the page it becomes and how it merges into a topic. Types without a row do not concern
// the page.
//
// on_commit runs on the store's observer thread, where a slow observer slows all writes: it only
// merges, and only into topics that somebody watches. The thread here serialises and publishes, at
// most once per topic and interval.

#include "tracker/api/ui/live_events.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>
#include <vector>

#include "tracker/api/ui/live_topic.h"

namespace tune::tracker {
namespace {

constexpr const char* kExperimentsTopic = "experiments";

std::string experiment_topic(ExperimentId id) {
    return "experiment:" + std::to_string(id);
}

std::string run_topic(const std::string& run_id) {
    return "run:" + run_id;
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

Json tag_fields(const std::vector<Tag>& tags) {
    Json out = Json::object();
    for (const Tag& tag : tags) out[tag.key] = tag.value;
    return out;
}

// One function per type: what of the event a topic sends.

void merge(LiveTopic& topic, const RunCreated& created) {
    Json fields = run_fields(created.info);
    fields["tags"] = tag_fields(created.tags);
    topic.merge_run(created.info.run_id, created.info.experiment_id, fields);
}

void merge(LiveTopic& topic, const RunUpdated& updated) {
    topic.merge_run(updated.info.run_id, updated.info.experiment_id, run_fields(updated.info));
}

void merge(LiveTopic& topic, const TagsSet& set) {
    topic.merge_run(set.run_id, set.experiment_id, Json{{"tags", tag_fields(set.tags)}});
}

void merge(LiveTopic& topic, const TagDeleted& deleted) {
    topic.merge_run(deleted.run_id, deleted.experiment_id,
                    Json{{"tags", {{deleted.key, nullptr}}}});
}

void merge(LiveTopic& topic, const MetricsLogged& logged) {
    topic.merge_metrics(logged);
}

void merge(LiveTopic& topic, const ParamsLogged& logged) {
    topic.merge_params(logged);
}

void merge(LiveTopic& topic, const ExperimentChanged& changed) {
    topic.merge_experiment(changed.experiment);
}

/// The two topics that an event belongs to.
template <class E>
std::array<std::string, 2> topics_of(const E& event) {
    if constexpr (std::is_same_v<E, ExperimentChanged>)
        return {kExperimentsTopic, experiment_topic(event.experiment.experiment_id)};
    else if constexpr (requires { event.info; })
        return {experiment_topic(event.info.experiment_id), run_topic(event.info.run_id)};
    else
        return {experiment_topic(event.experiment_id), run_topic(event.run_id)};
}

/// How one type of store event reaches the page.
struct Row {
    std::array<std::string, 2> (*topics)(const Event& event) = nullptr;
    void (*merge)(LiveTopic& topic, const Event& event) = nullptr;
    /// Marks the experiment in the list of experiments; for new states of runs only.
    void (*mark_active)(LiveTopic& list, const Event& event) = nullptr;
};

template <class E>
constexpr Row row() {
    Row row;
    row.topics = [](const Event& event) { return topics_of(std::get<E>(event)); };
    row.merge = [](LiveTopic& topic, const Event& event) { merge(topic, std::get<E>(event)); };
    if constexpr (requires(const E& event) { event.info; })
        row.mark_active = [](LiveTopic& list, const Event& event) {
            list.mark_active(std::get<E>(event).info.experiment_id);
        };
    return row;
}

template <class E, std::size_t kIndex = 0>
constexpr std::size_t index_of() {
    if constexpr (std::is_same_v<E, std::variant_alternative_t<kIndex, EventVariant>>)
        return kIndex;
    else
        return index_of<E, kIndex + 1>();
}

template <class... Types>
constexpr auto make_rows() {
    std::array<Row, std::variant_size_v<EventVariant>> rows{};
    ((rows[index_of<Types>()] = row<Types>()), ...);
    return rows;
}

/// By Event::index().
constexpr auto kRows = make_rows<RunCreated,         // run, with tags
                                 RunUpdated,         // run
                                 TagsSet,            // run, tags only
                                 TagDeleted,         // run, tags only
                                 MetricsLogged,      // metrics
                                 ParamsLogged,       // params
                                 ExperimentChanged>  // experiment
    ();

}  // namespace

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
LiveTopic* LiveEvents::find_topic(const std::string& name) {
    const auto found = topics_.find(name);
    if (found != topics_.end()) return found->second.get();
    if (!hub_.wanted(name)) return nullptr;
    auto topic = std::make_unique<LiveTopic>(name.starts_with("run:"));
    return topics_.emplace(name, std::move(topic)).first->second.get();
}

void LiveEvents::add(const Event& event) {
    const Row& row = kRows[event.index()];
    if (row.merge == nullptr) return;
    if (row.mark_active != nullptr)
        if (LiveTopic* list = find_topic(kExperimentsTopic)) row.mark_active(*list, event);
    for (const std::string& name : row.topics(event))
        if (LiveTopic* topic = find_topic(name)) row.merge(*topic, event);
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
        LiveTopic& topic = *at->second;
        if (!topic.is_empty() && topic.is_due(now_ms, kFlushInterval_ms))
            topic.flush(hub_, at->first, now_ms);
        // It stays for an interval after a flush, since a new one is flushed at once.
        if (topic.is_empty() &&
            (topic.is_due(now_ms, kFlushInterval_ms) || !hub_.wanted(at->first))) {
            at = topics_.erase(at);
            continue;
        }
        next_ms = std::min(next_ms, topic.last_flush_ms() + kFlushInterval_ms);
        ++at;
    }
    return next_ms;
}

void LiveEvents::review_readers() {
    const std::lock_guard lock(mutex_);
    must_review_ = true;
    wake_.notify_one();
}

void LiveEvents::run() {
    std::unique_lock lock(mutex_);
    std::int64_t reviewed_ms = clock_.monotonic_ms();
    while (!stopping_) {
        has_new_topic_ = false;
        const std::int64_t now_ms = clock_.monotonic_ms();
        const std::int64_t next_ms = flush_due(now_ms);
        const bool is_due = now_ms - reviewed_ms >= kReviewInterval_ms;
        if (must_review_ || (is_due && hub_.reader_count() != 0)) {
            must_review_ = false;
            reviewed_ms = now_ms;
            lock.unlock();  // it may read the store
            hub_.review_readers();
            lock.lock();
            continue;
        }
        // Nobody says that a reader has come: the next look is never far.
        const std::int64_t wait_ms =
            topics_.empty() ? kReviewInterval_ms : std::min(next_ms - now_ms, kReviewInterval_ms);
        wake_.wait_for(lock, std::chrono::milliseconds(std::max<std::int64_t>(1, wait_ms)),
                       [this] { return stopping_ || has_new_topic_ || must_review_; });
    }
}

}  // namespace tune::tracker
