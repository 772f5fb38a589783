// Publishing never waits for a reader: a frame is made once and shared, a full queue becomes one
// `resync`. A reader that reconnects gets what it missed only if the ring still holds every event
// of its topics since; otherwise a `resync`, so it can be behind, but never wrong without knowing.
//
// Who may not see all has a filter, which is asked at each event: what was granted or taken away
// since the stream began counts. It may read the store, so the readers are listed under the lock,
// asked without it, and served under it; one that came in between is asked there. What waits to be
// sent is asked about once more when rights change, and who is not who they were is ended.

#include "tracker/api/ui/event_hub.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace tune::tracker {
namespace {

using Frame = std::shared_ptr<const std::string>;

Frame make_frame(std::uint64_t id, std::string_view type, std::string_view data) {
    std::string frame = "id: " + std::to_string(id) + "\nevent: ";
    frame.append(type).append("\ndata: ").append(data).append("\n\n");
    return std::make_shared<const std::string>(std::move(frame));
}

}  // namespace

struct EventSubscription::Queue {
    /// A frame, and what of it the filter is asked.
    struct Waiting {
        Frame frame;
        std::int64_t experiment_id = kOfNoExperiment;
        std::string type = {};
    };
    std::mutex mutex;
    std::deque<Waiting> frames;   // guarded by mutex
    std::function<void()> ready;  // guarded by mutex
    bool has_ended = false;       // guarded by mutex
    std::vector<std::string> topics;
    EventFilter filter;

    void add(Waiting waiting, std::uint64_t id) {
        const std::lock_guard lock(mutex);
        if (has_ended) return;
        if (frames.size() >= kEventQueueMax) {
            frames.clear();
            waiting = {make_frame(id, "resync", "{}"), kOfNoExperiment, "resync"};
        }
        frames.push_back(std::move(waiting));
        if (frames.size() == 1 && ready) ready();
    }
    void end() {
        const std::lock_guard lock(mutex);
        if (std::exchange(has_ended, true)) return;
        frames.clear();
        if (ready) ready();
    }
    /// Whether it gets an event; ends it if it is not who it was.
    bool admits(std::int64_t experiment_id, std::string_view type) {
        if (filter.stands && !filter.stands()) {
            end();
            return false;
        }
        return !filter.shows ||
               (experiment_id != kOfNoExperiment && filter.shows(experiment_id, type));
    }
    void review() {
        if (filter.stands && !filter.stands()) return end();
        if (!filter.shows) return;
        std::map<std::pair<std::int64_t, std::string>, bool> judged;
        {
            const std::lock_guard lock(mutex);
            for (const Waiting& one : frames) judged[{one.experiment_id, one.type}] = true;
        }
        for (auto& [kind, is_shown] : judged)
            is_shown = kind.second == "resync" || filter.shows(kind.first, kind.second);
        const std::lock_guard lock(mutex);
        std::erase_if(frames, [&judged](const Waiting& one) {
            const auto found = judged.find({one.experiment_id, one.type});
            return found != judged.end() && !found->second;
        });
    }
};

struct EventHub::Topic {
    std::unordered_set<std::shared_ptr<EventSubscription::Queue>> readers;
    /// All events of this topic with ids from here on went into the ring.
    std::uint64_t kept_since = 0;
    std::int64_t last_reader_left_ms = 0;
};

struct EventHub::Stored {
    std::uint64_t id;
    std::string topic;
    Frame frame;
    std::int64_t experiment_id;
    std::string type;
};

EventSubscription::EventSubscription(EventHub& hub, std::shared_ptr<Queue> queue)
    : hub_(hub), queue_(std::move(queue)) {}

EventSubscription::~EventSubscription() {
    hub_.unsubscribe(queue_);
}

void EventSubscription::on_ready(std::function<void()> ready) {
    const std::lock_guard lock(queue_->mutex);
    queue_->ready = std::move(ready);
    if (queue_->ready && (queue_->has_ended || !queue_->frames.empty())) queue_->ready();
}

bool EventSubscription::has_ended() const {
    const std::lock_guard lock(queue_->mutex);
    return queue_->has_ended;
}

std::vector<std::shared_ptr<const std::string>> EventSubscription::take() {
    const std::lock_guard lock(queue_->mutex);
    std::vector<Frame> frames;
    frames.reserve(queue_->frames.size());
    for (Queue::Waiting& waiting : queue_->frames) frames.push_back(std::move(waiting.frame));
    queue_->frames.clear();
    return frames;
}

EventHub::EventHub(const Clock& clock)
    : clock_(clock), next_id_(static_cast<std::uint64_t>(clock.now_ms()) * 1000) {}

EventHub::~EventHub() = default;

/// The readers of the topic that have a filter.
std::vector<std::shared_ptr<EventSubscription::Queue>> EventHub::filtered_readers(
    const std::string& topic) const {
    std::vector<std::shared_ptr<EventSubscription::Queue>> readers;
    const std::lock_guard lock(mutex_);
    const auto found = topics_.find(topic);
    if (found == topics_.end()) return readers;
    for (const auto& reader : found->second.readers)
        if (!reader->filter.is_empty()) readers.push_back(reader);
    return readers;
}

