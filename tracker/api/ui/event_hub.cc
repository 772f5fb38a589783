// Publishing never waits for a reader: a frame is made once and shared, a full queue becomes one
// `resync`. A reader that reconnects gets what it missed only if the ring still holds every event
// of its topics since; otherwise a `resync`, so it can be behind, but never wrong without knowing.
//
// Who may not see all has a filter, which is asked at each event: what was granted or taken away
// since the stream began counts. It may read the store, so the readers are listed under the lock,
// asked without it, and served under it; one that came in between is asked there.

#include "tracker/api/ui/event_hub.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

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
    std::mutex mutex;
    std::deque<Frame> frames;
    std::function<void()> ready;
    std::vector<std::string> topics;
    EventFilter filter;  // empty: it sees all

    void add(Frame frame, std::uint64_t id) {
        const std::lock_guard lock(mutex);
        if (frames.size() >= kEventQueueMax) {
            frames.clear();
            frame = make_frame(id, "resync", "{}");
        }
        frames.push_back(std::move(frame));
        if (frames.size() == 1 && ready) ready();
    }
};

struct EventHub::Topic {
    std::vector<std::shared_ptr<EventSubscription::Queue>> readers;
    /// All events of this topic with ids from here on went into the ring.
    std::uint64_t kept_since = 0;
    std::int64_t last_reader_left_ms = 0;
};

struct EventHub::Stored {
    std::uint64_t id;
    std::string topic;
    Frame frame;
    std::int64_t experiment_id;
};

EventSubscription::EventSubscription(EventHub& hub, std::shared_ptr<Queue> queue)
    : hub_(hub), queue_(std::move(queue)) {}

EventSubscription::~EventSubscription() {
    hub_.unsubscribe(queue_);
}

void EventSubscription::on_ready(std::function<void()> ready) {
    const std::lock_guard lock(queue_->mutex);
    queue_->ready = std::move(ready);
    if (queue_->ready && !queue_->frames.empty()) queue_->ready();
}

std::vector<std::shared_ptr<const std::string>> EventSubscription::take() {
    const std::lock_guard lock(queue_->mutex);
    std::vector<Frame> frames(queue_->frames.begin(), queue_->frames.end());
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
        if (reader->filter) readers.push_back(reader);
    return readers;
}

std::uint64_t EventHub::publish(std::string_view topic, std::string_view type, const Json& data,
                                std::int64_t experiment_id) {
    if (!wanted(topic)) return 0;
    const std::string name(topic);
    // Outside of the lock: the text of a busy run's points takes milliseconds.
    const std::string text = to_text(data);
    const auto may_see = [experiment_id](const EventSubscription::Queue& reader) {
        return experiment_id != kOfNoExperiment && reader.filter(experiment_id);
    };
    std::map<const EventSubscription::Queue*, bool> judged;
    const auto readers = filtered_readers(name);  // they live as long as their verdicts
    for (const auto& reader : readers) judged[reader.get()] = may_see(*reader);
    const std::lock_guard lock(mutex_);
    const auto found = topics_.find(name);
    if (found == topics_.end()) return 0;
    const std::uint64_t id = next_id_++;
    const Frame frame = make_frame(id, type, text);
    ring_.push_back({id, name, frame, experiment_id});
    if (ring_.size() > kEventRingMax) ring_.pop_front();
    for (const auto& reader : found->second.readers) {
        const auto verdict = judged.find(reader.get());
        const bool is_known = verdict != judged.end();
        if (!reader->filter || (is_known ? verdict->second : may_see(*reader)))
            reader->add(frame, id);
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
    std::map<std::int64_t, bool> judged = {{kOfNoExperiment, false}};
    if (queue->filter && last_event_id)
        for (const std::int64_t id : experiments_since(*last_event_id))
            judged.emplace(id, queue->filter(id));
    const auto may_see = [&](std::int64_t id) {
        if (!queue->filter) return true;
        const auto verdict = judged.find(id);
        return verdict != judged.end() ? verdict->second : queue->filter(id);
    };
    const std::lock_guard lock(mutex_);
    forget_stale_topics();
    if (last_event_id && can_resume(queue->topics, *last_event_id)) {
        for (const Stored& stored : ring_)
            if (stored.id > *last_event_id &&
                std::find(queue->topics.begin(), queue->topics.end(), stored.topic) !=
                    queue->topics.end() &&
                may_see(stored.experiment_id))
                queue->add(stored.frame, stored.id);
    } else if (last_event_id) {
        // The id just before the next one: from here on the reader has all.
        queue->add(make_frame(next_id_ - 1, "resync", "{}"), next_id_ - 1);
    }
    for (const std::string& topic : queue->topics) {
        Topic& entry = topics_[topic];
        if (entry.kept_since == 0) entry.kept_since = next_id_;
        entry.readers.push_back(queue);
    }
    reader_count_.fetch_add(1);
    return std::shared_ptr<EventSubscription>(new EventSubscription(*this, std::move(queue)));
}

/// The experiments of the events that a reader may have missed.
std::set<std::int64_t> EventHub::experiments_since(std::uint64_t last) const {
    std::set<std::int64_t> ids;
    const std::lock_guard lock(mutex_);
    for (const Stored& stored : ring_)
        if (stored.id > last && stored.experiment_id != kOfNoExperiment)
            ids.insert(stored.experiment_id);
    return ids;
}

void EventHub::unsubscribe(const std::shared_ptr<EventSubscription::Queue>& queue) {
    reader_count_.fetch_sub(1);
    const std::lock_guard lock(mutex_);
    for (const std::string& name : queue->topics) {
        const auto found = topics_.find(name);
        if (found == topics_.end()) continue;
        std::erase(found->second.readers, queue);
        found->second.last_reader_left_ms = clock_.monotonic_ms();
    }
    forget_stale_topics();
}

/// REQUIRES: mutex_ is held.
void EventHub::forget_stale_topics() {
    const std::int64_t now_ms = clock_.monotonic_ms();
    std::erase_if(topics_, [&](const auto& item) {
        const Topic& topic = item.second;
        return topic.readers.empty() && now_ms - topic.last_reader_left_ms > kTopicLinger_ms;
    });
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
