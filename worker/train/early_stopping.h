#pragma once
// When to stop before the last epoch: the semantics of Lightning's EarlyStopping callback, or those
// of Keras's.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::train {

enum class Mode { kMin, kMax };
enum class Compat { kLightning, kKeras };

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
    Compat compat = Compat::kLightning;
    /// What must be beaten, too, for the waiting to begin anew; the best score does not need it.
    std::optional<double> baseline = {};
    /// Validations of earlier epochs (the first is 0) are not looked at.
    std::int64_t start_from_epoch = 0;
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
///
/// With Compat::kKeras there are no thresholds and values that are not finite are never better; the
/// first value is always the best so far, and the first epoch never stops.
/// Source: keras 3.15.1, src/callbacks/{early_stopping,monitor_callback}.py.
class EarlyStopping {
public:
    struct Decision {
        StopReason reason = StopReason::kNotStopped;  ///< anything else: stop
        bool improved = false;
    };

    explicit EarlyStopping(EarlyStoppingRule rule);

    /// Takes the value of the metric of one validation check, after epoch number `epoch` (the
    /// first is 0).
    [[nodiscard]] Decision check(double value, std::int64_t epoch = 1);

    [[nodiscard]] const EarlyStoppingRule& rule() const { return rule_; }
    /// Infinity of the wrong sign before the first improvement.
    [[nodiscard]] double best_score() const { return best_score_; }
    [[nodiscard]] std::int64_t wait_count() const { return wait_count_; }

    /// What it remembers; the rule itself is part of the configuration.
    struct State {
        double best_score = 0.0;
        std::int64_t wait_count = 0;
        bool has_best = true;
    };
    [[nodiscard]] State state() const { return {best_score_, wait_count_, has_best_}; }
    void load_state(const State& state);

private:
    [[nodiscard]] bool better(double a, double b) const;
    /// By more than min_delta.
    [[nodiscard]] bool improves_on(double value, double reference) const;
    [[nodiscard]] Decision check_as_keras(double value, std::int64_t epoch);

    EarlyStoppingRule rule_;
    double best_score_;
    std::int64_t wait_count_ = 0;
    bool has_best_ = false;
};

}  // namespace tune::train
