// The agent protocol over REST (tuner/protocol.h). Every call is a POST of one struct that is
// answered by another; the long-polls keep their responder until there is something to say. Each
// route asks for the right to take trials and run their commands, which an agent's token gives.

#include <charconv>
#include <nlohmann/json.hpp>

#include "tuner/api/routes.h"
#include "tuner/study/registry/broker/agent_calls.h"

namespace tune::tuner {
namespace {

using tracker::error_response;
using tracker::json_response;
using tracker::Method;
using tracker::Request;
using tracker::Responder;
using RequestPtr = std::shared_ptr<Request>;

template <class T>
Result<T> read_body(const Request& request) {
    TUNE_TRY(body, parse_json(request.body));
    return from_json<T>(body);
}

template <class Reply>
Done<Reply> answer(const Responder& respond) {
    return [respond](const Result<Reply>& reply) {
        respond(reply ? json_response(to_json(*reply)) : error_response(reply.error()));
    };
}

/// A call whose body is `Wanted` and whose answer is `Reply`.
template <class Wanted, class Reply>
tracker::Handler handler(void (AgentCalls::*call)(const std::string&, Wanted, Done<Reply>),
                         AgentCalls& agents) {
    return [&agents, call](const RequestPtr& request, const Responder& respond) {
        Result<Wanted> wanted = read_body<Wanted>(*request);
        if (!wanted) return respond(error_response(wanted.error()));
        (agents.*call)(request->parameter("id"), std::move(wanted).value(), answer<Reply>(respond));
    };
}

void register_agent(AgentCalls& agents, const Request& request, const Responder& respond) {
    Result<RegisterRequest> wanted = read_body<RegisterRequest>(request);
    if (!wanted) return respond(error_response(wanted.error()));
    agents.register_agent(std::move(wanted).value(), answer<RegisterReply>(respond));
}

void finish(AgentCalls& agents, const Request& request, const Responder& respond) {
    Result<FinishRequest> wanted = read_body<FinishRequest>(request);
    if (!wanted) return respond(error_response(wanted.error()));
    AttemptId attempt{.run_id = request.parameter("run_id")};
    const std::string& text = request.parameter("attempt");
    const auto end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, attempt.attempt);
    if (error != std::errc() || at != end)
        return respond(error_response(
            {Code::kInvalidParameterValue, "attempt '" + text + "' is not a number"}));
    agents.finish(request.parameter("id"), attempt, std::move(wanted).value(),
                  answer<FinishReply>(respond));
}

}  // namespace

void add_agent_routes(tracker::Router& router, Studies& studies) {
    AgentCalls& agents = studies.agents();
    const auto add = [&router](const char* pattern, const char* summary, tracker::Handler handle) {
        router.add_api(2, {Method::kPost,
                           {tracker::Access::kAgent, tracker::Subject::kServer},
                           pattern,
                           tracker::Body::kJson,
                           summary,
                           std::move(handle)});
    };
    add("/tune/agents/register", "an agent introduces itself",
        [&agents](const RequestPtr& request, const Responder& respond) {
            register_agent(agents, *request, respond);
        });
    add("/tune/agents/{id}/poll", "long-poll for trials and directives; renews leases",
        handler<PollRequest, PollReply>(&AgentCalls::poll, agents));
    add("/tune/agents/{id}/lease", "long-poll for trials to run",
        handler<LeaseRequest, LeaseReply>(&AgentCalls::lease, agents));
    add("/tune/agents/{id}/heartbeat", "long-poll for directives; renews leases",
        handler<HeartbeatRequest, HeartbeatReply>(&AgentCalls::heartbeat, agents));
    add("/tune/agents/{id}/report", "metrics of running trials",
        handler<ReportRequest, ReportReply>(&AgentCalls::report_metrics, agents));
    add("/tune/agents/{id}/attempts/{run_id}/{attempt}/finish", "an attempt has ended",
        [&agents](const RequestPtr& request, const Responder& respond) {
            finish(agents, *request, respond);
        });
}

void add_tuning_routes(tracker::Router& router, TuningParts parts) {
    add_study_routes(router, parts);
    add_trial_routes(router, parts);
    add_importance_routes(router, parts);
    add_agent_routes(router, parts.studies);
    add_queue_routes(router, parts);
}

}  // namespace tune::tuner
