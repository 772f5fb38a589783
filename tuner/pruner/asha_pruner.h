#pragma once
// Asynchronous successive halving. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

struct AshaOptions {
    std::int64_t min = 0;  // first rung in steps; 0: from the longest complete trial ("auto")
    std::int64_t max = 0;  // no rung at or above this step; 0: no end
    int eta = 4;           // each rung keeps one of eta
    int rate = 0;          // early stopping rate: the first rung is at min * eta^rate
    int bootstrap = 0;     // values a rung needs before it promotes

    [[nodiscard]] bool operator==(const AshaOptions&) const = default;
};

class AshaPruner final : public Pruner {
public:
    AshaPruner(const AshaOptions& options, Goal goal);

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    struct Trial {
        Reports reports;
        std::size_t rungs = 0;  // so many of the first have a value of it
        bool has_ended = false;
    };

    [[nodiscard]] std::int64_t rung_step(std::size_t rung) const;
    [[nodiscard]] bool promotes(const SortedValues& rung, double value) const;

    AshaOptions options_;
    double sign_;
    std::int64_t min_ = 0;  // 0: not known yet
    std::int64_t longest_complete_ = -1;
    std::unordered_map<std::uint64_t, Trial> trials_;
    std::vector<SortedValues> rungs_;  // lower is better
};

/// "asha" in a study.
[[nodiscard]] const PrunerKind& asha_pruner();

/// Adds rungs from `first` on with the trials that reach them when each keeps one of eta (Li et al.
/// 2020), and the last step.
void add_rungs(std::vector<Rung>& rungs, const AshaOptions& options, double first, double trials,
               std::optional<int> bracket);

/// Refuses a last step that is not above the first rung. Errors: kInvalidParameterValue.
[[nodiscard]] Result<void> check_rungs(const Fields& fields, std::int64_t min, std::int64_t max);

}  // namespace tune::tuner
