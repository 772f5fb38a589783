#pragma once
// Several brackets of successive halving. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tuner/pruner/asha_pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

struct HyperbandOptions {
    std::int64_t min = 1;  // first rung of the first bracket, in steps
    std::int64_t max = 0;  // last step; 0: from the first complete trial ("auto")
    int eta = 3;           // each rung keeps one of eta
    int bootstrap = 0;     // values a rung needs before it promotes

    [[nodiscard]] bool operator==(const HyperbandOptions&) const = default;
};

class HyperbandPruner final : public Pruner {
public:
    HyperbandPruner(const HyperbandOptions& options, Goal goal, std::string_view study);

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    struct Bracket {
        AshaPruner pruner;
        std::uint64_t share;  // of share_sum_ trials
    };

    void make_brackets();
    [[nodiscard]] AshaPruner& bracket_of(std::uint64_t number);

    HyperbandOptions options_;
    Goal goal_;
    std::string study_;
    std::int64_t longest_complete_ = -1;
    std::vector<Bracket> brackets_;  // empty until `max` is known
    std::uint64_t share_sum_ = 0;
    std::unordered_map<std::uint64_t, Reports> waiting_;  // running trials until then
};

}  // namespace tune::tuner
