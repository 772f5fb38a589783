// One of our samplers behind lines of JSON, so that tests/bench/tuner/quality.py drives it with the
// objectives and the schedule that it drives the peers with.
//
//   {"study": {"space": ..., "sampler": ...}, "goal": "min", "seed": 7}   starts anew
//   {"ask": 3}                                -> {"params": {...}} or {"exhausted": true}
//   {"tell": 3, "value": 0.5}                 -> {}
//   {"time": true}                            -> {"seconds": 0.0123} spent in the sampler so far

#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {
namespace {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

class Session {
public:
    Json answer(const Json& line) {
        if (line.contains("study")) return start(line);
        if (line.contains("time")) return {{"seconds", seconds_}};
        if (line.contains("ask")) return ask(line.at("ask").get<std::uint64_t>());
        return tell(line.at("tell").get<std::uint64_t>(), line.at("value").get<double>());
    }

private:
    Json start(const Json& line) {
        const StudyConfig config = study_config_from_json(line.at("study")).value();
        space_ = config.space;
        running_.clear();
        seconds_ = 0;
        const Goal goal = line.value("goal", "min") == "min" ? Goal::kMinimize : Goal::kMaximize;
        sampler_ = make_sampler(space_, config.sampler, goal, line.at("seed").get<std::uint64_t>());
        return Json::object();
    }

    Json ask(std::uint64_t number) {
        if (sampler_->is_exhausted()) return {{"exhausted", true}};
        Observation seen;
        seen.number = number;
        const double begin = now_s();
        seen.point = sampler_->suggest(number);
        const bool is_taken = sampler_->observe(seen).has_value();
        seconds_ += now_s() - begin;
        if (!is_taken) return {{"error", "a point outside the space"}};
        Json params = space_.to_json(seen.point);
        running_.emplace(number, std::move(seen));
        return {{"params", std::move(params)}};
    }

    Json tell(std::uint64_t number, double value) {
        auto ended = running_.extract(number);
        if (ended.empty()) return {{"error", "no such trial"}};
        ended.mapped().state = Observation::State::kComplete;
        ended.mapped().value = value;
        const double begin = now_s();
        static_cast<void>(sampler_->observe(ended.mapped()));
        seconds_ += now_s() - begin;
        return Json::object();
    }

    Space space_;
    std::unique_ptr<Sampler> sampler_;
    std::map<std::uint64_t, Observation> running_;
    double seconds_ = 0;
};

}  // namespace
}  // namespace tune::tuner

int main() {
    tune::tuner::Session session;
    std::string line;
    while (std::getline(std::cin, line))
        std::cout << session.answer(tune::parse_json(line).value()).dump() << std::endl;
}
