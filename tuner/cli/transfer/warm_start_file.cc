// Reads earlier trials from a file by what it is: an SQLite file is one of Optuna's, anything else
// is JSON in one of two forms. Only complete trials with numbers count. What exceeds the limit is
// cut at both ends of the ranking, because the server, which knows the goal, picks the best.

#include "tuner/cli/transfer/warm_start_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/system/file.h"
#include "tuner/config/study_config.h"
#include "tuner/interop/optuna/optuna_study.h"
#include "tuner/study/journal/warm_start.h"

namespace tune::cli {
namespace {

using tuner::EarlierTrial;

Error bad_file(const std::string& file, const std::string& message) {
    return {Code::kInvalidParameterValue, "warm_start.from: " + message, file};
}

Result<std::vector<EarlierTrial>> trials_of_optuna(const std::string& file) {
    TUNE_TRY(study, tuner::read_optuna_db(file, {}));
    TUNE_TRY(imported, tuner::from_optuna(std::move(study)));
    std::vector<EarlierTrial> trials;
    for (const tuner::ImportedTrial& trial : imported.trials)
        if (trial.state == tuner::TrialState::kComplete && !trial.values.empty())
            trials.push_back({to_text(imported.config.space.to_json(trial.point)),
                              trial.values.front(),
                              {trial.values.begin() + 1, trial.values.end()}});
    return trials;
}

bool is_list_of_numbers(const Json& list) {
    return list.is_array() && !list.empty() &&
           std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_number(); });
}

Result<std::vector<EarlierTrial>> trials_of_json(const std::string& file) {
    TUNE_TRY(text, read_file(file, kEarlierBytesMax));
    const Result<Json> json = parse_json(text);
    if (!json) return bad_file(file, "the file is not JSON: " + json.error().message);
    const Json& list = json->is_object() && json->contains("trials") ? (*json)["trials"] : *json;
    if (!list.is_array())
        return bad_file(file,
                        "expected the JSON of `tune show STUDY --json`, or a list of "
                        "{\"params\": {...}, \"value\": 0.5}");
    std::vector<EarlierTrial> trials;
    for (const Json& trial : list) {
        if (!trial.is_object() || !trial.contains("params")) continue;
        const bool is_complete = !trial.contains("state") || trial["state"] == "complete";
        const auto value = trial.find("value");
        const auto values = trial.find("values");
        if (!is_complete) continue;
        if (values != trial.end() && is_list_of_numbers(*values))
            trials.push_back({to_text(trial["params"]),
                              values->front().get<double>(),
                              {values->begin() + 1, values->end()}});
        else if (value != trial.end() && value->is_number())
            trials.push_back({to_text(trial["params"]), value->get<double>()});
    }
    return trials;
}

bool is_sqlite(const std::string& file) {
    constexpr std::string_view kMagic = "SQLite format 3";
    std::string head(kMagic.size(), ' ');
    std::ifstream(file, std::ios::binary)
        .read(head.data(), static_cast<std::streamsize>(head.size()));
    return head == kMagic;
}

}  // namespace

Result<void> read_warm_start_file(Json& warm_start) {
    const auto from = warm_start.find("from");
    if (from == warm_start.end() || !from->is_string()) return {};
    const auto file = from->get<std::string>();
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return {};
    TUNE_TRY(trials, is_sqlite(file) ? trials_of_optuna(file) : trials_of_json(file));
    std::erase_if(trials, [](const EarlierTrial& trial) {
        const auto is_finite = [](double value) { return std::isfinite(value); };
        return !is_finite(trial.value) ||
               !std::all_of(trial.more_values.begin(), trial.more_values.end(), is_finite);
    });
    if (trials.empty()) return bad_file(file, "it has no complete trial");
    // Which are the best the server says, by the goal of the new study; both ends of a long list
    // hold them.
    warm_start.erase(from);
    tuner::WarmStartConfig kept;
    kept.trials = std::move(trials);
    std::stable_sort(
        kept.trials.begin(), kept.trials.end(),
        [](const EarlierTrial& a, const EarlierTrial& b) { return a.value < b.value; });
    const std::size_t half = tuner::kWarmStartMax / 2;
    if (kept.trials.size() > 2 * half)
        kept.trials.erase(kept.trials.begin() + static_cast<std::ptrdiff_t>(half),
                          kept.trials.end() - static_cast<std::ptrdiff_t>(half));
    warm_start["trials"] = to_json(kept)["trials"];
    return {};
}

}  // namespace tune::cli
