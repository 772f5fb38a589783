#pragma once
// When to stop before the last epoch: the semantics of Lightning's EarlyStopping callback.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::train {

enum class Mode { kMin, kMax };

/// Why training stopped. The first five are Lightning's EarlyStoppingReason.
enum class StopReason {
    kNotStopped,
    kStoppingThreshold,
    kDivergenceThreshold,
    kPatienceExhausted,
    kNonFinite,
};

/// "not_stopped", "stopping_threshold", "divergence_threshold", "patience_exhausted", "non_finite".
[[nodiscard]] std::string_view stop_reason_name(StopReason reason);

struct EarlyStoppingRule {
    std::string metric = "val_loss";
    Mode mode = Mode::kMin;
    /// Least change that counts; a change of exactly this much is no improvement.
    double min_delta = 0.0;
    /// Validation checks (not epochs) without improvement before it stops. 0 and 1 both stop at
    /// the first one.
    std::int64_t patience = 3;
    std::optional<double> stopping_threshold = {};
    std::optional<double> divergence_threshold = {};
};

/// "val_loss:min" -> metric and mode. Without a mode, or with "auto", it follows from the name as
/// in Keras (acc -> max; loss, error, mae, mse -> min). Errors: kInvalidParameterValue.
[[nodiscard]] Result<EarlyStoppingRule> parse_early_stopping(std::string_view text);

/// Decides after each validation. Not thread-safe.
///
/// The order of the tests is Lightning's: not finite, stopping threshold (strict), divergence
/// threshold (strict, on negated values), improvement (strict, by more than min_delta), patience.
/// A value that reaches a threshold does not become the best score, as there.
/// Source: lightning 7f0c343, pytorch/callbacks/early_stopping.py.
class EarlyStopping {
public:
    struct Decision {
        StopReason reason = StopReason::kNotStopped;  ///< anything else: stop
        bool improved = false;
    };

    explicit EarlyStopping(EarlyStoppingRule rule);

    /// Takes the value of the metric of one validation check.
    [[nodiscard]] Decision check(double value);

    [[nodiscard]] const EarlyStoppingRule& rule() const { return rule_; }
    /// Infinity of the wrong sign before the first improvement.
    [[nodiscard]] double best_score() const { return best_score_; }
    [[nodiscard]] std::int64_t wait_count() const { return wait_count_; }

    /// What it remembers; the rule itself is part of the configuration.
    struct State {
        double best_score = 0.0;
        std::int64_t wait_count = 0;
    };
    [[nodiscard]] State state() const { return {best_score_, wait_count_}; }
    void load_state(const State& state);

private:
    [[nodiscard]] bool better(double a, double b) const;

    EarlyStoppingRule rule_;
    double best_score_;
    std::int64_t wait_count_ = 0;
};

}  // namespace tune::train
