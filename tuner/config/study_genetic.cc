#include "tuner/config/study_genetic.h"

#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

constexpr int kPopulationMax = 100'000;
/// Of 8 objectives 12 divisions give 50,388 reference directions, each compared with each trial.
constexpr int kDivisionsMax = 12;

Result<void> read_crossover(const Fields& fields, SamplerConfig& sampler) {
    const Node* node = fields.find("crossover");
    if (node == nullptr) return {};
    for (const Crossover crossover : {Crossover::kUniform, Crossover::kBlxAlpha, Crossover::kSbx}) {
        if (node->type != Node::Type::kString || node->text != crossover_name(crossover)) continue;
        sampler.crossover = crossover;
        return {};
    }
    return fault_at(node->place, fields.path_of("crossover"),
                    "expected uniform, blx_alpha or sbx, found " + describe(*node));
}

}  // namespace

bool is_genetic(SamplerType type) {
    return type == SamplerType::kNsga2 || type == SamplerType::kNsga3;
}

std::vector<std::string> genetic_keys(SamplerType type) {
    std::vector<std::string> keys = {"type",
                                     "seed",
                                     "population",
                                     "crossover",
                                     "crossover_probability",
                                     "swap_probability",
                                     "mutation_probability"};
    if (type == SamplerType::kNsga3) keys.emplace_back("divisions");
    return keys;
}

Result<void> read_genetic(const Fields& fields, SamplerConfig& sampler) {
    if (!is_genetic(sampler.type)) return {};
    TUNE_TRY_VOID(fields.integer("population", sampler.population, 2, kPopulationMax));
    TUNE_TRY_VOID(read_crossover(fields, sampler));
    TUNE_TRY_VOID(fields.number("crossover_probability", sampler.crossover_probability, 0, 1));
    TUNE_TRY_VOID(fields.number("swap_probability", sampler.swap_probability, 0, 1));
    TUNE_TRY_VOID(fields.integer("divisions", sampler.divisions, 1, kDivisionsMax));
    if (fields.find("mutation_probability") == nullptr) return {};
    double probability = 0;
    TUNE_TRY_VOID(fields.number("mutation_probability", probability, 0, 1));
    sampler.mutation_probability = probability;
    return {};
}

void write_genetic(const SamplerConfig& sampler, Json& json) {
    if (!is_genetic(sampler.type)) return;
    json["population"] = sampler.population;
    json["crossover"] = std::string(crossover_name(sampler.crossover));
    json["crossover_probability"] = sampler.crossover_probability;
    json["swap_probability"] = sampler.swap_probability;
    if (sampler.mutation_probability) json["mutation_probability"] = *sampler.mutation_probability;
    if (sampler.type == SamplerType::kNsga3) json["divisions"] = sampler.divisions;
}

}  // namespace tune::tuner
