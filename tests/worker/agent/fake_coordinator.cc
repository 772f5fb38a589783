#include "tests/worker/agent/fake_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/json.h"

namespace tune::worker {
namespace {

using tracker::Method;
using tracker::Request;
using tracker::Responder;
using tracker::Response;

constexpr auto kPatience = std::chrono::seconds(60);  // only ever spent by a test that fails
constexpr const char* kAgents = "/api/2.0/tune/agents/";

std::string token(const std::string& run_id, int attempt) {
    return run_id + "/" + std::to_string(attempt);
}

Response unknown_agent() {
    return tracker::error_response(Error{Code::kResourceDoesNotExist, "unknown agent"});
}

}  // namespace

class FakeCoordinator::Sink : public tracker::BodySink {
public:
    Sink(FakeCoordinator& owner, const Request& request)
        : owner_(owner),
          path_(request.parameter("path")),
          range_(request.header("Content-Range")) {}
    void write(std::string_view chunk, std::function<void(Result<void>)> done) override {
        content_ += chunk;
        done({});
    }
    void finish(Responder respond) override {
        owner_.take({path_, range_, content_, std::move(respond)});
    }

private:
    FakeCoordinator& owner_;
    std::string path_;
    std::string range_;
    std::string content_;
};

FakeCoordinator::FakeCoordinator() {
    add_routes();
    serve();
}

FakeCoordinator::~FakeCoordinator() {
    go_away();
}

void FakeCoordinator::serve() {
    tracker::ServerOptions options;
    options.port = port_;
    options.drain_timeout_ms = 0;
    Result<std::unique_ptr<tracker::Server>> server =
        tracker::Server::start(std::move(options), router_);
    ASSERT_TRUE(server) << server.error().text();
    server_ = std::move(*server);
    port_ = server_->port();
}

void FakeCoordinator::go_away() {
    if (server_) server_->stop();
    server_.reset();
    const std::lock_guard lock(mutex_);
    waiting_leases_.clear();
    waiting_heartbeats_.clear();
    held_.reset();
}

void FakeCoordinator::come_back() {
    serve();
}

void FakeCoordinator::add_routes() {
    const auto json = [this](const std::string& path,
                             std::function<void(const Json&, Responder)> handle) {
        router_.add({Method::kPost,
                     tracker::Access::kOpen,
                     path,
                     tracker::Body::kJson,
                     "",
                     [handle](std::shared_ptr<Request> request, Responder respond) {
                         handle(parse_json(request->body).value(), std::move(respond));
                     },
                     {}});
    };
    json(std::string(kAgents) + "register",
         [this](const Json& body, Responder respond) { respond(on_register(body)); });
    json(std::string(kAgents) + "{id}/lease",
         [this](const Json& body, Responder respond) { on_lease(body, std::move(respond)); });
    json(std::string(kAgents) + "{id}/heartbeat",
         [this](const Json& body, Responder respond) { on_heartbeat(body, std::move(respond)); });
    json(std::string(kAgents) + "{id}/poll",
         [this](const Json& body, const Responder& respond) { on_poll(body, respond); });
    json(std::string(kAgents) + "{id}/report",
         [this](const Json& body, Responder respond) { respond(on_report(body)); });
    router_.add({Method::kPost,
                 tracker::Access::kOpen,
                 std::string(kAgents) + "{id}/attempts/{run_id}/{attempt}/finish",
                 tracker::Body::kJson,
                 "",
                 [this](std::shared_ptr<Request> request, Responder respond) {
                     respond(on_finish(*request));
                 },
                 {}});
    router_.add({Method::kGet,
                 tracker::Access::kOpen,
                 "/api/2.0/mlflow/experiments/get",
                 tracker::Body::kNone,
                 "",
                 [](std::shared_ptr<Request>, Responder respond) {
                     respond(tracker::json_response(
                         {{"experiment", {{"artifact_location", "mlflow-artifacts:/7"}}}}));
                 },
                 {}});
    router_.add(
        {Method::kPut,
         tracker::Access::kOpen,
         "/api/2.0/mlflow-artifacts/artifacts/{path...}",
         tracker::Body::kStream,
         "",
         {},
         [this](std::shared_ptr<Request> request) -> Result<std::unique_ptr<tracker::BodySink>> {
             return std::unique_ptr<tracker::BodySink>(std::make_unique<Sink>(*this, *request));
         }});
}

void FakeCoordinator::offer(tuner::Lease lease) {
    const std::lock_guard lock(mutex_);
    offered_.push_back(std::move(lease));
    answer_waiting();
}

/// Of all agents, as each said last: one that left has none.
std::ptrdiff_t FakeCoordinator::places() const {
    std::map<std::string, int> slots;
    for (const tuner::RegisterRequest& said : registrations) slots[said.agent_id] = said.slots;
    return std::accumulate(
        slots.begin(), slots.end(), std::ptrdiff_t{0},
        [](std::ptrdiff_t sum, const auto& agent) { return sum + agent.second; });
}

void FakeCoordinator::answer_waiting() {
    std::erase_if(waiting_leases_, [](const Waiting& waiting) {
        return waiting.is_answered && *waiting.is_answered;
    });
    const auto wants_some = [](const Waiting& waiting) { return waiting.free_slots > 0; };
    // As the real server: a poll may have counted a place whose attempt ended meanwhile.
    const auto has_place = [this] {
        return offered_.front().pool || registrations.empty() ||
               std::count_if(leased_.begin(), leased_.end(),
                             [](const tuner::Lease& lease) { return !lease.pool; }) < places();
    };
    while (!offered_.empty() && has_place()) {
        const auto next = std::find_if(waiting_leases_.begin(), waiting_leases_.end(), wants_some);
        if (next == waiting_leases_.end()) break;
        Waiting waiting = std::move(*next);
        waiting_leases_.erase(next);
        tuner::LeaseReply reply;
        for (int i = 0; i < waiting.free_slots && !offered_.empty() && has_place(); ++i) {
            leased_.push_back(offered_.front());
            reply.leases.push_back(std::move(offered_.front()));
            offered_.pop_front();
        }
        lease_answers_[waiting.request_id] = to_text(tuner::to_json(reply));
        waiting.respond(tracker::json_text_response(lease_answers_[waiting.request_id]));
    }
    changed_.notify_all();
}

void FakeCoordinator::direct(const tuner::Directive& directive) {
    const std::lock_guard lock(mutex_);
    directives_.push_back(directive);
    for (const Responder& respond : waiting_heartbeats_)
        respond(tracker::json_response(tuner::to_json(heartbeat_reply())));
    waiting_heartbeats_.clear();
}

void FakeCoordinator::take_away(const std::string& run_id, int attempt) {
    const std::lock_guard lock(mutex_);
    taken_.insert(token(run_id, attempt));
    for (const Responder& respond : waiting_heartbeats_)
        respond(tracker::json_response(tuner::to_json(heartbeat_reply())));
    waiting_heartbeats_.clear();
}

void FakeCoordinator::wait_for_leases(std::size_t count) {
    EXPECT_TRUE(wait_until([&] { return leased_.size() >= count; }));
}

void FakeCoordinator::forget_agent() {
    const std::lock_guard lock(mutex_);
    known_ = false;
    for (const Responder& respond : waiting_heartbeats_) respond(unknown_agent());
    for (const Waiting& waiting : waiting_leases_) waiting.respond(unknown_agent());
    waiting_heartbeats_.clear();
    waiting_leases_.clear();
}

void FakeCoordinator::answer_leases_empty(int times) {
    const std::lock_guard lock(mutex_);
    empty_leases_left_ = times;
}

void FakeCoordinator::refuse_reports(Code code, int times) {
    const std::lock_guard lock(mutex_);
    refusal_ = code;
    refusals_left_ = times;
}

void FakeCoordinator::wait_for_refusals(int times) {
    wait_until([&] { return refused_ >= times; });
}

tuner::HeartbeatReply FakeCoordinator::heartbeat_reply() const {
    tuner::HeartbeatReply reply;
    reply.directives = directives_;
    for (const std::string& taken : taken_)
        reply.lost.push_back(
            {taken.substr(0, taken.find('/')), std::stoi(taken.substr(taken.find('/') + 1))});
    return reply;
}

Response FakeCoordinator::on_register(const Json& body) {
    const std::lock_guard lock(mutex_);
    auto agent = tuner::from_json<tuner::RegisterRequest>(body).value();
    const bool has_changed =
        known_ && !registrations.empty() && registrations.back().agent_id == agent.agent_id &&
        (registrations.back().gpus != agent.gpus || registrations.back().slots != agent.slots);
    registrations.push_back(std::move(agent));
    known_ = true;
    // A new agent ends what one of the same name was waiting for; one that has changed does not.
    if (!has_changed) {
        for (const Waiting& waiting : waiting_leases_) waiting.respond(unknown_agent());
        waiting_leases_.clear();
    }
    changed_.notify_all();
    requeue_what_the_agent_lacks(registrations.back());
    tuner::RegisterReply reply{registrations.back().agent_id, heartbeat_ms, lease_ttl_ms, {}};
    reply.lost = heartbeat_reply().lost;
    return tracker::json_response(tuner::to_json(reply));
}

/// As the real server: what was leased and is neither held nor finished goes back to the queue as
/// the next attempt.
void FakeCoordinator::requeue_what_the_agent_lacks(const tuner::RegisterRequest& agent) {
    for (auto at = leased_.begin(); at != leased_.end();) {
        const tuner::AttemptId id{at->run_id, at->attempt};
        const bool held =
            std::find(agent.running.begin(), agent.running.end(), id) != agent.running.end();
        if (held) {
            ++at;
            continue;
        }
        taken_.insert(token(id.run_id, id.attempt));
        offered_.push_back(std::move(*at));
        ++offered_.back().attempt;
        ++requeued;
        at = leased_.erase(at);
    }
}

void FakeCoordinator::on_lease(const Json& body, Responder respond) {
    const tuner::LeaseRequest request = tuner::from_json<tuner::LeaseRequest>(body).value();
    const std::lock_guard lock(mutex_);
    if (!known_) return respond(unknown_agent());
    const auto before = lease_answers_.find(request.request_id);
    if (before != lease_answers_.end()) return respond(tracker::json_text_response(before->second));
    if (empty_leases_left_ > 0) {
        --empty_leases_left_;
        return respond(tracker::json_response(tuner::to_json(tuner::LeaseReply{})));
    }
    wait_for_lease({request.request_id, request.free_slots, std::move(respond)});
}

/// One poll at a time: an older one belongs to a connection that is gone.
void FakeCoordinator::wait_for_lease(Waiting waiting) {
    for (const Waiting& older : waiting_leases_)
        older.respond(tracker::json_response(tuner::to_json(tuner::LeaseReply{})));
    waiting_leases_.clear();
    waiting_leases_.push_back(std::move(waiting));
    answer_waiting();
}

/// As a lease and a heartbeat of which the first answer ends both.
void FakeCoordinator::on_poll(const Json& body, const Responder& respond) {
    const tuner::PollRequest request = tuner::from_json<tuner::PollRequest>(body).value();
    const std::lock_guard lock(mutex_);
    if (!known_) return respond(unknown_agent());
    if (request.interrupts) {
        interrupted_turn_ = std::max(interrupted_turn_, request.turn);
        interrupt_polls();
        return respond(tracker::json_response(tuner::to_json(tuner::PollReply{})));
    }
    const auto is_answered = std::make_shared<bool>(false);
    const auto answer = [is_answered, respond, ack = request.ack](const Response& part) {
        if (std::exchange(*is_answered, true)) return;
        if (part.status != 200) return respond(Response(part));
        const Json said = parse_json(part.body).value();
        tuner::PollReply reply{.sequence = ack};
        if (said.contains("leases"))
            reply.leases = tuner::from_json<tuner::LeaseReply>(said).value().leases;
        if (!reply.leases.empty()) ++reply.sequence;
        const auto beat = tuner::from_json<tuner::HeartbeatReply>(said).value();
        reply.directives = beat.directives;
        reply.lost = beat.lost;
        respond(tracker::json_response(tuner::to_json(reply)));
    };
    const tuner::HeartbeatReply news = heartbeat_reply();
    const std::string id = request.session + "/" + std::to_string(request.ack + 1);
    const auto before = lease_answers_.find(id);
    if (before != lease_answers_.end()) return answer(tracker::json_text_response(before->second));
    const bool is_empty = request.free_slots > 0 && empty_leases_left_ > 0;
    if (is_empty) --empty_leases_left_;
    waiting_heartbeats_.clear();
    waiting_heartbeats_.push_back(answer);
    if (is_empty || request.turn <= interrupted_turn_) return interrupt_polls();
    // Leases first: what is directed or lost is said in each answer.
    wait_for_lease({id, request.free_slots, answer, is_answered});
    if (!*is_answered && (!news.directives.empty() || !news.lost.empty()))
        answer(tracker::json_response(tuner::to_json(news)));
}

void FakeCoordinator::interrupt_polls() {
    for (const Responder& answer : waiting_heartbeats_)
        answer(tracker::json_response(tuner::to_json(tuner::HeartbeatReply{})));
    waiting_heartbeats_.clear();
}

void FakeCoordinator::on_heartbeat(const Json& body, Responder respond) {
    const tuner::HeartbeatRequest request = tuner::from_json<tuner::HeartbeatRequest>(body).value();
    const std::lock_guard lock(mutex_);
    if (!known_) return respond(unknown_agent());
    const tuner::HeartbeatReply reply = heartbeat_reply();
    if (!reply.directives.empty() || !reply.lost.empty())
        return respond(tracker::json_response(tuner::to_json(reply)));
    waiting_heartbeats_.push_back(std::move(respond));
}

Response FakeCoordinator::on_report(const Json& body) {
    const tuner::ReportRequest request = tuner::from_json<tuner::ReportRequest>(body).value();
    const std::lock_guard lock(mutex_);
    if (!known_) return unknown_agent();
    tuner::ReportReply reply;
    for (const tuner::AttemptReport& report : request.reports) {
        const bool taken = taken_.contains(token(report.run_id, report.attempt));
        reply.results.push_back({report.run_id, report.attempt, !taken,
                                 taken ? "RESOURCE_CONFLICT" : "", taken ? "not yours" : ""});
        if (taken) continue;
        if (refusals_left_ > 0) {
            --refusals_left_;
            ++refused_;
            reply.results.back() = {report.run_id, report.attempt, false,
                                    std::string(code_name(refusal_)), "not now"};
            continue;
        }
        std::vector<tuner::ReportedMetric>& all = reported_[report.run_id];
        all.insert(all.end(), report.metrics.begin(), report.metrics.end());
        for (const tuner::ReportedTag& tag : report.tags) tags[report.run_id][tag.key] = tag.value;
    }
    changed_.notify_all();
    return tracker::json_response(tuner::to_json(reply));
}

Response FakeCoordinator::on_finish(const Request& request) {
    Finish finish{request.parameter("run_id"), std::stoi(request.parameter("attempt")),
                  tuner::from_json<tuner::FinishRequest>(parse_json(request.body).value()).value()};
    const std::lock_guard lock(mutex_);
    if (!known_) return unknown_agent();
    ++finish_calls_[finish.run_id];
    if (taken_.contains(token(finish.run_id, finish.attempt)))
        return tracker::error_response(Error{Code::kResourceConflict, "not yours"});
    std::erase_if(directives_,
                  [&](const tuner::Directive& item) { return item.run_id == finish.run_id; });
    for (const Finish& known : finishes_)
        if (known.request.request_id == finish.request.request_id)
            return tracker::json_response(tuner::to_json(finish_reply_));
    std::erase_if(leased_,
                  [&](const tuner::Lease& lease) { return lease.run_id == finish.run_id; });
    if (finish.request.outcome != tuner::Outcome::kLost)
        for (Waiting& waiting : waiting_leases_) ++waiting.free_slots;
    finishes_.push_back(std::move(finish));
    answer_waiting();
    return tracker::json_response(tuner::to_json(finish_reply_));
}

void FakeCoordinator::take(Upload upload) {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(holds_next_, false)) {
            held_ = std::move(upload);
            return;
        }
        std::string& content = artifacts[upload.path];
        sent_bytes[upload.path] += upload.content.size();
        if (upload.range.empty())
            content = upload.content;
        else if (upload.range.starts_with("bytes " + std::to_string(content.size()) + "-"))
            content += upload.content;
        else
            return upload.respond(
                tracker::error_response(Error{Code::kResourceConflict, "not its end"}));
        changed_.notify_all();
    }
    upload.respond(tracker::json_response(Json::object()));
}

