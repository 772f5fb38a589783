#include "tuner/api/live_importance.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tune::tuner {

LiveImportance::Entry& LiveImportance::entry_of(const Study& study) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.study_id == study.identity().id;
    });
    if (found != entries_.end() && found->importance.space() == study.config().space) {
        entries_.splice(entries_.begin(), entries_, found);
        return entries_.front();
    }
    if (found != entries_.end()) entries_.erase(found);  // its space was changed
    if (entries_.size() == kStudiesMax) entries_.pop_back();
    entries_.push_front({.study_id = study.identity().id,
                         .importance = PedAnova(study.config().space),
                         .is_known = {}});
    return entries_.front();
}

void LiveImportance::take_ended(Entry& entry, const Study& study) {
    const double sign = study.config().metric.goal == Goal::kMaximize ? -1 : 1;
    entry.is_known.resize(study.trials().size(), false);
    for (std::size_t i = entry.first_open; i < study.trials().size(); ++i) {
        const Trial& trial = study.trials()[i];
        if (entry.is_known[i] || !is_ended(trial.state)) continue;
        entry.is_known[i] = true;
        if (trial.state == TrialState::kComplete && trial.value &&
            trial.point.size() == study.config().space.size())
            entry.importance.add(trial.point, sign * *trial.value);
    }
    while (entry.first_open < entry.is_known.size() && entry.is_known[entry.first_open])
        ++entry.first_open;
}

Json LiveImportance::read(const Study& study) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = entry_of(study);
    take_ended(entry, study);
    const std::vector<double> values = entry.importance.importances();
    const std::vector<double> shares = shares_of(values);
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    Json list = Json::array();
    for (const std::size_t i : order)
        list.push_back(
            {{"name", study.config().space[i].name}, {"share", shares[i]}, {"value", values[i]}});
    return {{"study", study.name()},
            {"metric", study.config().metric.name},
            {"method", "ped-anova"},
            {"trials", entry.importance.count()},
            {"importances", std::move(list)}};
}

}  // namespace tune::tuner
