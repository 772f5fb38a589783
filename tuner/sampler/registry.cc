// Every sampler: one line each, in the order in which people see them.

#include "tuner/sampler/sampler_kind.h"

// clang-format off
#define TUNE_SAMPLERS(X) \
    X(tpe_sampler)       \
    X(gp_sampler)        \
    X(auto_sampler)      \
    X(cmaes_sampler)     \
    X(random_sampler)    \
    X(qmc_sampler)       \
    X(grid_sampler)      \
    X(nsga2_sampler)     \
    X(nsga3_sampler)     \
    X(pbt_sampler)
// clang-format on

namespace tune::tuner {

#define TUNE_DECLARE(name) const SamplerKind& name();
TUNE_SAMPLERS(TUNE_DECLARE)
#undef TUNE_DECLARE

Kinds sampler_kinds() {
#define TUNE_LIST(name) &name(),
    static const KindBase* const kKinds[] = {TUNE_SAMPLERS(TUNE_LIST)};
#undef TUNE_LIST
    return kKinds;
}

}  // namespace tune::tuner
