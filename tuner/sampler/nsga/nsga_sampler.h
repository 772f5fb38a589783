#pragma once
// NSGA-II and NSGA-III; see nsga_sampler.cc. Private to tuner/sampler.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tuner/sampler/layout.h"
#include "tuner/sampler/nsga/nsga_selection.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {

/// How two parents make a child.
enum class Crossover { kUniform, kBlxAlpha, kSbx };

struct NsgaOptions {
    int population = 50;  // trials of a generation
    Crossover crossover = Crossover::kUniform;
    double crossover_probability = 0.9;  // else the child is a copy of one parent
    double swap_probability = 0.5;       // kUniform: of the other parent's value
    std::optional<double> mutation_probability =
        {};             // of a new draw, each parameter; none: 1/count
    int divisions = 3;  // nsga3: of an axis between reference points

    [[nodiscard]] bool operator==(const NsgaOptions&) const = default;
};

/// "nsga2" and "nsga3" in a study.
[[nodiscard]] const SamplerKind& nsga2_sampler();
[[nodiscard]] const SamplerKind& nsga3_sampler();

/// Which of a front survive: the least crowded, or those along the emptiest reference directions.
enum class NsgaVariant { k2, k3 };

class NsgaSampler final : public Sampler {
public:
    NsgaSampler(const Space& space, NsgaVariant variant, const NsgaOptions& options,
                Objectives objectives, std::uint64_t seed);

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
    NsgaVariant variant_;
    NsgaOptions options_;
    Objectives objectives_;
    std::uint64_t seed_;
    std::vector<Group> groups_;
    LossTable directions_;                             // nsga3
    std::map<std::uint64_t, Individual> individuals_;  // complete trials
    std::vector<Numbers> parents_;  // of generations 0 .. size - 1, as far as they are up to date
};

}  // namespace tune::tuner
