#pragma once
// When a run is to be marked, and what counts for it. Pure: no clock, no I/O.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Rules of one server. Each is looked at for every metric that is logged in its experiments.
inline constexpr std::size_t kAlertRulesMax = 100;

enum class AlertKind {
    kNan,      ///< a metric became NaN or infinite
    kPlateau,  ///< a metric stopped improving
    kSilence,  ///< a RUNNING run is not written to any more
};
/// "nan", "plateau", "silence".
[[nodiscard]] std::string_view alert_kind_name(AlertKind kind);

struct AlertRule {
    std::string alert_id;
    AlertKind kind = AlertKind::kNan;
    std::optional<ExperimentId> experiment_id = {};  ///< none: all experiments
    std::string metric = {};      ///< nan: empty means any metric; plateau: this one
    bool is_minimized = true;     ///< plateau
    double min_delta = 0;         ///< plateau: what counts as better must be better by more
    std::int64_t points = 0;      ///< plateau: so many points without improvement
    std::int64_t silence_ms = 0;  ///< silence
    std::int64_t created_ms = 0;

    [[nodiscard]] bool applies_to(ExperimentId id) const {
        return !experiment_id || *experiment_id == id;
    }
};

/// Reads {"kind", "experiment_id", "metric", "goal", "min_delta", "points", "seconds"}. Errors:
/// kInvalidParameterValue naming the field, what it holds and what is expected.
[[nodiscard]] Result<AlertRule> alert_rule_from_json(const Json& json);
/// As answered and stored, with "alert_id" and "created".
[[nodiscard]] Json alert_rule_to_json(const AlertRule& rule);

/// NaN or infinite. The store keeps infinities as the largest finite values, as MLflow does.
[[nodiscard]] inline bool is_bad_value(double value) {
    return std::isnan(value) || std::abs(value) >= std::numeric_limits<double>::max();
}

/// How a metric of one run has gone so far. Points may come twice or late: a point counts as one
/// without improvement only when it is newer (time, then step) than all before.
class PlateauState {
public:
    /// Takes the next point. Cost O(1).
    void add(const AlertRule& rule, const Metric& point);
    [[nodiscard]] bool is_flat(const AlertRule& rule) const { return since_best_ >= rule.points; }
    [[nodiscard]] double best() const { return best_; }
    [[nodiscard]] std::int64_t best_step() const { return best_step_; }

private:
    double best_ = std::numeric_limits<double>::quiet_NaN();  // NaN: none yet
    std::int64_t best_step_ = 0;
    std::int64_t since_best_ = 0;
    std::pair<std::int64_t, std::int64_t> newest_{std::numeric_limits<std::int64_t>::min(), 0};
};

}  // namespace tune::tracker
