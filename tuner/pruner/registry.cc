// Every pruner: one line each, in the order in which people see them.

#include "tuner/pruner/pruner_kind.h"

// clang-format off
#define TUNE_PRUNERS(X)     \
    X(no_pruner)            \
    X(median_pruner)        \
    X(percentile_pruner)    \
    X(asha_pruner)          \
    X(hyperband_pruner)     \
    X(running_percentile_pruner) \
    X(threshold_pruner)     \
    X(wilcoxon_pruner)      \
    X(patience_pruner)      \
    X(any_pruner)           \
    X(all_pruner)
// clang-format on

namespace tune::tuner {

#define TUNE_DECLARE(name) const PrunerKind& name();
TUNE_PRUNERS(TUNE_DECLARE)
#undef TUNE_DECLARE

Kinds pruner_kinds() {
#define TUNE_LIST(name) &name(),
    static const KindBase* const kKinds[] = {TUNE_PRUNERS(TUNE_LIST)};
#undef TUNE_LIST
    return kKinds;
}

}  // namespace tune::tuner
