#include "tuner/cli/commands/plan_agents.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/study.h"

namespace tune::cli {
namespace {

tuner::RegisterRequest registered_from(const Json& agent) {
    tuner::RegisterRequest facts{.agent_id = agent.at("agent_id").get<std::string>(),
                                 .slots = agent.at("slots").get<int>(),
                                 .cpus = agent.at("cpus").get<int>(),
                                 .memory_bytes = agent.value("memory_bytes", std::int64_t{0}),
                                 .labels = agent.value("labels", std::vector<std::string>())};
    for (const Json& gpu : agent.value("devices", Json::array())) {
        facts.gpus.push_back(gpu.at("uuid").get<std::string>());
        facts.devices.push_back(
            {.uuid = facts.gpus.back(), .bytes = gpu.value("bytes", std::int64_t{0})});
    }
    return facts;
}

}  // namespace

Result<std::string> agents_lacking(const Json& queue, const tuner::StudyConfig& config) {
    tuner::Agents agents;
    try {
        for (const Json& agent : queue.at("agents")) agents.add(registered_from(agent), 0);
        std::string obstacle = agents.obstacle(tuner::Study({}, config).needs().of_next());
        // One of those that were left out may have it.
        if (queue.value("agents_left_out", 0) > 0) obstacle.clear();
        return obstacle;
    } catch (const Json::exception& error) {
        return Error{Code::kDataLoss,
                     std::string("the server's queue cannot be read: ") + error.what()};
    }
}

}  // namespace tune::cli
