#pragma once
// What a trial measured: the values of its objectives and of the metrics that are bounded.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/study/trial/objective.h"

namespace tune::tuner {

struct Trial;

/// The values of one trial. A study with one objective and no constraints has `value` alone.
struct TrialResult {
    double value = 0;                            ///< of the first objective
    std::vector<double> more_values = {};        ///< of the others
    std::vector<double> constraint_values = {};  ///< one a constraint
};

/// Follows the metrics of one running trial.
class ResultMetrics {
public:
    explicit ResultMetrics(const StudyConfig& config);

    /// The first objective: what pruners and pages look at while the trial runs.
    [[nodiscard]] const Objective& first() const { return followed_.front().objective; }

    /// Before a row is added: if it is the first of its attempt, takes back what earlier ones
    /// measured from its step on. kNothing: there was nothing, or it is another row. Rows come in
    /// the order of their attempts.
    Objective::Forgotten roll_back(std::string_view metric, std::int64_t step, int attempt);
    /// What earlier attempts took back of the metric is known already; so far this one counts.
    void go_on(std::string_view metric, int attempt);

    /// Takes a row of `metric`; false if the study does not measure it. O(metrics of the study).
    bool add(std::string_view metric, const Objective::Row& row);

    /// The last row of `metric`; nothing: there is none, or the study does not measure it.
    [[nodiscard]] std::optional<Objective::Row> last(std::string_view metric) const;

    /// What the trial comes to if it ends now. Without `result` the metric `bad_metric` never
    /// arrived, or (`is_nan`) is not a number, or (`is_of_failed`) was measured by an attempt that
    /// failed and by none since.
    struct Outcome {
        std::optional<TrialResult> result = {};
        std::string bad_metric = {};
        bool is_nan = false;
        bool is_of_failed = false;
    };
    /// `given`: values that count instead of what arrived, the objectives, then the constraints;
    /// may be shorter. `failed_attempt`: the last one that failed; 0: none.
    [[nodiscard]] Outcome outcome(const std::vector<std::optional<double>>& given = {},
                                  int failed_attempt = 0) const;

private:
    struct Followed {
        std::string metric;
        Objective objective;
        int attempt = 1;  // of the last row
    };
    std::vector<Followed> followed_;  // the objectives, then the constraints
    std::size_t objective_count_;
};

/// Every metric that the study measures, each once: the objectives, then those with bounds.
[[nodiscard]] std::vector<std::string> measured_metrics(const StudyConfig& config);

/// Whether `a` is as good as `b` in every objective and better in one. REQUIRES: both are complete
/// trials of the study.
[[nodiscard]] bool dominates(const Trial& a, const Trial& b, const StudyConfig& config);

/// How far a complete trial lies beyond the bounds; 0: feasible.
[[nodiscard]] double violation_of(const Trial& trial, const StudyConfig& config);

}  // namespace tune::tuner