std::uint64_t EventHub::publish(std::string_view topic, std::string_view type, const Json& data,
                                std::int64_t experiment_id) {
    if (!wanted(topic)) return 0;
    const std::string name(topic);
    // Outside of the lock: the text of a busy run's points takes milliseconds.
    const std::string text = to_text(data);
    std::map<const EventSubscription::Queue*, bool> judged;
    const auto readers = filtered_readers(name);  // they live as long as their verdicts
    for (const auto& reader : readers) judged[reader.get()] = reader->admits(experiment_id, type);
    const std::lock_guard lock(mutex_);
    const auto found = topics_.find(name);
    if (found == topics_.end()) return 0;
    const std::uint64_t id = next_id_++;
    const Frame frame = make_frame(id, type, text);
    ring_.push_back({id, name, frame, experiment_id, std::string(type)});
    if (ring_.size() > kEventRingMax) ring_.pop_front();
    for (const auto& reader : found->second.readers) {
        const auto verdict = judged.find(reader.get());
        const bool is_known = verdict != judged.end();
        if (is_known ? verdict->second : reader->admits(experiment_id, type))
            reader->add({frame, experiment_id, std::string(type)}, id);
    }
    return id;
}

bool EventHub::wanted(std::string_view topic) const {
    const std::lock_guard lock(mutex_);
    return !topics_.empty() && topics_.find(std::string(topic)) != topics_.end();
}

std::shared_ptr<EventSubscription> EventHub::subscribe(const std::vector<std::string>& topics,
                                                       std::optional<std::uint64_t> last_event_id,
                                                       EventFilter filter) {
    auto queue = std::make_shared<EventSubscription::Queue>();
    for (const std::string& topic : topics)
        if (std::find(queue->topics.begin(), queue->topics.end(), topic) == queue->topics.end() &&
            queue->topics.size() < kTopicsPerReaderMax)
            queue->topics.push_back(topic);
    queue->filter = std::move(filter);
    std::map<std::pair<std::int64_t, std::string>, bool> judged;
    if (!queue->filter.is_empty() && last_event_id)
        for (const auto& kind : kinds_since(*last_event_id))
            judged.emplace(kind, queue->admits(kind.first, kind.second));
    const auto may_see = [&](const Stored& stored) {
        if (queue->filter.is_empty()) return true;
        const auto verdict = judged.find({stored.experiment_id, stored.type});
        return verdict != judged.end() ? verdict->second
                                       : queue->admits(stored.experiment_id, stored.type);
    };
    const std::lock_guard lock(mutex_);
    forget_stale_topics();
    if (last_event_id && can_resume(queue->topics, *last_event_id)) {
        for (const Stored& stored : ring_)
            if (stored.id > *last_event_id &&
                std::find(queue->topics.begin(), queue->topics.end(), stored.topic) !=
                    queue->topics.end() &&
                may_see(stored))
                queue->add({stored.frame, stored.experiment_id, stored.type}, stored.id);
    } else if (last_event_id) {
        // The id just before the next one: from here on the reader has all.
        queue->add({make_frame(next_id_ - 1, "resync", "{}"), kOfNoExperiment, "resync"},
                   next_id_ - 1);
    }
    for (const std::string& topic : queue->topics) {
        Topic& entry = topics_[topic];
        if (entry.kept_since == 0) entry.kept_since = next_id_;
        entry.readers.insert(queue);
    }
    reader_count_.fetch_add(1);
    return std::shared_ptr<EventSubscription>(new EventSubscription(*this, std::move(queue)));
}

/// Experiments and types of the events that a reader may have missed.
std::set<std::pair<std::int64_t, std::string>> EventHub::kinds_since(std::uint64_t last) const {
    std::set<std::pair<std::int64_t, std::string>> kinds;
    const std::lock_guard lock(mutex_);
    for (const Stored& stored : ring_)
        if (stored.id > last) kinds.emplace(stored.experiment_id, stored.type);
    return kinds;
}

void EventHub::review_readers() {
    std::set<std::shared_ptr<EventSubscription::Queue>> readers;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, topic] : topics_)
            for (const auto& reader : topic.readers)
                if (!reader->filter.is_empty()) readers.insert(reader);
    }
    for (const auto& reader : readers) reader->review();
}

void EventHub::unsubscribe(const std::shared_ptr<EventSubscription::Queue>& queue) {
    reader_count_.fetch_sub(1);
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ms = clock_.monotonic_ms();
    for (const std::string& name : queue->topics) {
        const auto found = topics_.find(name);
        if (found == topics_.end()) continue;
        Topic& topic = found->second;
        topic.readers.erase(queue);
        topic.last_reader_left_ms = now_ms;
        if (topic.readers.empty()) left_topics_.emplace_back(now_ms, name);
    }
    forget_stale_topics();
}

/// Cost: O(1) for each reader that has left. REQUIRES: mutex_ is held.
void EventHub::forget_stale_topics() {
    const std::int64_t now_ms = clock_.monotonic_ms();
    while (!left_topics_.empty() && now_ms - left_topics_.front().first > kTopicLinger_ms) {
        const auto [left_ms, name] = std::move(left_topics_.front());
        left_topics_.pop_front();
        const auto found = topics_.find(name);
        if (found != topics_.end() && found->second.readers.empty() &&
            found->second.last_reader_left_ms == left_ms)
            topics_.erase(found);
    }
}

/// Whether the ring holds every event of `topics` after `last`. REQUIRES: mutex_ is held.
bool EventHub::can_resume(const std::vector<std::string>& topics, std::uint64_t last) const {
    if (last >= next_id_) return false;
    if (!ring_.empty() && ring_.size() >= kEventRingMax && ring_.front().id > last + 1)
        return false;
    return std::all_of(topics.begin(), topics.end(), [&](const std::string& name) {
        const auto found = topics_.find(name);
        return found != topics_.end() && found->second.kept_since <= last + 1;
    });
}

}  // namespace tune::tracker
