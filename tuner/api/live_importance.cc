// The importance of parameters while a study runs.
//
// PED-ANOVA of an objective is kept per study and fed with trials as they end, so a request costs
// what has ended since the last one. Trials are copied a thousand at a time, since the lock of the
// studies is held meanwhile and what runs must not wait for whoever looks.

#include "tuner/api/live_importance.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tune::tuner {

namespace {

/// Trials that are copied, and that are looked at, under the lock of the studies at a time.
constexpr std::size_t kCopiedMax = 1000;
constexpr std::size_t kLookedAtMax = 20'000;

/// Empty: the first one.
Result<std::size_t> objective_named(const StudyConfig& config, const std::string& name) {
    const std::vector<MetricConfig> metrics = metrics_of(config);
    if (name.empty()) return std::size_t{0};
    std::string known;
    for (std::size_t k = 0; k < metrics.size(); ++k) {
        if (metrics[k].name == name) return k;
        known += (k == 0 ? "" : ", ") + metrics[k].name;
    }
    return Error{Code::kInvalidParameterValue,
                 "'" + name + "' is no objective of the study; its objectives: " + known};
}

}  // namespace

LiveImportance::Entry& LiveImportance::entry_of(const Ends& ends) {
    const StudyConfig& config = *ends.config;
    const MetricConfig metric = metrics_of(config)[ends.objective];
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.study_id == ends.study_id && entry.metric == metric;
    });
    if (found != entries_.end() && found->importance.space() == config.space) {
        entries_.splice(entries_.begin(), entries_, found);
        return entries_.front();
    }
    if (found != entries_.end()) entries_.erase(found);  // its space was changed
    if (entries_.size() == kStudiesMax) entries_.pop_back();
    entries_.push_front({.study_id = ends.study_id,
                         .metric = metric,
                         .importance = PedAnova(config.space),
                         .is_known = {}});
    return entries_.front();
}

void LiveImportance::copy_ended(Entry& entry, const Study& study, std::size_t begin, Ends& ends) {
    const double sign = entry.metric.goal == Goal::kMaximize ? -1 : 1;
    const std::size_t k = ends.objective;
    const auto& trials = study.trials();
    if (entry.is_known.empty()) begin = 0;  // made anew
    entry.is_known.resize(trials.size(), false);
    begin = std::max(begin, entry.first_open);
    for (std::size_t i = begin; i < trials.size(); ++i) {
        ends.is_all = ends.trials.size() < kCopiedMax && i - begin < kLookedAtMax;
        ends.next = i;
        if (!ends.is_all) break;
        const Trial& trial = trials[i];
        if (entry.is_known[i] || !is_ended(trial.state)) continue;
        entry.is_known[i] = true;
        if (trial.state != TrialState::kComplete || !trial.value || k > trial.more_values.size() ||
            trial.point.size() != study.config().space.size())
            continue;
        ends.trials.push_back(
            {trial.point, sign * (k == 0 ? *trial.value : trial.more_values[k - 1])});
    }
    while (entry.first_open < entry.is_known.size() && entry.is_known[entry.first_open])
        ++entry.first_open;
}

Result<Json> LiveImportance::read(const Studies& studies, const std::string& name,
                                  const std::string& metric) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Ends ends;
    do {
        const std::size_t begin = ends.next;
        ends = {};
        Result<std::size_t> objective = std::size_t{0};
        TUNE_TRY_VOID(studies.read(name, [&](const Study& study) {
            ends.config = study.definition().shared_config();
            ends.study_id = study.identity().id;
            objective = objective_named(*ends.config, metric);
            if (!objective) return;
            ends.objective = *objective;
            copy_ended(entry_of(ends), study, begin, ends);
        }));
        if (!objective) return objective.error();
        Entry& entry = entry_of(ends);
        for (const Ended& trial : ends.trials) entry.importance.add(trial.point, trial.loss);
    } while (!ends.is_all);
    const Entry& entry = entry_of(ends);
    const std::vector<double> values = entry.importance.importances();
    const std::vector<double> shares = shares_of(values);
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    Json list = Json::array();
    for (const std::size_t i : order)
        list.push_back(
            {{"name", ends.config->space[i].name}, {"share", shares[i]}, {"value", values[i]}});
    return Json{{"study", name},
                {"metric", entry.metric.name},
                {"method", "ped-anova"},
                {"trials", entry.importance.count()},
                {"importances", std::move(list)}};
}

}  // namespace tune::tuner
