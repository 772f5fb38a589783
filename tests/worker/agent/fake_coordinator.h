#pragma once
// The server's side of the agent protocol, scripted by a test, behind the real HTTP server: the
// test decides what is leased, lost or refused, which the real studies would only do by chance.
// (The real server is in tests/e2e/test_agent_*.py.)

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tracker/http/server.h"
#include "tuner/protocol.h"

namespace tune::worker {

class FakeCoordinator {
public:
    FakeCoordinator();
    ~FakeCoordinator();

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

    /// The server goes away, at once and with its connections, and comes back on the same port.
    void go_away();
    void come_back();

    /// Leases are given in the order in which they are offered.
    void offer(tuner::Lease lease);

    /// Waits until so many of them were given.
    void wait_for_leases(std::size_t count);

    void direct(const tuner::Directive& directive);
    /// From now on this attempt is nobody's: reports and ends of it get RESOURCE_CONFLICT.
    void take_away(const std::string& run_id, int attempt = 1);
    void forget_agent();
    /// The next `times` requests for leases are answered at once, with none.
    void answer_leases_empty(int times);
    /// The next `times` attempts' reports are refused one by one with this code; 0: no more.
    void refuse_reports(Code code, int times);
    /// Waits until so many were.
    void wait_for_refusals(int times);
    /// What the answers to ends say from now on.
    void answer_ends(tuner::FinishReply reply);
    /// The next upload arrives, but late: it is kept and answered with release_upload().
    void hold_upload();
    void release_upload();

    struct Finish {
        std::string run_id;
        int attempt = 0;
        tuner::FinishRequest request;
    };
    /// Waits for the end of a run's attempt to be reported. Fails the test if it never is.
    Finish wait_for_finish(const std::string& run_id, int attempt = 0);
    /// Waits until the condition holds of what was received; `holds` runs under the lock.
    bool wait_until(const std::function<bool()>& holds);
    void wait_for_metrics(const std::string& run_id, std::size_t count);

    /// "key@step=value key@step=value ..." in order of arrival, equal ones (as the store) once.
    [[nodiscard]] std::string metrics(const std::string& run_id);
    [[nodiscard]] std::vector<tuner::ReportedMetric> reported(const std::string& run_id);
    [[nodiscard]] int finish_calls(const std::string& run_id);
    /// Empty if it was never put; see also wait_for_artifact.
    std::string wait_for_artifact(const std::string& path, const std::string& part = "");

    // Under the lock of wait_until:
    std::vector<tuner::RegisterRequest> registrations;
    std::map<std::string, std::string> artifacts;   // path -> content
    std::map<std::string, std::size_t> sent_bytes;  // path -> of all its uploads together
    int requeued = 0;
    std::map<std::string, std::map<std::string, std::string>> tags;  // by run

    std::int64_t lease_ttl_ms = 60'000;
    std::int64_t heartbeat_ms = 10'000;

private:
    struct Waiting {
        std::string request_id;
        int free_slots = 0;
        tracker::Responder respond;
        std::shared_ptr<const bool> is_answered = {};  ///< of the poll whose part it is
    };
    struct Upload {
        std::string path;
        std::string range;  // Content-Range; empty: the whole file
        std::string content;
        tracker::Responder respond;
    };
    class Sink;
    void take(Upload upload);
    void add_routes();
    void serve();
    [[nodiscard]] std::ptrdiff_t places() const;
    void answer_waiting();
    void interrupt_polls();
    void wait_for_lease(Waiting waiting);
    void requeue_what_the_agent_lacks(const tuner::RegisterRequest& agent);
    tracker::Response on_register(const Json& body);
    void on_lease(const Json& body, tracker::Responder respond);
    void on_heartbeat(const Json& body, tracker::Responder respond);
    void on_poll(const Json& body, const tracker::Responder& respond);
    tracker::Response on_report(const Json& body);
    tracker::Response on_finish(const tracker::Request& request);
    [[nodiscard]] tuner::HeartbeatReply heartbeat_reply() const;

    tracker::Router router_;
    std::unique_ptr<tracker::Server> server_;
    std::uint16_t port_ = 0;

    std::mutex mutex_;
    std::condition_variable changed_;
    bool known_ = false;
    std::deque<tuner::Lease> offered_;
    std::vector<tuner::Lease> leased_;
    std::map<std::string, std::string> lease_answers_;  // by request id
    std::vector<Waiting> waiting_leases_;
    std::vector<tracker::Responder> waiting_heartbeats_;
    std::int64_t interrupted_turn_ = 0;
    std::vector<tuner::Directive> directives_;
    std::set<std::string> taken_;
    std::map<std::string, std::vector<tuner::ReportedMetric>> reported_;
    std::vector<Finish> finishes_;
    tuner::FinishReply finish_reply_;
    Code refusal_ = Code::kInternalError;
    int refusals_left_ = 0;
    int refused_ = 0;
    int empty_leases_left_ = 0;
    bool holds_next_ = false;
    std::optional<Upload> held_;
    std::map<std::string, int> finish_calls_;
};

}  // namespace tune::worker
