// Thousands of simulated agents in one process and one thread, against a real server: each has the
// one long-poll of `tune agent` and its rules (numbers, acknowledgements, back-off with jitter),
// and a second connection while it has something to report. A trial is a timer.
// tests/bench/tuner/swarm_bench.py starts it, kills the server meanwhile, and compares what is
// printed here with what the store holds.
//   agent_swarm PORT TOKEN AGENTS ADDRESSES TRIAL_MS HEARTBEAT_MS [CA_FILE: with TLS]
// Prints one JSON object a line: {"ready": true} when all agents wait for the first time; at the
// end of stdin, the figures and every attempt that was leased ("attempts": agents by run/attempt).

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/worker/swarm/http_call.h"
#include "tuner/protocol.h"

namespace {

using namespace tune;
using namespace tune::swarm;

struct Options {
    std::uint16_t port = 0;
    std::string token;
    int agents = 0;
    int addresses = 1;
    int trial_ms = 0;
    int heartbeat_ms = 10'000;
    SSL_CTX* tls = nullptr;
};

double now_ms() {
    using Clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

double percentile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// Timers and what was measured, shared by all agents.
struct Swarm {
    explicit Swarm(Options given)
        : options(std::move(given)), epoll(epoll_create1(EPOLL_CLOEXEC)) {}

    void at(double at_ms, std::function<void()> call) { timers.emplace(at_ms, std::move(call)); }
    double draw(double from, double to) {
        return std::uniform_real_distribution<double>(from, to)(random);
    }
    std::string request(const std::string& path, const Json& body) const {
        const std::string text = to_text(body);
        return "POST /api/2.0/tune/agents/" + path +
               " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(options.port) +
               "\r\nAuthorization: Bearer " + options.token +
               "\r\nContent-Type: application/json\r\nContent-Length: " +
               std::to_string(text.size()) + "\r\n\r\n" + text;
    }
    /// Agents that the server knows, one more or less.
    void count_known(int more) {
        if (known == options.agents) away_since = now_ms();
        known += more;
        if (known < options.agents) return;
        if (!is_ready) std::printf("{\"ready\": true, \"ms\": %.0f}\n", now_ms() - away_since);
        if (is_ready) returns.push_back(now_ms() - away_since);
        is_ready = true;
        std::fflush(stdout);
    }

    const Options options;
    const int epoll;
    std::multimap<double, std::function<void()>> timers;
    std::mt19937_64 random{7};
    int known = 0;
    bool is_ready = false;
    bool is_over = false;
    double away_since = now_ms();
    std::vector<double> returns;  ///< how long until all agents were back
    std::vector<double> heartbeats;
    std::vector<double> late_answers;  ///< beyond the wait that was asked for
    std::vector<double> own_lateness;  ///< of timers: what this program or the machine adds
    std::vector<std::pair<double, double>> slow;  ///< heartbeats over 50 ms: when, how long
    std::vector<double> lease_to_start;
    std::deque<double> places;          ///< when attempts were reported as ended
    std::map<std::string, int> leased;  ///< by run and attempt: how often
    long finished = 0;
    long stale = 0;
    long refused = 0;  ///< answers 429
    long polls = 0;
};

class SimulatedAgent {
public:
    SimulatedAgent(Swarm& swarm, int number)
        : swarm_(swarm),
          id_("swarm-" + std::to_string(number)),
          session_(std::to_string(swarm.random())),
          poll_(swarm.epoll, way(number)),
          calls_(swarm.epoll, way(number)) {
        swarm_.at(now_ms() + swarm_.draw(0, 2000), [this] { go_on(); });
    }

private:
    [[nodiscard]] Way way(int number) const {
        return {swarm_.options.port,
                "127.0.0." + std::to_string(2 + number % swarm_.options.addresses),
                swarm_.options.tls};
    }

    void go_on() {
        if (swarm_.is_over) return;
        if (is_known_)
            poll();
        else
            enrol();
    }

    void enrol() {
        const tuner::RegisterRequest request{.agent_id = id_,
                                             .host = id_,
                                             .pid = 1,
                                             .slots = 1,
                                             .cpus = 1,
                                             .version = "swarm",
                                             .running = running_,
                                             .session = session_,
                                             .ack = ack_};
        poll_.start(swarm_.request("register", to_json(request)),
                    [this](int status, const std::string&) {
                        if (status != 200) return fail(status);
                        delay_ms_ = 50;
                        is_known_ = true;
                        count(true);
                        poll();
                    });
    }

    void poll() {
        tuner::PollRequest request{.session = session_,
                                   .turn = ++turn_,
                                   .ack = ack_,
                                   .running = running_,
                                   .free_slots = running_.empty() ? 1 : 0,
                                   .wants_tokens = true};
        const double wait =
            (running_.empty() ? 28'000 : swarm_.options.heartbeat_ms) * swarm_.draw(0.8, 1);
        request.wait_ms = static_cast<std::int64_t>(wait);
        ++swarm_.polls;
        poll_.start(swarm_.request(id_ + "/poll", to_json(request)),
                    [this, due = now_ms() + wait](int status, const std::string& body) {
                        if (status != 200) return fail(status);
                        delay_ms_ = 50;
                        count(true);
                        take(body, due);
                        go_on();
                    });
    }

    void take(const std::string& body, double due) {
        const double now = now_ms();
        const Result<Json> json = parse_json(body);
        const auto reply = tuner::from_json<tuner::PollReply>(json.value()).value();
        if (reply.sequence == ack_ && now >= due) swarm_.late_answers.push_back(now - due);
        ack_ = std::max(ack_, reply.sequence);
        for (const tuner::AttemptId& lost : reply.lost) drop(lost);
        for (const tuner::Lease& lease : reply.leases) {
            const tuner::AttemptId attempt{lease.run_id, lease.attempt};
            ++swarm_.leased[lease.run_id + "/" + std::to_string(lease.attempt)];
            if (!swarm_.places.empty()) {
                swarm_.lease_to_start.push_back(now - swarm_.places.front());
                swarm_.places.pop_front();
            }
            running_.push_back(attempt);
            const double end = now + swarm_.options.trial_ms * swarm_.draw(0.5, 1.5);
            swarm_.at(end, [this, attempt] { end_trial(attempt); });
            swarm_.at(now + (end - now) * swarm_.draw(0.2, 0.8), [this] { beat(); });
        }
    }

    void drop(const tuner::AttemptId& attempt) { std::erase(running_, attempt); }

    /// A call that renews what runs and is answered at once, as an interrupt of no poll is.
    void beat() {
        if (calls_.is_busy() || running_.empty()) return;
        const tuner::PollRequest request{
            .session = session_, .ack = ack_, .running = running_, .interrupts = true};
        calls_.start(swarm_.request(id_ + "/poll", to_json(request)),
                     [this, begin = now_ms()](int status, const std::string&) {
                         const double took = now_ms() - begin;
                         if (status == 200) swarm_.heartbeats.push_back(took);
                         if (status == 200 && took > 50) swarm_.slow.emplace_back(begin, took);
                         send_next();
                     });
    }

    void end_trial(const tuner::AttemptId& attempt) {
        tuner::AttemptReport report{.run_id = attempt.run_id, .attempt = attempt.attempt};
        report.metrics = {{"loss", swarm_.draw(0, 1), 1, 0}};
        report.finish = tuner::FinishRequest{};
        report.finish->request_id = attempt.run_id + "/" + std::to_string(attempt.attempt);
        ends_.push_back(std::move(report));
        if (!calls_.is_busy()) send_next();
    }

    void send_next() {
        if (ends_.empty() || swarm_.is_over) return;
        if (!is_reported_) swarm_.places.push_back(now_ms());
        is_reported_ = true;
        tuner::ReportRequest request;
        request.reports = {ends_.front()};
        calls_.start(swarm_.request(id_ + "/report", to_json(request)),
                     [this](int status, const std::string& body) { reported(status, body); });
    }

    void reported(int status, const std::string& body) {
        const auto again = [this] {
            swarm_.at(now_ms() + swarm_.draw(200, 1000), [this] {
                if (!calls_.is_busy()) send_next();
            });
        };
        if (status != 200) return again();
        const Result<Json> json = parse_json(body);
        const auto reply = tuner::from_json<tuner::ReportReply>(json.value()).value();
        const tuner::ReportResult& result = reply.results.front();
        const bool is_stale = !result.ok && result.error_code == "RESOURCE_CONFLICT";
        if (!result.finished && !is_stale) return again();
        ++(is_stale ? swarm_.stale : swarm_.finished);
        drop({result.run_id, result.attempt});
        ends_.pop_front();
        is_reported_ = false;
        send_next();
    }

    void count(bool is_there) {
        if (is_there == is_there_) return;
        is_there_ = is_there;
        swarm_.count_known(is_there ? 1 : -1);
    }

    void fail(int status) {
        if (status == 429) ++swarm_.refused;
        if (status == 404) is_known_ = false;
        count(false);
        swarm_.at(now_ms() + delay_ms_ * swarm_.draw(0.8, 1.2), [this] { go_on(); });
        delay_ms_ = std::min(delay_ms_ * 2, 2000.0);
    }

    Swarm& swarm_;
    const std::string id_;
    const std::string session_;
    HttpCall poll_;
    HttpCall calls_;
    std::int64_t turn_ = 0;
    std::int64_t ack_ = 0;
    std::vector<tuner::AttemptId> running_;
    std::deque<tuner::AttemptReport> ends_;
    bool is_known_ = false;  // the server said nothing else
    bool is_there_ = false;  // as far as it is seen from here
    bool is_reported_ = false;
    double delay_ms_ = 50;
};

bool stdin_has_ended() {
    char byte = 0;
    return ::read(STDIN_FILENO, &byte, 1) == 0;
}

void run(Swarm& swarm) {
    epoll_event stop{};
    stop.events = EPOLLIN;
    epoll_ctl(swarm.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &stop);
    std::array<epoll_event, 256> events;
    while (!swarm.is_over) {
        const double due = swarm.timers.empty() ? now_ms() + 1000 : swarm.timers.begin()->first;
        const int wait = static_cast<int>(std::clamp(due - now_ms() + 1, 0.0, 1000.0));
        const int count = epoll_wait(swarm.epoll, events.data(), events.size(), wait);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.ptr == nullptr)
                swarm.is_over = stdin_has_ended();
            else
                static_cast<HttpCall*>(event.data.ptr)->on_event(event.events);
        }
        while (!swarm.timers.empty() && swarm.timers.begin()->first <= now_ms()) {
            swarm.own_lateness.push_back(now_ms() - swarm.timers.begin()->first);
            const auto call = std::move(swarm.timers.begin()->second);
            swarm.timers.erase(swarm.timers.begin());
            call();
        }
    }
}

Json figures(Swarm& swarm) {
    Json attempts = Json::object();
    for (const auto& [attempt, times] : swarm.leased) attempts[attempt] = times;
    return {{"heartbeat_p50", percentile(swarm.heartbeats, 0.5)},
            {"heartbeat_p99", percentile(swarm.heartbeats, 0.99)},
            {"heartbeats", swarm.heartbeats.size()},
            {"late_p99", percentile(swarm.late_answers, 0.99)},
            {"own_p99", percentile(swarm.own_lateness, 0.99)},
            {"own_max", percentile(swarm.own_lateness, 1)},
            {"slow", swarm.slow},
            {"lease_to_start_p50", percentile(swarm.lease_to_start, 0.5)},
            {"lease_to_start_p99", percentile(swarm.lease_to_start, 0.99)},
            {"leases", swarm.lease_to_start.size()},
            {"return_p50", percentile(swarm.returns, 0.5)},
            {"return_max", percentile(swarm.returns, 1)},
            {"returns", swarm.returns.size()},
            {"finished", swarm.finished},
            {"stale", swarm.stale},
            {"refused", swarm.refused},
            {"polls", swarm.polls},
            {"attempts", attempts}};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 7 && argc != 8) {
        std::fprintf(
            stderr,
            "usage: agent_swarm PORT TOKEN AGENTS ADDRESSES TRIAL_MS HEARTBEAT_MS [CA_FILE]\n");
        return 2;
    }
    // OpenSSL writes to a connection that the server may have closed.
    std::signal(SIGPIPE, SIG_IGN);
    std::shared_ptr<SSL_CTX> tls;
    if (argc == 8 && (tls = trusting(argv[7])) == nullptr) {
        std::fprintf(stderr, "agent_swarm: %s holds no certificates\n", argv[7]);
        return 2;
    }
    Swarm swarm({.port = static_cast<std::uint16_t>(std::atoi(argv[1])),
                 .token = argv[2],
                 .agents = std::atoi(argv[3]),
                 .addresses = std::max(1, std::atoi(argv[4])),
                 .trial_ms = std::atoi(argv[5]),
                 .heartbeat_ms = std::atoi(argv[6]),
                 .tls = tls.get()});
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    std::vector<std::unique_ptr<SimulatedAgent>> agents;
    for (int i = 0; i < swarm.options.agents; ++i)
        agents.push_back(std::make_unique<SimulatedAgent>(swarm, i));
    run(swarm);
    std::printf("%s\n", to_text(figures(swarm)).c_str());
    return 0;
}
