#pragma once
// Alerts on runs: rules, what the commits say about them, and what is done.
//
//   observer thread: commits -> rules -> what is to be marked
//   own thread:      tag tune.alert.<kind> (and KILLED for silence) -> live event; the tag's commit
//                    makes the webhook RUN/ALERTED (tracker/webhooks)
//
// Nothing polls the database. State survives a restart because it is in the store: rules are
// documents, an alert that was given is a tag, a plateau is counted again from the history when the
// run logs its next point, and silence is counted from the restart.
//
// Runs of the tuner: a trial (tag tune.trial) that is silent is marked but stays RUNNING, because
// its end is the tuner's: the lease of its agent or client, and the study's time-out, end the
// attempt and decide whether it is tried again. A study's own run is never watched.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "tracker/alerts/alert_rule.h"
#include "tracker/alerts/silence_watch.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/store/store.h"

namespace tune::tracker {

inline constexpr const char* kAlertCollection = "alerts";
/// Alerts, and histories to be read, that wait for the engine's thread; further ones are dropped
/// and counted: the run's next point makes them again.
inline constexpr std::size_t kAlertQueueMax = 10'000;
/// Entries of half of a table (plateaus of runs, alerts given): when there are more, the older half
/// is forgotten and read back from the store when needed. About 150 bytes each.
inline constexpr std::size_t kAlertHalfMax = 5'000;

/// A table that forgets what was not used for long. Not thread-safe.
template <class Value>
class TwoHalves {
public:
    /// nullptr: not there (any more). Valid until the next call.
    Value* find(const std::string& key) {
        if (const auto found = young_.find(key); found != young_.end()) return &found->second;
        const auto found = old_.find(key);
        if (found == old_.end()) return nullptr;
        auto node = old_.extract(found);
        return &put(key, std::move(node.mapped()));
    }
    Value& put(const std::string& key, Value value) {
        if (young_.size() >= kAlertHalfMax) {
            old_ = std::move(young_);
            young_.clear();
        }
        return young_.insert_or_assign(key, std::move(value)).first->second;
    }
    void erase(const std::string& key) {
        young_.erase(key);
        old_.erase(key);
    }
    void clear() {
        young_.clear();
        old_.clear();
    }

private:
    std::unordered_map<std::string, Value> young_;
    std::unordered_map<std::string, Value> old_;
};

/// Thread-safe.
class AlertEngine final : public CommitObserver {
public:
    /// Reads the rules and joins the store as observer. REQUIRES: no command has been submitted
    /// yet. Errors: those of the store.
    [[nodiscard]] static Result<std::unique_ptr<AlertEngine>> open(Store& store, EventHub& hub,
                                                                   const Clock& clock);
    ~AlertEngine() override { stop(); }

    /// Begins to watch and to mark; a program that only looks into a folder never calls it.
    void start();
    /// Idempotent; before the store is stopped.
    void stop();

    /// Oldest first.
    [[nodiscard]] std::vector<AlertRule> rules() const;
    /// Blocking (commit). Errors: kResourceExhausted beyond kAlertRulesMax; the store's.
    [[nodiscard]] Result<AlertRule> create(AlertRule rule);
    /// Blocking. Errors: kResourceDoesNotExist.
    [[nodiscard]] Result<void> remove(const std::string& alert_id);

    struct Stats {
        std::size_t rules = 0;
        std::size_t watched_runs = 0;
        std::size_t waiting = 0;
        std::uint64_t dropped = 0;
        std::array<std::uint64_t, 3> given = {};  ///< by AlertKind
    };
    [[nodiscard]] Stats stats() const;

    void on_commit(const Commit& commit) override;

private:
    struct Alert {
        AlertKind kind = AlertKind::kNan;
        std::string run_id;
        ExperimentId experiment_id = 0;
        std::string message;
        bool ends_run = false;
    };
    /// A plateau whose history must be read first.
    struct Unread {
        AlertRule rule;
        std::string run_id;
        ExperimentId experiment_id = 0;
    };
    struct Plateau {
        PlateauState state;
        bool is_read = false;   // else the history is being read
        bool is_stale = false;  // points came while it was read
        bool is_given = false;
    };

    AlertEngine(Store& store, EventHub& hub, const Clock& clock)
        : store_(store), hub_(hub), clock_(clock) {}
    [[nodiscard]] Result<void> load();

    // All with mutex_ held.
    void take(const Event& event);
    void take_metrics(const MetricsLogged& logged);
    void take_plateau(const AlertRule& rule, const MetricsLogged& logged);
    void take_silence(const Event& event);
    void give(Alert alert);
    void queue_unread(Unread unread);
    void find_silent();
    [[nodiscard]] std::optional<std::int64_t> silence_limit_ms(ExperimentId id) const;
    [[nodiscard]] bool has_silence_rule() const;

    // On the engine's thread; the lock is not held while the store works.
    void run();
    void watch_running(std::unique_lock<std::mutex>& lock);
    void read_history(std::unique_lock<std::mutex>& lock, const Unread& unread);
    void mark(std::unique_lock<std::mutex>& lock, const Alert& alert);

    Store& store_;
    EventHub& hub_;
    const Clock& clock_;
    std::mutex changes_;                  // one change of the rules at a time
    std::atomic<bool> has_rules_{false};  // so that commits cost nothing without rules
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<AlertRule> rules_;
    SilenceWatch watch_;
    TwoHalves<Plateau> plateaus_;  // by rule and run
    TwoHalves<bool> given_;        // by kind and run: not to be looked at again
    std::deque<Alert> alerts_;
    std::deque<Unread> unread_;
    Stats stats_;
    std::int64_t next_check_ms_ = 0;
    bool must_watch_ = false;  // RUNNING runs must be read from the store
    bool is_watch_full_ = false;
    bool is_stopping_ = false;
    std::thread thread_;
};

}  // namespace tune::tracker
