#pragma once
// Which individuals survive a generation: NSGA-II by crowding, NSGA-III by reference directions.
// Private to tuner/sampler (and its tests).

#include <cstdint>
#include <span>
#include <vector>

#include "tuner/sampler/nsga/pareto.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

/// Uniform numbers one after another, all of one trial and one label.
class Draws {
public:
    Draws(std::uint64_t seed, std::uint64_t trial, std::string_view label)
        : source_(seed), trial_(trial), key_(stream_key(label)) {}

    [[nodiscard]] double next();
    /// 0 .. count - 1. REQUIRES: count > 0.
    [[nodiscard]] std::size_t index(std::size_t count);
    template <class T>
    void shuffle(std::vector<T>& items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[index(i)]);
    }

private:
    CounterSource source_;
    std::uint64_t trial_;
    std::uint64_t key_;
    std::uint64_t block_ = 0;
    std::vector<double> buffer_;
    std::size_t used_ = 0;
};

/// Complete trials: their losses, and how far each is off the constraints (0: feasible).
struct Population {
    explicit Population(std::size_t objectives) : losses(objectives) {}

    LossTable losses;
    std::vector<double> violations;
};

/// Each row's crowding distance: over the columns, the gap between its neighbours as a share of the
/// finite range. Source: Deb et al. 2002; optuna 5.0.0,
/// nsgaii/_elite_population_selection_strategy.
[[nodiscard]] std::vector<double> crowding_distances(const LossTable& front);

/// At most `count` rows: whole ranks, then the least crowded of the next one.
[[nodiscard]] std::vector<std::size_t> select_by_crowding(const Population& population,
                                                          std::size_t count);

/// The points whose coordinates are whole numbers that sum to `divisions`, one row each.
[[nodiscard]] LossTable reference_directions(std::size_t objectives, std::size_t divisions);

/// Losses measured from the ideal point in units of the intercepts of the plane through the extreme
/// points; infinities are pulled in first.
[[nodiscard]] LossTable normalized_losses(const LossTable& losses);

/// The direction whose line from the origin passes nearest to a normalised row, and how near.
struct Niche {
    std::size_t direction = 0;
    double distance = 0;
};
[[nodiscard]] Niche niche_of(std::span<const double> losses, const LossTable& directions);

/// At most `count` rows: whole ranks, then those of the next one whose reference direction has the
/// fewest survivors. Source: Deb, Jain 2014; optuna 5.0.0, _nsgaiii.
[[nodiscard]] std::vector<std::size_t> select_by_directions(const Population& population,
                                                            std::size_t count,
                                                            const LossTable& directions,
                                                            Draws& draws);

}  // namespace tune::tuner
