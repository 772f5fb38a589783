#pragma once
// What has to reach the server whatever happens to the connection: metrics of attempts, in order,
// and then their ends. Kept in memory up to a bound; behind it stand the log files, which are read
// again if this process dies.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/output/trial_output.h"
#include "worker/agent/server/backoff.h"
#include "worker/agent/server/sender.h"

namespace tune::worker {

/// Called on the outbox's threads.
struct OutboxEvents {
    /// The end of this attempt is with the server, or the server wants none: it can be forgotten.
    std::function<void(std::uint64_t serial)> finished;
    /// Before `finished`, where the server's answer says which checkpoints are still needed.
    std::function<void(tuner::NeededCheckpoints)> checkpoints;
    /// The attempt is not ours any more; its metrics were dropped.
    std::function<void(std::uint64_t serial)> stale;
    /// There is room for its metrics again after `has_room` was false.
    std::function<void(std::uint64_t serial)> room;
    std::function<void(const std::string& error)> contact;
    std::function<void()> unknown_agent;
};

/// All methods from any thread.
class Outbox final : public Sender {
public:
    /// Metrics and params waiting of one attempt, beyond which its log is read no further.
    static constexpr std::size_t kWaitingMax = 50'000;

    /// `threads` send at a time, so that the server can commit several ends together.
    [[nodiscard]] static Result<std::unique_ptr<Outbox>> create(const std::string& server_url,
                                                                std::string agent_id, int threads,
                                                                OutboxEvents events);
    ~Outbox() override;

    void open(std::uint64_t serial, const AttemptFiles& files, tuner::AttemptId id,
              ProgressRecord progress);
    /// Metrics read from the output. `resent`: an earlier agent sent them already; others wait a
    /// few milliseconds for the attempt's end.
    void add(std::uint64_t serial, Segment segment, bool resent = false);
    /// Metrics of another source (system metrics): no position in the output.
    void add_metrics(std::uint64_t serial, std::vector<tuner::ReportedMetric> metrics);
    /// Sent with what the attempt reports next, after kTagsWait_ms at the latest.
    void add_tags(std::uint64_t serial, std::vector<tuner::ReportedTag> tags);
    [[nodiscard]] bool has_room(std::uint64_t serial);
    /// Sent when all metrics of the attempt have been acknowledged.
    void finish(std::uint64_t serial, tuner::FinishRequest request);
    /// Forgets the attempt.
    void drop(std::uint64_t serial);

    /// While it lives, what is added waits for the rest, which then goes in one report.
    class Gathering {
    public:
        explicit Gathering(Outbox& outbox);
        ~Gathering();
        Gathering(const Gathering&) = delete;
        Gathering& operator=(const Gathering&) = delete;

    private:
        Outbox& outbox_;
    };

private:
    using Time = std::chrono::steady_clock::time_point;
    struct Entry {
        AttemptFiles files;
        tuner::AttemptId id;
        std::deque<Segment> waiting = {};  // those with an end position are of the output
        std::size_t waiting_values = 0;    // metrics and params in `waiting`
        std::size_t resent = 0;            // of the front of `waiting`
        OutputPosition acknowledged = {};
        std::optional<tuner::FinishRequest> finish = {};
        bool ends_alone = false;      // its end was not taken with a report: by its own route
        bool busy = false;            // a thread is sending for it
        bool was_full = false;        // has_room said no
        bool is_kept = false;         // the last report met a passing error, and goes again
        bool waits_for_more = false;  // what waits goes sooner if the end comes
        Time not_before = {};         // when it goes (again)
        Backoff backoff = {};         // of passing errors in a row
    };
    /// One attempt's part of a report.
    struct Part {
        std::uint64_t serial = 0;
        std::size_t segments = 0;
        std::size_t values = 0;  // metrics and params
        tuner::AttemptId id;
        tuner::AttemptReport report;  // with the end, if nothing else of the attempt waits
        bool has_end = false;
        std::optional<ProgressRecord> progress;  // to be noted before it is sent
        AttemptFiles files;
    };

    Outbox(std::string agent_id, OutboxEvents events);
    /// Something can be sent; under mutex_.
    void notify();
    /// `wait_ms`: how long it may wait for what else the attempt has to say.
    void add(std::uint64_t serial, Segment segment, bool resent, int wait_ms);
    void work(tracker::Client& client) override;
    [[nodiscard]] std::vector<Part> collect_reports();
    [[nodiscard]] std::optional<std::uint64_t> find_finish() const;
    /// When the next attempt whose metrics were kept may send again.
    [[nodiscard]] std::optional<Time> next_retry() const;
    static Part collect(std::uint64_t serial, Entry& entry, std::size_t values_max);
    void send_reports(tracker::Client& client, std::vector<Part> parts);
    void settle(const Part& part, const tuner::ReportResult& result);
    void keep(const Part& part, const std::string& why);
    void send_finish(tracker::Client& client, std::uint64_t serial);
    /// Repeats the call until it is answered by more than an error on the way. Absent: stopping.
    std::optional<Result<Json>> insist(tracker::Client& client, const std::string& path,
                                       const Json& body);

    const std::string agent_path_;
    const OutboxEvents events_;
    std::map<std::uint64_t, Entry> entries_;  // guarded by mutex_
    int gathering_ = 0;                       // guarded by mutex_
};

}  // namespace tune::worker
