#include "tuner/pruner/pruner.h"

#include <vector>

#include "base/check.h"
#include "tuner/pruner/asha_pruner.h"
#include "tuner/pruner/combined_pruner.h"
#include "tuner/pruner/hyperband_pruner.h"
#include "tuner/pruner/patience_pruner.h"
#include "tuner/pruner/percentile_pruner.h"
#include "tuner/pruner/running_percentile_pruner.h"
#include "tuner/pruner/threshold_pruner.h"
#include "tuner/pruner/wilcoxon_pruner.h"

namespace tune::tuner {
namespace {

class KeepAll final : public Pruner {
public:
    void note(std::uint64_t, std::int64_t, double) override {}
    [[nodiscard]] Verdict judge(std::uint64_t) override { return Verdict::kKeep; }
    void finish(std::uint64_t, End, double) override {}
};

}  // namespace

std::unique_ptr<Pruner> make_pruner(const PrunerConfig& config, Goal goal, std::string_view study) {
    std::vector<std::unique_ptr<Pruner>> parts;
    for (const PrunerConfig& part : config.of) parts.push_back(make_pruner(part, goal, study));
    switch (config.type) {
        case PrunerType::kNone: return std::make_unique<KeepAll>();
        case PrunerType::kMedian: return std::make_unique<PercentilePruner>(config, 50, goal);
        case PrunerType::kPercentile:
            return std::make_unique<PercentilePruner>(config, config.percentile, goal);
        case PrunerType::kRunningPercentile:
            return std::make_unique<RunningPercentilePruner>(config, goal);
        case PrunerType::kAsha: return std::make_unique<AshaPruner>(config, goal);
        case PrunerType::kHyperband: return std::make_unique<HyperbandPruner>(config, goal, study);
        case PrunerType::kThreshold: return std::make_unique<ThresholdPruner>(config);
        case PrunerType::kWilcoxon: return std::make_unique<WilcoxonPruner>(config, goal);
        case PrunerType::kPatience:
            return std::make_unique<PatiencePruner>(
                config, goal, parts.empty() ? nullptr : std::move(parts.front()));
        case PrunerType::kAny:
        case PrunerType::kAll:
            return std::make_unique<CombinedPruner>(std::move(parts),
                                                    config.type == PrunerType::kAll);
    }
    TUNE_CHECK(false, "an unknown pruner");
    return nullptr;
}

}  // namespace tune::tuner
