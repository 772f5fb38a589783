#pragma once
// TPE with the rules of Hyperopt or of Watanabe 2023. Private to tuner/sampler; see
// preset_sampler.cc.

#include <cstdint>
#include <map>
#include <vector>

#include "tuner/sampler/layout.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/presets/plain_mixture.h"
#include "tuner/sampler/tpe/tpe_options.h"
#include "tuner/sampler/tpe/trial_split.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

class PresetSampler final : public Sampler {
public:
    PresetSampler(const Space& space, const TpeOptions& options, Goal goal, std::uint64_t seed);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    struct Trial {
        Point point;
        bool is_finished = false;
        Rank rank;
    };

    /// The trials of one ask, each side in order of number.
    struct Split {
        std::vector<const Trial*> good;
        std::vector<const Trial*> bad;
        double best_bad = 0;  // value of the best bad one, lower is better
    };

    [[nodiscard]] Split split(std::uint64_t number) const;
    void draw(const Group& group, const Split& split, std::uint64_t number, Point& point);
    [[nodiscard]] PlainMixture mixture_of(const std::vector<Axis>& axes, const Group& group,
                                          const std::vector<const Trial*>& trials,
                                          const double* best_bad) const;

    Space space_;
    Goal goal_;
    MixtureRule rule_;
    std::size_t startup_;
    std::size_t candidates_;
    std::vector<Group> groups_;
    CounterSource source_;
    std::map<std::uint64_t, Trial> trials_;
};

}  // namespace tune::tuner
