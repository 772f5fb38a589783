// Agents, devices, leases, the queue and quotas over REST.
//
// GET queue renders one QueueView, which was taken under one lock: its numbers belong to the same
// moment. At most 1,000 agents are listed and the rest counted. A quota is replaced as a whole, so
// a repeated request changes nothing; a repeated removal gets the recorded list of the first.

#include <limits>
#include <nlohmann/json.hpp>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/repeats.h"
#include "tuner/api/known_body.h"
#include "tuner/api/routes.h"

namespace tune::tuner {
namespace {

using tracker::json_response;
using tracker::Method;
using tracker::Request;
using tracker::Responder;

constexpr int kAgentsShown = 1000;

Json gpus_json(const AgentView& agent) {
    Json list = Json::array();
    for (const GpuRoom& gpu : agent.room.gpus) {
        Json json = {{"uuid", gpu.uuid},
                     {"bytes", gpu.bytes},
                     {"free_bytes", gpu.is_whole ? 0 : gpu.free_bytes},
                     {"trials", gpu.holders}};
        for (const GpuFacts& facts : agent.gpus)
            if (facts.uuid == gpu.uuid && !facts.name.empty()) json["name"] = facts.name;
        list.push_back(std::move(json));
    }
    return list;
}

Json lease_json(const LeaseView& lease) {
    Json devices = Json::array();
    for (const GrantedGpu& gpu : lease.part.gpus)
        devices.push_back({{"uuid", gpu.uuid}, {"bytes", gpu.bytes}});
    Json json = {{"study", lease.study},
                 {"number", lease.number},
                 {"attempt", lease.attempt},
                 {"run_id", lease.run_id},
                 {"node", lease.node},
                 {"nodes", lease.nodes},
                 {"nproc", lease.part.nproc},
                 {"cpus", lease.part.cores},
                 {"memory_bytes", lease.part.memory_bytes},
                 {"devices", std::move(devices)},
                 {"ending", lease.is_ending}};
    if (!lease.part.pool.empty()) json["pool"] = lease.part.pool;
    if (lease.expires_in_ms) json["expires_in_ms"] = *lease.expires_in_ms;
    return json;
}

Json agent_json(const AgentView& agent) {
    Json leases = Json::array();
    for (const LeaseView& lease : agent.leases) leases.push_back(lease_json(lease));
    Json json = {{"agent_id", agent.agent_id},
                 {"host", agent.host},
                 {"version", agent.version},
                 {"silent_ms", agent.silent_ms},
                 {"slots", agent.room.slots_all},
                 {"free_slots", agent.room.slots},
                 {"cpus", agent.room.cores_all},
                 {"free_cpus", agent.room.cores},
                 {"memory_bytes", agent.room.memory_all},
                 {"free_memory_bytes", agent.room.memory_bytes},
                 {"labels", agent.room.labels},
                 {"devices", gpus_json(agent)},
                 {"excluded", agent.excluded},
                 {"waiting", agent.is_waiting},
                 {"leases", std::move(leases)}};
    if (!agent.held_for.empty()) json["held_for"] = agent.held_for;
    return json;
}

Json usage_json(const Usage& held) {
    return {{"slots", held.slots},
            {"cpus", held.cores},
            {"memory_bytes", held.memory_bytes},
            {"gpus", static_cast<double>(held.gpu_micros) / static_cast<double>(kGpuMicros)}};
}

Json study_json(const QueuedStudyView& study) {
    const TrialNeeds& needs = study.needs;
    Json shapes = Json::array();
    for (const Shape& shape : needs.shapes)
        shapes.push_back({{"nodes", shape.nodes}, {"nproc", shape.nproc}});
    Json json = {{"study", study.study},
                 {"queued", study.queued},
                 {"running", study.running},
                 {"user", study.user},
                 {"priority", study.priority},
                 {"share", study.share},
                 {"held", usage_json(study.held)},
                 {"needs",
                  {{"cpus", needs.cpus},
                   {"memory_bytes", needs.memory_bytes},
                   {"gpus", needs.gpus},
                   {"gpu_memory_bytes", needs.gpu_bytes},
                   {"labels", needs.labels},
                   {"shapes", std::move(shapes)}}}};
    if (!study.waits_for.empty()) json["waits_for"] = study.waits_for;
    return json;
}

Json user_json(const UserView& user) {
    Json json = {{"user", user.user}, {"share", user.share}, {"held", usage_json(user.held)}};
    if (!user.quota) return json;
    const auto limit = [](const auto& value) { return value ? Json(*value) : Json(); };
    json["quota"] = {{"slots", limit(user.quota->slots)},
                     {"gpus", limit(user.quota->gpus)},
                     {"priority", limit(user.quota->priority)}};
    return json;
}

Json users_json(const QueueView& view) {
    Json users = Json::array();
    for (const UserView& user : view.users) users.push_back(user_json(user));
    return users;
}

Json queue_json(const QueueView& view) {
    Json agents = Json::array();
    for (const AgentView& agent : view.agents) agents.push_back(agent_json(agent));
    Json studies = Json::array();
    for (const QueuedStudyView& study : view.studies) studies.push_back(study_json(study));
    return {{"agents", std::move(agents)},
            {"agents_left_out", view.agents_left_out},
            {"studies", std::move(studies)},
            {"users", users_json(view)}};
}

/// Nothing where the field is left out or null. Errors: kInvalidParameterValue.
template <class Number>
Result<std::optional<Number>> limit_of(const Json& body, const char* name) {
    const auto field = body.find(name);
    if (field == body.end() || field->is_null()) return std::optional<Number>();
    const auto number =
        whole_within(*field, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
    if (!number)
        return Error{Code::kInvalidParameterValue,
                     "field '" + std::string(name) + "' must be a whole number, or null"};
    return std::optional<Number>(static_cast<Number>(*number));
}

Result<Quota> read_quota(const Request& request) {
    TUNE_TRY(body, parse_json(request.body));
    if (!body.is_object())
        return Error{Code::kInvalidParameterValue, "the body must be a JSON object"};
    for (const auto& [key, value] : body.items())
        if (key != "user" && key != "slots" && key != "gpus" && key != "priority")
            return Error{Code::kInvalidParameterValue,
                         "unknown key '" + key + "'; known: user, slots, gpus, priority"};
    const auto user = body.find("user");
    if (user == body.end() || !user->is_string())
        return Error{Code::kInvalidParameterValue,
                     "field 'user' must be the name of a user, or '*' for all others"};
    Quota quota{.user = user->get<std::string>()};
    TUNE_TRY(slots, limit_of<std::int64_t>(body, "slots"));
    TUNE_TRY(gpus, limit_of<std::int64_t>(body, "gpus"));
    TUNE_TRY(priority, limit_of<int>(body, "priority"));
    quota.slots = slots;
    quota.gpus = gpus;
    quota.priority = priority;
    return quota;
}

tracker::Response quotas_response(Studies& studies) {
    return json_response({{"users", users_json(studies.queue(0))}});
}

Done<void> answer_with_quotas(Studies& studies, const Responder& respond) {
    return [&studies, respond](const Result<void>& changed) {
        respond(changed ? quotas_response(studies) : tracker::error_response(changed.error()));
    };
}

/// Removes a user's quota. The repeat of a request that did gets the list as it was after it.
void remove_quota(Studies& studies, const Request& request, const tracker::AnswerRecord& record,
                  const Responder& respond) {
    const std::string user = request.parameter("user");
    Json users = users_json(studies.queue(0));
    for (Json& one : users)
        if (one["user"] == user) one.erase("quota");
    const auto recording = [record, text = to_text({{"users", std::move(users)}})](
                               const Study*, std::vector<tracker::Command> commands) {
        return record.with(std::move(commands), text);
    };
    studies.remove_quota(user, answer_with_quotas(studies, respond), recording);
}

void add_quota_routes(tracker::Router& router, TuningParts parts) {
    Studies& studies = parts.studies;
    const auto repeats = std::make_shared<tracker::Repeats>(parts.store);
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kServer},
                       "/tune/quotas",
                       tracker::Body::kNone,
                       "what users hold and may hold",
                       [&studies](const std::shared_ptr<Request>&, const Responder& respond) {
                           respond(quotas_response(studies));
                       }});
    router.add_api(2,
                   {Method::kPost, tracker::Access::kAdmin, "/tune/quotas", tracker::Body::kJson,
                    "sets what a user may hold",
                    [&studies](const std::shared_ptr<Request>& request, const Responder& respond) {
                        const Result<Quota> quota = read_quota(*request);
                        if (!quota) return respond(tracker::error_response(quota.error()));
                        studies.set_quota(*quota, answer_with_quotas(studies, respond));
                    }});
    router.add_api(
        2, {Method::kDelete, tracker::Access::kAdmin, "/tune/quotas/{user}", tracker::Body::kNone,
            "removes a user's quota",
            [&studies, repeats](const std::shared_ptr<Request>& request, const Responder& respond) {
                repeats->once(request, respond,
                              [&studies, request](const tracker::AnswerRecord& record,
                                                  const Responder& once) {
                                  remove_quota(studies, *request, record, once);
                              });
            }});
}

}  // namespace

void add_queue_routes(tracker::Router& router, TuningParts parts) {
    Studies& studies = parts.studies;
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kServer},
                       "/tune/queue",
                       tracker::Body::kNone,
                       "agents, devices, leases, and why trials wait",
                       [&studies](const std::shared_ptr<Request>&, const Responder& respond) {
                           respond(json_response(queue_json(studies.queue(kAgentsShown))));
                       }});
    add_quota_routes(router, parts);
}

}  // namespace tune::tuner
