#pragma once
// Rows of another tracking store, taken in as they are: ids, times, life cycle and values are kept,
// MLflow's rules for new values (lengths, names) are not asked. For tracker/transfer only; no route
// reaches these commands. They make no events but those of the experiment, run or model as a whole,
// so that moving in ten million points does not notify the observers of each.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/registry/registry_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Outcome: ExperimentId. An empty artifact_location means <artifact root>/<id>. Errors:
/// kResourceAlreadyExists for an id or name that is taken.
struct ImportExperiment {
    Experiment experiment;
    /// The experiment is there: name, times, life cycle and tags are set, other tags stay.
    bool is_update = false;
};

/// The run with all its fields, params, tags and links; its metrics follow as ImportMetrics. Until
/// FinishImportedRun it is deleted, so that nobody takes half of it for the whole. Errors:
/// kResourceAlreadyExists; kResourceDoesNotExist for its experiment; kInvalidParameterValue for an
/// id that could not be a path of artifacts.
struct ImportRun {
    Run run;
    /// A run of this id is replaced, but for its metric history, which only grows.
    bool is_update = false;
};

struct ImportedSeries {
    std::string key;
    std::vector<Point> points;
};

/// Points of a run, in any order; those that are there already change nothing. Infinities are
/// clamped as everywhere.
struct ImportMetrics {
    std::string run_id;
    std::vector<ImportedSeries> series;
};

/// Gives an imported run its life cycle.
struct FinishImportedRun {
    std::string run_id;
    LifecycleStage life = LifecycleStage::kActive;
    std::optional<std::int64_t> deleted_time_ms = {};
};

/// A logged model with params, tags and metrics. Errors: as ImportRun.
struct ImportLoggedModel {
    LoggedModel model;
    LifecycleStage life = LifecycleStage::kActive;
    bool is_update = false;
};

/// A registered model with all its versions (deleted ones too), tags and aliases; one of this name
/// is replaced. `model.latest_versions` is not looked at. Errors: kResourceAlreadyExists without
/// `is_update`; kInvalidParameterValue for a name that cannot be addressed.
struct ImportRegisteredModel {
    RegisteredModel model;
    std::vector<ModelVersion> versions;
    bool is_update = false;
};

using ImportVariant = std::variant<ImportExperiment, ImportRun, ImportMetrics, FinishImportedRun,
                                   ImportLoggedModel, ImportRegisteredModel>;

/// Any of the above, as one Command.
struct ImportRows : ImportVariant {
    using ImportVariant::ImportVariant;
    ImportRows();
    ImportRows(const ImportRows&);
    ImportRows(ImportRows&&) noexcept;
    ImportRows& operator=(const ImportRows&);
    ImportRows& operator=(ImportRows&&) noexcept;
    ~ImportRows();
};

}  // namespace tune::tracker
