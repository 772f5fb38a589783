#pragma once
// The sampler that chooses. Private to tuner/sampler; see auto_sampler.cc.

#include <cstdint>
#include <memory>
#include <unordered_set>

#include "tuner/sampler/auto_choice.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

struct AutoParts {
    AutoChoice choice;
    std::unique_ptr<Sampler> first;  // none if choice.gp_trials is 0
    std::unique_ptr<Sampler> later;
    std::unique_ptr<Sampler> last;  // none unless choice.is_cmaes_last
};

class AutoSampler final : public Sampler {
public:
    explicit AutoSampler(AutoParts parts);

    Result<void> observe(const Observation& observation) override;
    [[nodiscard]] Point suggest(std::uint64_t number, const Point& fixed) override;

private:
    AutoParts parts_;
    std::unordered_set<std::uint64_t> finished_;
};

}  // namespace tune::tuner
