#include "tuner/sampler/sampler.h"

#include "tuner/sampler/random_sampler.h"
#include "tuner/sampler/tpe_sampler.h"

namespace tune::tuner {

std::unique_ptr<Sampler> make_sampler(const Space& space, const SamplerConfig& config, Goal goal,
                                      std::uint64_t seed) {
    if (config.type == SamplerType::kRandom)
        return std::make_unique<RandomSampler>(space, std::make_unique<CounterSource>(seed));
    return std::make_unique<TpeSampler>(
        space, config, goal,
        TpeSources{std::make_unique<CounterSource>(seed), std::make_unique<CounterSource>(seed)});
}

}  // namespace tune::tuner
