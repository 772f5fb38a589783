// Every step is a small transaction that finds its work anew, so a collection can be stopped at any
// point and the next one continues. Runs and models are first hidden (under a random id, in
// experiment -1), and the same transaction lists their folders of artifacts; rows and folders are
// removed after. So no crash leaves rows that a read can find or a folder that nobody knows.

#include "tracker/maintenance/garbage_collector.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <thread>

#include "base/log.h"
#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

constexpr std::int64_t kPage = static_cast<std::int64_t>(kPurgeIdsMax);
constexpr std::int64_t kDatasetsAtOnce = 500;
constexpr std::int64_t kNamesAtOnce = 500;
constexpr std::int64_t kRowsLookedAtAtOnce = 20'000;
constexpr std::int64_t kPagesAtOnce = 1'024;
/// Blocks whose numbers are read in one snapshot: 2 MB.
constexpr std::int64_t kBlocksRead = 262'144;
/// Blocks, about a page each, that are removed before pages are given back. SQLite looks for a page
/// in the list of free ones, which shall not grow with the garbage.
constexpr std::size_t kBlocksBetweenShrinks = 16'384;

/// While the writer's queue is full the collection stands back.
constexpr int kBusyTries = 500;
constexpr std::chrono::milliseconds kBusyPause{20};

template <class Read>
auto in_snapshot(const Store& store, Read read) {
    return store.snapshot(read);
}

Result<void> checked(const Store& store, const GarbageChoice& choice) {
    const Result<bool> done = store.snapshot([&](sqlite::Connection& connection) -> Result<bool> {
        TUNE_TRY_VOID(check_garbage(connection, choice));
        return true;
    });
    return done ? Result<void>() : done.error();
}

class Collector {
public:
    Collector(Store& store, const ArtifactStore& artifacts, const GarbageChoice& choice,
              const Report& report)
        : store_(store), artifacts_(artifacts), choice_(choice), report_(report) {}

    Result<GarbageReport> run() {
        TUNE_TRY(before, in_snapshot(store_, file_use));
        sum_.file_bytes_before = before.file_bytes;
        TUNE_TRY_VOID(remove_rows());  // what an earlier collection left
        TUNE_TRY_VOID(remove_runs());
        TUNE_TRY_VOID(remove_models());
        TUNE_TRY_VOID(remove_experiments());
        TUNE_TRY_VOID(remove_folders());
        TUNE_TRY_VOID(sweep_datasets());
        if (rows_ > 0) TUNE_TRY_VOID(sweep_names());
        TUNE_TRY_VOID(sweep_answers());
        TUNE_TRY_VOID(shrink());
        TUNE_TRY(after, in_snapshot(store_, file_use));
        sum_.file_bytes = after.file_bytes;
        sum_.free_bytes = after.free_bytes;
        return sum_;
    }

private:
    Result<void> report_progress(const char* phase, std::int64_t done) {
        if (report_({phase, done, 0})) return {};
        return job_stopped();
    }

    Result<PurgeProgress> make(const Operation& operation) {
        for (int i = 0;; ++i) {
            Result<Outcome> outcome = store_.execute(operation);
            if (outcome) {
                const auto* progress = std::get_if<PurgeProgress>(&*outcome);
                return progress != nullptr ? *progress : PurgeProgress{};
            }
            if (outcome.error().code != Code::kRequestLimitExceeded || i == kBusyTries)
                return std::move(outcome).error();
            TUNE_TRY_VOID(report_progress("waiting for other writes", i));
            std::this_thread::sleep_for(kBusyPause);
        }
    }

    /// The blocks at the file's end first, so that pages can be given back without moving others;
    /// among 16,384 in the order of the file: a leaf that becomes empty takes its right neighbour's
    /// row, and it is the neighbour's unchanged page that becomes free, which costs no write. In
    /// the order of metrics each block would cost two pages of the log.
    Result<void> remove_blocks() {
        for (;;) {
            TUNE_TRY(ids, in_snapshot(store_, [](sqlite::Connection& connection) {
                         return garbage_blocks(connection, kBlocksRead);
                     }));
            if (ids.empty()) return {};
            for (std::span<const std::int64_t> rest = ids; !rest.empty();) {
                const std::size_t count = std::min(rest.size(), kBlocksBetweenShrinks);
                TUNE_TRY_VOID(remove_blocks(rest.last(count)));
                rest = rest.first(rest.size() - count);
                TUNE_TRY_VOID(shrink());
            }
        }
    }

