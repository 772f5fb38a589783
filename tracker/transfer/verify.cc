// Reads everything back from the store and compares digests; the source is asked a second time only
// to name the field that differs. So a clean import costs one pass, without holding a history in
// memory.

#include "tracker/transfer/verify.h"

#include <charconv>
#include <utility>

#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/read_transfer.h"
#include "tracker/transfer/difference.h"
#include "tracker/transfer/digest.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

void add(TransferCounts& sum, const TransferCounts& more) {
    sum.runs += more.runs;
    sum.points += more.points;
    sum.params += more.params;
    sum.tags += more.tags;
    sum.inputs += more.inputs;
    sum.model_links += more.model_links;
}

TransferCounts counts_of(const Run& run) {
    TransferCounts counts;
    counts.runs = 1;
    counts.params = static_cast<std::int64_t>(run.params.size());
    counts.tags = static_cast<std::int64_t>(run.tags.size());
    counts.inputs = static_cast<std::int64_t>(run.dataset_inputs.size());
    counts.model_links =
        static_cast<std::int64_t>(run.model_inputs.size() + run.model_outputs.size());
    return counts;
}

/// A run of the store with its history.
struct WholeRun {
    SourceRun run;
    RunDigest points;
};

Result<std::optional<WholeRun>> read_whole_run(const Store& store, const std::string& run_id) {
    using Answer = Result<std::optional<WholeRun>>;
    return store.snapshot([&](sqlite::Connection& connection) -> Answer {
        TUNE_TRY(stored, find_stored_run(connection, run_id));
        if (!stored) return std::optional<WholeRun>();
        WholeRun whole{{std::move(stored->run), stored->deleted_time_ms, {}}, {}};
        const auto take = [&](std::string_view key, std::span<const Point> points) -> Result<void> {
            whole.points.add(key, points);
            return {};
        };
        TUNE_TRY_VOID(for_each_stored_series(connection, run_id, take));
        return std::optional<WholeRun>(std::move(whole));
    });
}

/// What of the run differs between the source, asked again, and the store.
Result<std::string> run_difference(const Store& store, Source& source, const Expected& expected) {
    TUNE_TRY(stored, read_whole_run(store, expected.id));
    TUNE_TRY(reported, source.read_run(expected.experiment, expected.id));
    RunDigest points;
    std::vector<Point> clamped;
    const auto take = [&](std::string_view key, std::span<const Point> more) -> Result<void> {
        clamped.assign(more.begin(), more.end());
        for (Point& point : clamped) point.value = clamp_metric_value(point.value);
        points.add(key, clamped);
        return {};
    };
    TUNE_TRY_VOID(source.for_each_series(take));
    if (!stored) return std::string();
    return first_difference(reported, points, stored->run, stored->points);
}

Result<void> verify_run(const Store& store, Source& source, const Expected& expected,
                        TransferReport& report) {
    TUNE_TRY(stored, read_stored_run(store, expected.id));
    if (!stored) {
        report.mismatches.add("run " + shown(expected.id) + " is not in the store");
        return {};
    }
    add(report.stored, stored->counts);
    if (stored->digest == expected.digest) return {};
    const Result<std::string> field = run_difference(store, source, expected);
    report.mismatches.add(difference_line("run " + shown(expected.id), field ? *field : ""));
    return {};
}

Result<void> verify_model(const Store& store, Source& source, const Expected& expected,
                          TransferReport& report) {
    const std::string what = "logged model " + shown(expected.id);
    TUNE_TRY(digest, read_stored_model_digest(store, expected.id));
    if (!digest) {
        report.mismatches.add(what + " is not in the store");
        return {};
    }
    ++report.stored.logged_models;
    if (*digest == expected.digest) return {};
    const auto compare = [&]() -> Result<std::string> {
        TUNE_TRY(reported, source.read_model(expected.experiment, expected.id));
        return store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
            TUNE_TRY(stored, find_stored_model(connection, expected.id));
            if (!stored) return std::string();
            return first_difference(reported, {std::move(stored->model), stored->life});
        });
    };
    const Result<std::string> field = compare();
    report.mismatches.add(difference_line(what, field ? *field : ""));
    return {};
}

