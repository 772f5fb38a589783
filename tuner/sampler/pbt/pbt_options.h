#pragma once
// What a study says of population based training. Steps are what the command counts: epochs,
// updates.

#include <cstdint>
#include <vector>

namespace tune::tuner {

struct SamplerKind;

struct PbtOptions {
    int population = 10;                 // members
    std::int64_t interval = 1;           // steps of a trial
    std::int64_t warmup = 0;             // steps of a member's first trial; 0: as `interval`
    std::int64_t max = 0;                // no trial goes beyond this step; 0: no end
    double quantile = 0.25;              // so many of the worst continue one of so many of the best
    double resample_probability = 0.25;  // of a new draw, each parameter of those
    std::vector<double> factors = {0.8, 1.2};  // else the value times one of these

    [[nodiscard]] bool operator==(const PbtOptions&) const = default;
};

/// "pbt" in a study.
[[nodiscard]] const SamplerKind& pbt_sampler();

/// The steps of a trial: it trains from the one to the other.
struct Steps {
    std::int64_t from = 0;
    std::int64_t to = 0;
};
/// Of the trial with so many before it in its lineage.
[[nodiscard]] Steps steps_of(const PbtOptions& options, int generation);

}  // namespace tune::tuner
