#pragma once
// Live events: whoever knows something new publishes it under a topic; each open browser page reads
// the topics it subscribed to. Slow or absent readers never hold up a publisher.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"

namespace tune::tracker {

class EventHub;

/// What a reader may see, as things are now; both empty: everything. They may read the store: they
/// are called without a lock of the hub, mostly, and once per event.
struct EventFilter {
    /// Whether events of this type of this experiment are for it.
    std::function<bool(std::int64_t experiment_id, std::string_view type)> shows = {};
    /// Whether the reader is still who subscribed; if not, the subscription ends.
    std::function<bool()> stands = {};

    [[nodiscard]] bool is_empty() const { return !shows && !stands; }
};

/// The experiment of events that are of none: readers with a filter never get them.
inline constexpr std::int64_t kOfNoExperiment = std::numeric_limits<std::int64_t>::min();

/// One reader's queue of server-sent-event frames ("id: 7\nevent: run\ndata: {...}\n\n"). Holds at
/// most kEventQueueMax of them; one more replaces all by a single `resync` event, after which the
/// page reads the state anew. Unsubscribes when destroyed. Thread-safe.
class EventSubscription {
public:
    ~EventSubscription();
    EventSubscription(const EventSubscription&) = delete;
    EventSubscription& operator=(const EventSubscription&) = delete;

    /// `ready` is called, from any thread and possibly from within this call, when the subscription
    /// ends, and whenever frames wait that take() has not returned yet; at least once after each
    /// take() that frames follow. It must not block or call back into the hub. An empty function
    /// stops the calls; after that call returns, none is running.
    void on_ready(std::function<void()> ready);

    /// Whether the reader lost its rights: nothing comes any more.
    [[nodiscard]] bool has_ended() const;

    /// The waiting frames, oldest first; empties the queue.
    [[nodiscard]] std::vector<std::shared_ptr<const std::string>> take();

    /// The reader's side of the hub.
    struct Queue;

private:
    friend class EventHub;
    EventSubscription(EventHub& hub, std::shared_ptr<Queue> queue);

    EventHub& hub_;
    std::shared_ptr<Queue> queue_;
};

/// Thread-safe. Outlives all its subscriptions. Memory is bounded: kEventRingMax events, and one
/// entry per topic that has a reader or had one in the last kTopicLinger_ms.
class EventHub {
public:
    /// Events kept for readers that reconnect with Last-Event-ID.
    static constexpr std::size_t kEventRingMax = 4096;
    /// A topic is kept for this long after its last reader left: longer than a browser's reconnect.
    static constexpr std::int64_t kTopicLinger_ms = 60'000;
    /// Topics one reader may name.
    static constexpr std::size_t kTopicsPerReaderMax = 64;

    /// Event ids start at the clock's time, so that those of an earlier process are recognised as
    /// too old to resume from.
    explicit EventHub(const Clock& clock);
    ~EventHub();

    /// Queues the event for all readers of `topic` and returns its id (ids grow by one). Events of
    /// a topic that nobody wants are dropped (0). The payload is serialised once, and only if
    /// somebody wants it. `type` and `topic` hold no line breaks. Of `experiment_id` is all that
    /// the event says; readers with a filter get it if they may see that.
    std::uint64_t publish(std::string_view topic, std::string_view type, const Json& data,
                          std::int64_t experiment_id = kOfNoExperiment);

    /// Whether publish() would keep an event of this topic. Ask before computing a payload.
    [[nodiscard]] bool wanted(std::string_view topic) const;

    /// A reader of `topics`. With `last_event_id` it first gets what it missed since; if that is
    /// not in memory any more, one `resync`. With `filter` it gets the events that this lets
    /// through, of those that it missed too; then the call may read the store.
    [[nodiscard]] std::shared_ptr<EventSubscription> subscribe(
        const std::vector<std::string>& topics, std::optional<std::uint64_t> last_event_id,
        EventFilter filter = {});

    /// Asks the readers' filters again: whoever is not who they were is ended, and of what waits to
    /// be sent goes what may not be seen any more. May read the store. Cost: O(readers).
    void review_readers();

    /// Readers there are now.
    [[nodiscard]] std::size_t reader_count() const { return reader_count_.load(); }

private:
    friend class EventSubscription;
    struct Topic;
    struct Stored;

    void unsubscribe(const std::shared_ptr<EventSubscription::Queue>& queue);
    void forget_stale_topics();
    [[nodiscard]] std::vector<std::shared_ptr<EventSubscription::Queue>> filtered_readers(
        const std::string& topic) const;
    [[nodiscard]] std::set<std::pair<std::int64_t, std::string>> kinds_since(
        std::uint64_t last) const;
    [[nodiscard]] bool can_resume(const std::vector<std::string>& topics, std::uint64_t last) const;

    const Clock& clock_;
    std::atomic<std::size_t> reader_count_{0};
    mutable std::mutex mutex_;
    std::uint64_t next_id_;
    std::deque<Stored> ring_;
    std::unordered_map<std::string, Topic> topics_;
    /// Topics whose last reader left, and when, in that order; some may have readers again.
    std::deque<std::pair<std::int64_t, std::string>> left_topics_;
};

}  // namespace tune::tracker
