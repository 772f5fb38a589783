#pragma once
// CMA-ES with margin and restarts. Private to tuner/sampler; see cma_sampler.cc.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tuner/sampler/cma/state.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/trial_split.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

/// Numbers that are always active, which is what CMA-ES models.
[[nodiscard]] std::size_t plain_number_count(const Space& space);

/// True if CMA-ES models every parameter that has more than one value.
[[nodiscard]] bool models_whole(const Space& space);

/// Where the first run begins.
struct CmaStart {
    std::uint64_t trial = 0;  // the first number of its first generation
    /// Of the range. The mean is the best of the trials before; the middle if there is none.
    double sigma = 1.0 / 6;  // as Optuna's CmaEsSampler
};

class CmaSampler final : public Sampler {
public:
    /// `others` proposes what CMA-ES does not model: categories, and what conditions switch.
    /// REQUIRES: plain_number_count(space) > 0.
    CmaSampler(const Space& space, Goal goal, std::uint64_t seed, std::unique_ptr<Sampler> others,
               CmaStart start = {});

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    struct Trial {
        Observation::State state = Observation::State::kRunning;
        std::vector<double> values;  // of the axes; empty: gone
        Rank rank;                   // complete and pruned ones
    };

    /// The trials first, first + 1, ... first + population - 1 and what they are drawn from.
    struct Generation {
        CmaState state;
        std::uint64_t first = 0;
        std::uint64_t run_first = 0;  // where its run began
    };

    [[nodiscard]] Generation first_generation() const;
    [[nodiscard]] const std::vector<double>* best_before() const;
    void step_back(std::uint64_t number);
    void advance();
    [[nodiscard]] bool is_closed(const Generation& generation) const;
    [[nodiscard]] bool has_ended(std::uint64_t first, std::size_t count) const;
    [[nodiscard]] Generation next_of(const Generation& generation);
    [[nodiscard]] CmaMember member_of(std::uint64_t number, const Trial& trial);
    [[nodiscard]] Eigen::VectorXd draw(const CmaState& state, std::uint64_t number);

    Space space_;
    Goal goal_;
    CounterSource source_;
    std::unique_ptr<Sampler> others_;
    CmaStart start_;
    std::vector<std::size_t> parameters_;  // that are modelled
    std::vector<Axis> axes_;
    std::map<std::uint64_t, Trial> trials_;
    std::deque<Generation> path_;  // the latest generations
};

/// "cmaes" in a study.
[[nodiscard]] const SamplerKind& cmaes_sampler();

}  // namespace tune::tuner
