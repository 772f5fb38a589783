#include "tuner/pruner/pruner.h"

#include "base/check.h"
#include "tuner/pruner/asha_pruner.h"
#include "tuner/pruner/percentile_pruner.h"

namespace tune::tuner {
namespace {

class KeepAll final : public Pruner {
public:
    [[nodiscard]] Verdict report(std::uint64_t, std::int64_t, double) override {
        return Verdict::kKeep;
    }
    void restart(std::uint64_t) override {}
    void finish(std::uint64_t, End) override {}
};

}  // namespace

std::unique_ptr<Pruner> make_pruner(const PrunerConfig& config, Goal goal) {
    switch (config.type) {
        case PrunerType::kNone: return std::make_unique<KeepAll>();
        case PrunerType::kMedian: return std::make_unique<PercentilePruner>(config, 50, goal);
        case PrunerType::kPercentile:
            return std::make_unique<PercentilePruner>(config, config.percentile, goal);
        case PrunerType::kAsha: return std::make_unique<AshaPruner>(config, goal);
    }
    TUNE_CHECK(false, "an unknown pruner");
    return nullptr;
}

}  // namespace tune::tuner