Result<void> verify_registered(const Store& store, const Expected& expected,
                               TransferReport& report) {
    TUNE_TRY(stored, read_stored_registered(store, expected.id));
    if (stored) {
        ++report.stored.registered_models;
        report.stored.model_versions += stored->counts.model_versions;
    }
    if (!stored || stored->digest != expected.digest)
        report.mismatches.add("registered model " + shown(expected.id) +
                              (stored ? " reads back differently" : " is not in the store"));
    return {};
}

Result<void> verify_experiment(const Store& store, const Expected& expected,
                               TransferReport& report) {
    std::int64_t id = 0;
    TUNE_CHECK(parse_number(std::string_view(expected.id), id), "an experiment's id");
    const Result<Experiment> found = store.get_experiment(id);
    if (found)
        ++report.stored.experiments;
    else if (found.error().code == Code::kResourceDoesNotExist)
        report.mismatches.add("experiment " + expected.id + " is not in the store");
    else
        return found.error();
    return {};
}

}  // namespace

Result<std::optional<StoredDigest>> read_stored_run(const Store& store, const std::string& run_id) {
    TUNE_TRY(whole, read_whole_run(store, run_id));
    if (!whole) return std::optional<StoredDigest>();
    StoredDigest answer;
    answer.counts = counts_of(whole->run.run);
    answer.counts.points = static_cast<std::int64_t>(whole->points.point_count());
    answer.digest = whole->points.finish(whole->run);
    return std::optional<StoredDigest>(std::move(answer));
}

Result<std::optional<std::string>> read_stored_model_digest(const Store& store,
                                                            const std::string& model_id) {
    using Answer = Result<std::optional<std::string>>;
    return store.snapshot([&](sqlite::Connection& connection) -> Answer {
        TUNE_TRY(stored, find_stored_model(connection, model_id));
        if (!stored) return std::optional<std::string>();
        return std::optional<std::string>(digest_of({std::move(stored->model), stored->life}));
    });
}

Result<std::optional<StoredDigest>> read_stored_registered(const Store& store,
                                                           const std::string& name) {
    using Answer = Result<std::optional<StoredDigest>>;
    return store.snapshot([&](sqlite::Connection& connection) -> Answer {
        TUNE_TRY(stored, find_stored_registered_model(connection, name));
        if (!stored) return std::optional<StoredDigest>();
        StoredDigest answer;
        answer.counts.model_versions = static_cast<std::int64_t>(stored->versions.size());
        answer.digest =
            digest_of(SourceRegisteredModel{std::move(stored->model), std::move(stored->versions)});
        return std::optional<StoredDigest>(std::move(answer));
    });
}

Result<void> verify(const Store& store, Source& source, const std::vector<Expected>& expected,
                    const std::function<bool(std::int64_t)>& on_run, TransferReport& report) {
    std::int64_t runs = 0;
    for (const Expected& one : expected) {
        if (one.kind == Journal::Kind::kRun) {
            TUNE_TRY_VOID(verify_run(store, source, one, report));
            if (!on_run(++runs))
                return Error{Code::kCancelled,
                             "interrupted while verifying; everything is moved, the same command "
                             "again verifies"};
        } else if (one.kind == Journal::Kind::kModel) {
            TUNE_TRY_VOID(verify_model(store, source, one, report));
        } else if (one.kind == Journal::Kind::kRegistered) {
            TUNE_TRY_VOID(verify_registered(store, one, report));
        } else {
            TUNE_TRY_VOID(verify_experiment(store, one, report));
        }
    }
    return {};
}

}  // namespace tune::tracker