    Result<void> remove_blocks(std::span<const std::int64_t> ids) {
        while (!ids.empty()) {
            const auto part = ids.first(std::min(ids.size(), kPurgeBlocksMax));
            TUNE_TRY(step, make(PurgeBlocks{{part.begin(), part.end()}}));
            ids = ids.subspan(static_cast<std::size_t>(step.next));
            rows_ += step.count;
            TUNE_TRY_VOID(report_progress("rows", rows_));
        }
        return {};
    }

    Result<void> remove_rows() {
        TUNE_TRY_VOID(remove_blocks());
        for (;;) {
            TUNE_TRY(step, make(PurgeRows{kGarbageRowsAtOnce}));
            rows_ += step.count;
            sum_.metric_points += step.metric_points;
            if (step.is_done) return {};
            TUNE_TRY_VOID(report_progress("rows", rows_));
        }
    }

    Result<void> remove_runs() {
        GarbagePage page;
        for (;;) {
            TUNE_TRY(next, in_snapshot(store_, [&](sqlite::Connection& connection) {
                         return garbage_runs(connection, choice_, page.next_row, kPage);
                     }));
            if (next.ids.empty()) return {};
            page = std::move(next);
            TUNE_TRY(hidden, make(PurgeRuns{page.ids, choice_.deleted_until_ms}));
            sum_.runs += hidden.count;
            TUNE_TRY_VOID(report_progress("runs", sum_.runs));
            TUNE_TRY_VOID(remove_rows());
        }
    }

    Result<void> remove_models() {
        GarbagePage page;
        for (;;) {
            TUNE_TRY(next, in_snapshot(store_, [&](sqlite::Connection& connection) {
                         return garbage_models(connection, choice_, page.next_row, kPage);
                     }));
            if (next.ids.empty()) return {};
            page = std::move(next);
            TUNE_TRY(hidden, make(PurgeModels{page.ids, choice_.deleted_until_ms}));
            sum_.logged_models += hidden.count;
            TUNE_TRY_VOID(report_progress("logged models", sum_.logged_models));
            TUNE_TRY_VOID(remove_rows());
        }
    }

    Result<void> remove_experiments() {
        TUNE_TRY(ids, in_snapshot(store_, [&](sqlite::Connection& connection) {
                     return garbage_experiments(connection, choice_);
                 }));
        for (const ExperimentId id : ids) {
            TUNE_TRY(removed, make(PurgeExperiment{id, choice_.deleted_until_ms}));
            sum_.experiments += removed.count;
            TUNE_TRY_VOID(report_progress("experiments", sum_.experiments));
        }
        return {};
    }

    /// Whether something has come into being since that owns a folder of this name.
    bool is_in_use(const std::string& folder) {
        const std::string name = folder.substr(folder.rfind('/') + 1);
        if (store_.get_run_info(name) || store_.get_logged_model(name)) return true;
        ExperimentId id = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
        return error == std::errc() && end == name.data() + name.size() &&
               store_.get_experiment(id).has_value();
    }

    /// False: it must be tried again.
    bool remove_folder(const std::string& uri) {
        constexpr std::string_view kScheme = "mlflow-artifacts:/";
        const std::string_view rest =
            std::string_view(uri).substr(uri.starts_with(kScheme) ? kScheme.size() : uri.size());
        const Result<std::string> path = normal_artifact_path(rest.starts_with('/') ? "" : rest);
        if (!path || path->empty()) {
            ++sum_.folders_elsewhere;
            return true;
        }
        if (is_in_use(*path)) return true;
        if (const Result<void> removed = artifacts_.remove(*path); !removed) {
            log_warning("gc: artifacts '" + *path + "' stay: " + removed.error().text());
            ++sum_.folders_failed;
            return false;
        }
        ++sum_.folders;
        return true;
    }

    Result<void> remove_folders() {
        std::int64_t after_row = 0;
        for (;;) {
            TUNE_TRY(page, in_snapshot(store_, [&](sqlite::Connection& connection) {
                         return garbage_folders(connection, after_row, kPage);
                     }));
            if (page.empty()) return {};
            after_row = page.back().folder_row;
            ForgetFolders gone;
            for (const GarbageFolder& folder : page) {
                if (remove_folder(folder.artifact_uri))
                    gone.folder_rows.push_back(folder.folder_row);
                TUNE_TRY_VOID(report_progress("artifact folders", sum_.folders));
            }
            TUNE_TRY_VOID(make(std::move(gone)));
        }
    }

