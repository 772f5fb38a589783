#pragma once
// NSGA-II and NSGA-III; see nsga_sampler.cc. Private to tuner/sampler.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tuner/sampler/layout.h"
#include "tuner/sampler/nsga/nsga_selection.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

class NsgaSampler final : public Sampler {
public:
    /// `config.type`: kNsga2 or kNsga3.
    NsgaSampler(const Space& space, const SamplerConfig& config, Objectives objectives,
                std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    struct Individual {
        Point point;
        std::vector<double> losses;
        double violation = 0;
    };
    using Numbers = std::vector<std::uint64_t>;

    [[nodiscard]] std::uint64_t generation_of(std::uint64_t number) const;
    const Numbers& parents_of(std::uint64_t generation);
    [[nodiscard]] Numbers survivors(std::uint64_t generation, const Numbers& parents) const;
    [[nodiscard]] const Individual& tournament(const Numbers& parents, const Individual* other,
                                               Draws& draws) const;
    [[nodiscard]] Point child(const Numbers& parents, std::uint64_t number) const;
    [[nodiscard]] std::optional<Point> crossed(const Individual& a, const Individual& b,
                                               bool is_last, Draws& draws) const;

    Space space_;
    SamplerConfig config_;
    Objectives objectives_;
    std::uint64_t seed_;
    std::vector<Group> groups_;
    LossTable directions_;                             // nsga3
    std::map<std::uint64_t, Individual> individuals_;  // complete trials
    std::vector<Numbers> parents_;  // of generations 0 .. size - 1, as far as they are up to date
};

}  // namespace tune::tuner
