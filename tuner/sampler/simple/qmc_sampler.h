#pragma once
// Scrambled Sobol points. Private to tuner/sampler; see sampler.h.

#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/random_sampler.h"

namespace tune::tuner {

/// Parameters that the sequence serves; further ones are drawn independently. Boost's table of
/// direction numbers has 3,667.
inline constexpr std::size_t kSobolParametersMax = 1024;

/// Trial n takes point n of a Sobol sequence scrambled by the seed, so workers share one sequence
/// without sharing anything, and a power of two of trials is balanced in every parameter. What was
/// observed does not matter.
class QmcSampler final : public Sampler {
public:
    QmcSampler(const Space& space, std::uint64_t seed);
    ~QmcSampler() override;

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    class Sequence;

    Space space_;
    std::vector<Group> groups_;
    std::vector<std::size_t> dimension_of_;  // by parameter; kSobolParametersMax: none
    std::unique_ptr<Sequence> sequence_;
    CounterSource source_;
};

/// "qmc" in a study.
[[nodiscard]] const SamplerKind& qmc_sampler();

}  // namespace tune::tuner