    Result<void> sweep_datasets() {
        PurgeProgress step;
        while (!step.is_done) {
            TUNE_TRY(next, make(SweepDatasets{step.next, kDatasetsAtOnce}));
            step = next;
            sum_.datasets += step.count;
            TUNE_TRY_VOID(report_progress("datasets", sum_.datasets));
        }
        return {};
    }

    Result<std::vector<bool>> mark_names() {
        TUNE_TRY(last, in_snapshot(store_, last_key));
        std::vector<bool> used(static_cast<std::size_t>(last) + 1);
        std::optional<std::int64_t> next = 0;
        while (next) {
            TUNE_TRY(after, in_snapshot(store_, [&](sqlite::Connection& connection) {
                         return mark_used_keys(connection, *next, kRowsLookedAtAtOnce, used);
                     }));
            next = after;
            TUNE_TRY_VOID(report_progress("names", next.value_or(0)));
        }
        return used;
    }

    Result<void> sweep_names() {
        TUNE_TRY_VOID(make(BeginKeySweep{}));
        TUNE_TRY(used, mark_names());
        std::int64_t after_key = 0;
        for (bool is_last = false; !is_last;) {
            TUNE_TRY(ids, in_snapshot(store_, [&](sqlite::Connection& connection) {
                         return unmarked_keys(connection, used, after_key, kNamesAtOnce);
                     }));
            is_last = static_cast<std::int64_t>(ids.size()) < kNamesAtOnce;
            if (!ids.empty()) after_key = ids.back();
            Result<PurgeProgress> step = make(SweepKeys{std::move(ids), is_last});
            // Too many names came into use meanwhile: the rest waits for the next collection.
            if (!step && step.error().code == Code::kInvalidState) return {};
            if (!step) return step.error();
            sum_.names += step->count;
            TUNE_TRY_VOID(report_progress("names", sum_.names));
        }
        return {};
    }

    Result<void> sweep_answers() {
        for (;;) {
            TUNE_TRY(step, make(SweepAnswers{kDatasetsAtOnce}));
            sum_.answers += step.count;
            if (step.is_done) return {};
            TUNE_TRY_VOID(report_progress("recorded answers", sum_.answers));
        }
    }

    Result<void> shrink() {
        TUNE_TRY(use, in_snapshot(store_, file_use));
        if (!use.can_shrink) return {};
        for (std::int64_t pages = 0;;) {
            TUNE_TRY(step, make(ShrinkFile{kPagesAtOnce}));
            pages += step.count;
            if (step.is_done) return {};
            TUNE_TRY_VOID(report_progress("pages given back", pages));
        }
    }

    Store& store_;
    const ArtifactStore& artifacts_;
    const GarbageChoice& choice_;
    const Report& report_;
    GarbageReport sum_;
    std::int64_t rows_ = 0;
};

}  // namespace

Result<GarbageReport> collect_garbage(Store& store, const ArtifactStore& artifacts,
                                      const GarbageChoice& choice, const Report& report) {
    TUNE_TRY_VOID(checked(store, choice));
    return Collector(store, artifacts, choice, report).run();
}

Result<GarbageReport> count_garbage(const Store& store, const GarbageChoice& choice,
                                    const Report& report) {
    TUNE_TRY_VOID(checked(store, choice));
    GarbageReport sum;
    for (GarbagePage page;;) {
        TUNE_TRY(next, store.snapshot([&](sqlite::Connection& connection) -> Result<GarbagePage> {
            TUNE_TRY(runs, garbage_runs(connection, choice, page.next_row, kPage));
            TUNE_TRY(points, count_points(connection, runs.ids));
            sum.metric_points += points;
            return runs;
        }));
        if (next.ids.empty()) break;
        page = std::move(next);
        sum.runs += static_cast<std::int64_t>(page.ids.size());
        if (!report({"runs", sum.runs, 0})) return job_stopped();
    }
    for (GarbagePage page;;) {
        TUNE_TRY(next, store.snapshot([&](sqlite::Connection& connection) {
            return garbage_models(connection, choice, page.next_row, kPage);
        }));
        if (next.ids.empty()) break;
        page = std::move(next);
        sum.logged_models += static_cast<std::int64_t>(page.ids.size());
    }
    TUNE_TRY(experiments, store.snapshot([&](sqlite::Connection& connection) {
        return garbage_experiments(connection, choice);
    }));
    sum.experiments = static_cast<std::int64_t>(experiments.size());
    TUNE_TRY(use, store.snapshot(file_use));
    sum.file_bytes_before = sum.file_bytes = use.file_bytes;
    sum.free_bytes = use.free_bytes;
    return sum;
}

}  // namespace tune::tracker
