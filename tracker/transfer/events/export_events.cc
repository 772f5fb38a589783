// Runs as folders of TensorBoard's event files, with hparams.
//
// Points are written in the order of their steps, since TensorBoard takes a step that goes back for
// a restart and drops what came before. All runs are read in one snapshot. Names of folders are
// made unique, so that two runs of one name stay two.

#include "tracker/transfer/events/export_events.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tracker/sqlite/transaction.h"
#include "tracker/store/reads/read_transfer.h"
#include "tracker/tensorboard/event.h"
#include "tracker/tensorboard/event_file.h"
#include "tracker/tensorboard/hparams.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr double kMillisecond_s = 1e-3;

double seconds(std::int64_t time_ms) {
    return static_cast<double>(time_ms) * kMillisecond_s;
}

std::string parent_of(const Run& run) {
    for (const Tag& tag : run.tags)
        if (tag.key == "mlflow.parentRunId") return tag.value;
    return {};
}

/// The run and those within it, the run first.
Result<std::vector<Run>> chosen_runs(sqlite::Connection& store, const std::string& wanted) {
    std::vector<Run> all;
    TUNE_TRY(experiments, list_experiments(store));
    for (const Experiment& experiment : experiments) {
        TUNE_TRY(ids, list_run_ids(store, experiment.experiment_id));
        for (const std::string& id : ids) {
            TUNE_TRY(found, find_stored_run(store, id));
            if (found && found->run.info.lifecycle_stage == LifecycleStage::kActive)
                all.push_back(std::move(found->run));
        }
    }
    std::vector<const Run*> matches;
    for (const Run& run : all)
        if (run.info.run_id == wanted) matches = {&run};
    if (matches.empty())
        for (const Run& run : all)
            if (run.info.run_name == wanted) matches.push_back(&run);
    if (matches.empty())
        return Error{Code::kResourceDoesNotExist, "there is no run or study '" + wanted + "'"};
    if (matches.size() > 1) {
        std::string ids;
        for (const Run* run : matches) ids += (ids.empty() ? "" : ", ") + run->info.run_id;
        return Error{Code::kInvalidParameterValue,
                     "several runs are called '" + wanted + "'; give one of the ids " + ids};
    }
    std::vector<Run> chosen = {*matches.front()};
    for (const Run& run : all)
        if (parent_of(run) == chosen.front().info.run_id) chosen.push_back(run);
    return chosen;
}

/// A name that is one folder's.
std::string folder_name(const RunInfo& info, std::set<std::string>& taken) {
    std::string name = info.run_name.empty() ? info.run_id : info.run_name;
    for (char& c : name)
        if (c == '/' || static_cast<unsigned char>(c) < 0x20) c = '_';
    if (name == "." || name == ".." || name.size() > 200) name = info.run_id;
    if (!taken.insert(name).second) {
        name += " " + info.run_id;
        taken.insert(name);
    }
    return name;
}

tensorboard::SessionStatus session_status(RunStatus status) {
    if (status == RunStatus::kFinished) return tensorboard::SessionStatus::kSuccess;
    return status == RunStatus::kFailed || status == RunStatus::kKilled
               ? tensorboard::SessionStatus::kFailure
               : tensorboard::SessionStatus::kRunning;
}

Result<std::int64_t> write_run(sqlite::Connection& store, const Run& run, const fs::path& folder) {
    const double start = seconds(run.info.start_time_ms);
    TUNE_TRY(file, tensorboard::EventFile::create(folder, start));
    std::vector<std::pair<std::string, std::string>> params;
    for (const Param& param : run.params) params.emplace_back(param.key, param.value);
    if (!params.empty())
        TUNE_TRY_VOID(file.write(tensorboard::plugin_event(
            start, tensorboard::kSessionStartTag, tensorboard::kHparamsPlugin,
            tensorboard::session_start(params, start))));
    std::map<std::string, std::vector<Point>> series;
    std::int64_t count = 0;
    TUNE_TRY_VOID(for_each_stored_series(
        store, run.info.run_id,
        [&](std::string_view key, std::span<const Point> points) -> Result<void> {
            auto& own = series[std::string(key)];
            own.insert(own.end(), points.begin(), points.end());
            count += static_cast<std::int64_t>(points.size());
            return {};
        }));
    for (auto& [key, points] : series) {
        std::stable_sort(points.begin(), points.end(),
                         [](const Point& a, const Point& b) { return compare_in_steps(a, b) < 0; });
        for (const Point& point : points) {
            const tensorboard::Scalar scalar[] = {{key, point.value}};
            TUNE_TRY_VOID(file.write(
                tensorboard::scalar_event(seconds(point.timestamp_ms), point.step, scalar)));
        }
    }
    const double end = seconds(run.info.end_time_ms.value_or(run.info.start_time_ms));
    if (!params.empty() && run.info.end_time_ms)
        TUNE_TRY_VOID(file.write(tensorboard::plugin_event(
            end, tensorboard::kSessionEndTag, tensorboard::kHparamsPlugin,
            tensorboard::session_end(session_status(run.info.status), end))));
    return count;
}

}  // namespace

Result<ExportedEvents> export_events(const ExportEventsOptions& options) {
    std::error_code error;
    if (fs::exists(options.target, error) && !fs::is_empty(options.target, error))
        return Error{Code::kResourceAlreadyExists,
                     "'" + options.target.string() + "' is there already; name a new folder"};
    TUNE_TRY(store, open_store_for_reading(options.data));
    TUNE_TRY(snapshot, sqlite::Transaction::begin_read(*store));
    TUNE_TRY(runs, chosen_runs(*store, options.run));
    ExportedEvents done;
    std::set<std::string> taken;
    for (const Run& run : runs) {
        const std::string name = folder_name(run.info, taken);
        TUNE_TRY(points, write_run(*store, run, options.target / name));
        ++done.runs;
        done.points += points;
    }
    TUNE_TRY_VOID(snapshot.commit());
    return done;
}

}  // namespace tune::tracker
