#pragma once
// Asynchronous successive halving. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tuner/pruner/pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

class AshaPruner final : public Pruner {
public:
    AshaPruner(const PrunerConfig& config, Goal goal);

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    struct Trial {
        Reports reports;
        std::size_t rungs = 0;  // so many of the first have a value of it
        bool has_ended = false;
    };

    [[nodiscard]] std::int64_t rung_step(std::size_t rung) const;
    [[nodiscard]] bool promotes(const SortedValues& rung, double value) const;

    PrunerConfig config_;
    double sign_;
    std::int64_t min_ = 0;  // 0: not known yet
    std::int64_t longest_complete_ = -1;
    std::unordered_map<std::uint64_t, Trial> trials_;
    std::vector<SortedValues> rungs_;  // lower is better
};

}  // namespace tune::tuner