void FakeCoordinator::hold_upload() {
    const std::lock_guard lock(mutex_);
    holds_next_ = true;
}

void FakeCoordinator::release_upload() {
    std::optional<Upload> held;
    wait_until([&] {
        held = std::exchange(held_, std::nullopt);
        return held.has_value();
    });
    if (held) take(std::move(*held));
}

void FakeCoordinator::answer_ends(tuner::FinishReply reply) {
    const std::lock_guard lock(mutex_);
    finish_reply_ = std::move(reply);
}

bool FakeCoordinator::wait_until(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    const bool held = changed_.wait_for(lock, kPatience, holds);
    EXPECT_TRUE(held) << "what the test waits for never came";
    return held;
}

FakeCoordinator::Finish FakeCoordinator::wait_for_finish(const std::string& run_id, int attempt) {
    Finish found;
    wait_until([&] {
        for (const Finish& finish : finishes_)
            if (finish.run_id == run_id && (attempt == 0 || finish.attempt == attempt)) {
                found = finish;
                return true;
            }
        return false;
    });
    return found;
}

void FakeCoordinator::wait_for_metrics(const std::string& run_id, std::size_t count) {
    wait_until([&] { return reported_[run_id].size() >= count; });
}

std::vector<tuner::ReportedMetric> FakeCoordinator::reported(const std::string& run_id) {
    const std::lock_guard lock(mutex_);
    return reported_[run_id];
}

std::string FakeCoordinator::metrics(const std::string& run_id) {
    std::string text;
    std::set<std::string> seen;
    for (const tuner::ReportedMetric& metric : reported(run_id)) {
        char one[160];
        std::snprintf(one, sizeof one, "%s@%lld=%g ", metric.key.c_str(),
                      static_cast<long long>(metric.step), metric.value);
        if (seen.insert(one + std::to_string(metric.timestamp_ms)).second) text += one;
    }
    return text;
}

int FakeCoordinator::finish_calls(const std::string& run_id) {
    const std::lock_guard lock(mutex_);
    return finish_calls_[run_id];
}

std::string FakeCoordinator::wait_for_artifact(const std::string& path, const std::string& part) {
    std::string content;
    wait_until([&] {
        const auto found = artifacts.find(path);
        if (found == artifacts.end() || found->second.find(part) == std::string::npos) return false;
        content = found->second;
        return true;
    });
    return content;
}

}  // namespace tune::worker
