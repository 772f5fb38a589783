// Agents, devices, leases and the queue over REST.

#include <nlohmann/json.hpp>

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
                 {"waiting", agent.is_waiting},
                 {"leases", std::move(leases)}};
    if (!agent.held_for.empty()) json["held_for"] = agent.held_for;
    return json;
}

Json study_json(const QueuedStudyView& study) {
    const TrialNeeds& needs = study.needs;
    Json shapes = Json::array();
    for (const Shape& shape : needs.shapes)
        shapes.push_back({{"nodes", shape.nodes}, {"nproc", shape.nproc}});
    Json json = {{"study", study.study},
                 {"queued", study.queued},
                 {"running", study.running},
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

Json queue_json(const QueueView& view) {
    Json agents = Json::array();
    for (const AgentView& agent : view.agents) agents.push_back(agent_json(agent));
    Json studies = Json::array();
    for (const QueuedStudyView& study : view.studies) studies.push_back(study_json(study));
    return {{"agents", std::move(agents)},
            {"agents_left_out", view.agents_left_out},
            {"studies", std::move(studies)}};
}

}  // namespace

void add_queue_routes(tracker::Router& router, Studies& studies) {
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kServer},
                       "/tune/queue",
                       tracker::Body::kNone,
                       "agents, devices, leases, and why trials wait",
                       [&studies](const std::shared_ptr<Request>&, const Responder& respond) {
                           respond(json_response(queue_json(studies.queue(kAgentsShown))));
                       }});
}

}  // namespace tune::tuner
