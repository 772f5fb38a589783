#include "tuner/study/trial/roll_back.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tune::tuner {

void add_roll_back(std::vector<RollBack>& all, RollBack next) {
    std::erase_if(all, [&next](const RollBack& one) {
        return one.metric == next.metric && one.step >= next.step && one.since_ms <= next.since_ms;
    });
    all.push_back(std::move(next));
}

bool is_rolled_back(const std::vector<RollBack>& all, std::string_view metric,
                    const Objective::Row& row) {
    return std::any_of(all.begin(), all.end(), [&](const RollBack& one) {
        return one.metric == metric && row.step >= one.step && row.timestamp_ms < one.since_ms;
    });
}

Json roll_backs_to_json(const std::vector<RollBack>& all) {
    Json json = Json::array();
    for (const RollBack& one : all)
        json.push_back(Json::array({one.metric, one.step, one.since_ms, one.attempt}));
    return json;
}

std::vector<RollBack> roll_backs_from(const Json& json) {
    std::vector<RollBack> all;
    for (const Json& one : json)
        all.push_back({one.at(0).get<std::string>(), one.at(1).get<std::int64_t>(),
                       one.at(2).get<std::int64_t>(), one.at(3).get<int>()});
    return all;
}

}  // namespace tune::tuner
