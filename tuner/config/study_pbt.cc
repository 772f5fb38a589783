#include "tuner/config/study_pbt.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/space/wording.h"

namespace tune::tuner {
namespace {

constexpr int kMembersMax = 1000;
constexpr std::int64_t kStepsMax = std::int64_t{1} << 53;
constexpr std::size_t kFactorsMax = 16;
constexpr double kFactorMin = 0.01;
constexpr double kFactorMax = 100;

Result<void> read_factors(const Fields& fields, std::vector<double>& factors) {
    const Node* node = fields.find("factors");
    if (node == nullptr) return {};
    const auto fault = [&](const Node& at, const std::string& found) {
        return fault_at(at.place, fields.path_of("factors"),
                        "expected a list of 1 to 16 numbers from 0.01 to 100 such as [0.8, 1.2], "
                        "found " +
                            found);
    };
    if (node->type != Node::Type::kList) return fault(*node, describe(*node));
    if (node->items.empty() || node->items.size() > kFactorsMax)
        return fault(*node, "a list of " + std::to_string(node->items.size()));
    std::vector<double> read;
    for (const Node& item : node->items) {
        if (!item.is_number() || !(item.number >= kFactorMin && item.number <= kFactorMax))
            return fault(item, describe(item));
        read.push_back(item.number);
    }
    factors = std::move(read);
    return {};
}

}  // namespace

std::vector<std::string> pbt_keys() {
    return {"type", "seed",     "population",           "interval", "warmup",
            "max",  "quantile", "resample_probability", "factors"};
}

Result<void> read_pbt(const Fields& fields, SamplerConfig& sampler) {
    if (sampler.type != SamplerType::kPbt) return {};
    PbtConfig& pbt = sampler.pbt;
    TUNE_TRY_VOID(fields.integer("population", sampler.population, 2, kMembersMax));
    TUNE_TRY_VOID(fields.integer("interval", pbt.interval, 1, kStepsMax));
    TUNE_TRY_VOID(fields.integer("warmup", pbt.warmup, 1, kStepsMax));
    TUNE_TRY_VOID(fields.integer("max", pbt.max, 1, kStepsMax));
    TUNE_TRY_VOID(fields.number("quantile", pbt.quantile, 0, 0.5));
    TUNE_TRY_VOID(fields.number("resample_probability", pbt.resample_probability, 0, 1));
    return read_factors(fields, pbt.factors);
}

void write_pbt(const SamplerConfig& sampler, Json& json) {
    const PbtConfig& pbt = sampler.pbt;
    json["population"] = sampler.population;
    json["interval"] = pbt.interval;
    if (pbt.warmup != 0) json["warmup"] = pbt.warmup;
    if (pbt.max != 0) json["max"] = pbt.max;
    json["quantile"] = pbt.quantile;
    json["resample_probability"] = pbt.resample_probability;
    json["factors"] = pbt.factors;
}

Steps steps_of(const PbtConfig& config, int generation) {
    const std::int64_t first = config.warmup != 0 ? config.warmup : config.interval;
    // Far beyond what a lineage can be; so that no product overflows.
    const auto later = static_cast<double>(config.interval) * static_cast<double>(generation);
    const bool is_far = later > static_cast<double>(kStepsMax);
    const std::int64_t end = is_far ? kStepsMax : first + config.interval * generation;
    Steps steps{generation == 0 ? 0 : end - config.interval, end};
    if (config.max != 0) steps.to = std::min(steps.to, config.max);
    return steps;
}

}  // namespace tune::tuner
