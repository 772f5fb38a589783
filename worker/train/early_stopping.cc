// Each library's order of tests is kept as it is, ties and values that are not finite included; the
// vectors of the tests are the libraries' own decisions.

#include "worker/train/early_stopping.h"

#include <cmath>

namespace tune::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

Result<Mode> mode_from_name(std::string_view metric) {
    if (contains(metric, "acc")) return Mode::kMax;
    for (const char* part : {"loss", "error", "mae", "mse"})
        if (contains(metric, part)) return Mode::kMin;
    return Error{Code::kInvalidParameterValue,
                 "early_stopping: whether '" + std::string(metric) +
                     "' should fall or rise does not follow from its name; write '" +
                     std::string(metric) + ":min' or '" + std::string(metric) + ":max'"};
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
    switch (reason) {
        case StopReason::kNotStopped: return "not_stopped";
        case StopReason::kStoppingThreshold: return "stopping_threshold";
        case StopReason::kDivergenceThreshold: return "divergence_threshold";
        case StopReason::kPatienceExhausted: return "patience_exhausted";
        case StopReason::kNonFinite: return "non_finite";
    }
    return "not_stopped";
}

Result<EarlyStoppingRule> parse_early_stopping(std::string_view text) {
    const std::size_t colon = text.find(':');
    EarlyStoppingRule rule;
    rule.metric = std::string(text.substr(0, colon));
    const std::string mode(colon == std::string_view::npos ? "auto" : text.substr(colon + 1));
    if (rule.metric.empty())
        return Error{Code::kInvalidParameterValue,
                     "early_stopping: '" + std::string(text) +
                         "' names no metric; write metric:mode, e.g. val_loss:min"};
    if (mode == "min") {
        rule.mode = Mode::kMin;
    } else if (mode == "max") {
        rule.mode = Mode::kMax;
    } else if (mode == "auto") {
        TUNE_TRY(found, mode_from_name(rule.metric));
        rule.mode = found;
    } else {
        return Error{Code::kInvalidParameterValue,
                     "early_stopping: mode '" + mode + "' is not one of min, max, auto"};
    }
    return rule;
}

EarlyStopping::EarlyStopping(EarlyStoppingRule rule)
    : rule_(std::move(rule)), best_score_(rule_.mode == Mode::kMin ? kInfinity : -kInfinity) {}

bool EarlyStopping::better(double a, double b) const {
    return rule_.mode == Mode::kMin ? a < b : a > b;
}

bool EarlyStopping::improves_on(double value, double reference) const {
    const double margin = rule_.mode == Mode::kMax ? rule_.min_delta : -rule_.min_delta;
    return better(value - margin, reference);
}

EarlyStopping::Decision EarlyStopping::check_as_keras(double value, std::int64_t epoch) {
    ++wait_count_;
    if (!has_best_ || improves_on(value, best_score_)) {
        best_score_ = value;
        has_best_ = true;
        if (!rule_.baseline || improves_on(value, *rule_.baseline)) wait_count_ = 0;
        return {.improved = true};
    }
    if (wait_count_ >= rule_.patience && epoch > 0)
        return {.reason = StopReason::kPatienceExhausted};
    return {};
}

EarlyStopping::Decision EarlyStopping::check(double value, std::int64_t epoch) {
    if (epoch < rule_.start_from_epoch) return {};
    if (rule_.compat == Compat::kKeras) return check_as_keras(value, epoch);
    if (!std::isfinite(value)) return {.reason = StopReason::kNonFinite};
    if (rule_.stopping_threshold && better(value, *rule_.stopping_threshold))
        return {.reason = StopReason::kStoppingThreshold};
    if (rule_.divergence_threshold && better(-value, -*rule_.divergence_threshold))
        return {.reason = StopReason::kDivergenceThreshold};
    if (improves_on(value, best_score_)) {
        best_score_ = value;
        has_best_ = true;
        wait_count_ = !rule_.baseline || improves_on(value, *rule_.baseline) ? 0 : wait_count_ + 1;
        return {.improved = true};
    }
    ++wait_count_;
    if (wait_count_ >= rule_.patience) return {.reason = StopReason::kPatienceExhausted};
    return {};
}

void EarlyStopping::load_state(const State& state) {
    best_score_ = state.best_score;
    wait_count_ = state.wait_count;
    has_best_ = state.has_best;
}

}  // namespace tune::train
