#include "tuner/pruner/pruner.h"

#include "tuner/pruner/pruner_kind.h"

namespace tune::tuner {
namespace {

class KeepAll final : public Pruner {
public:
    void note(std::uint64_t, std::int64_t, double) override {}
    [[nodiscard]] bool should_prune(std::uint64_t) override { return false; }
    void finish(std::uint64_t, End, double) override {}
};

std::unique_ptr<Pruner> make_none(const PrunerConfig&, const PrunerContext&) {
    return std::make_unique<KeepAll>();
}

}  // namespace

const PrunerKind& no_pruner() {
    static const OptionTable kOptions = TableOf<NoOptions>();
    static const PrunerKind kKind{{"none", "nothing is pruned", kOptions}, make_none};
    return kKind;
}

std::unique_ptr<Pruner> make_pruner(const PrunerConfig& config, Goal goal, std::string_view study) {
    return config.kind().make(config, {goal, study});
}

}  // namespace tune::tuner
