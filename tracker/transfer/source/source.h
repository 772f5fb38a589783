#pragma once
// What another tracking store holds, read piece by piece: the one interface behind which an
// mlflow.db, an mlruns folder and a remote server look the same. A source is only ever read.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/registry/registry_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// The largest param, tag or other text that is taken from a source. MLflow's own limits are far
/// below (a dataset's profile: 16 MB); a file of 1 GB where a value should be is an error.
inline constexpr std::size_t kSourceTextBytesMax = 32u << 20;
/// Exact repeats are found by sorting a metric's points, 24 bytes each; SQL sources have none and
/// are read in pieces instead.
inline constexpr std::size_t kSourceSeriesPointsMax = 16u << 20;
/// Files of one run or model.
inline constexpr std::size_t kSourceFilesMax = 1'000'000;

/// A run but for its metric history; `run.metrics` is not looked at.
struct SourceRun {
    Run run;
    std::optional<std::int64_t> deleted_time_ms = {};
    /// Differs when the history has probably changed: lets a second import leave out what the
    /// first has moved.
    std::string history_stamp = {};
};

struct SourceModel {
    LoggedModel model;
    LifecycleStage life = LifecycleStage::kActive;
};

/// `model.latest_versions` and the versions' aliases are not looked at.
struct SourceRegisteredModel {
    RegisteredModel model;
    std::vector<ModelVersion> versions;
};

/// Whose artifacts. `id`: of the run or logged model.
struct ArtifactOwner {
    bool is_run = true;
    std::string id;
    std::string uri;
};

struct SourceFile {
    std::string path;  // under the owner's folder
    std::uint64_t size_bytes = 0;
};

struct SourceFiles {
    enum class Place {
        kHere,       ///< `files` is what there is (perhaps nothing)
        kElsewhere,  ///< another system keeps them (s3: and so on): the URI stays good
        kOutside,    ///< a local folder that the import may not read
    };
    Place place = Place::kHere;
    std::vector<SourceFile> files = {};
    /// Links and special files, which are not followed.
    std::vector<std::string> left_out = {};
};

struct LeftBehind {
    std::string what;
    std::int64_t count = 0;
};

struct SourceContents {
    std::vector<Experiment> experiments;  // deleted ones too
    std::int64_t run_count = 0;
    /// What tune has no place for, or what the source does not report.
    std::vector<LeftBehind> left_behind;
    std::vector<std::string> notes;
};

/// Where the bytes of artifacts come from.
class FileSource {
public:
    virtual ~FileSource() = default;
    /// Gives the file's bytes piece by piece.
    using Sink = std::function<Result<void>(std::string_view bytes)>;
    [[nodiscard]] virtual Result<void> read_file(const ArtifactOwner& owner, const SourceFile& file,
                                                 const Sink& sink) = 0;
    /// The file itself, for hard links; kNotImplemented where files are not local.
    [[nodiscard]] virtual Result<UniqueFd> open_file(const ArtifactOwner& owner,
                                                     const SourceFile& file) = 0;
};

/// Errors of all calls: sentences that name the file, row or request; kDataLoss for what is
/// damaged, kInvalidParameterValue for what is no such source, kCancelled. One thread.
class Source : public FileSource {
public:
    /// Absolute path or URL: the same text is the same source to a later import.
    [[nodiscard]] virtual std::string location() const = 0;
    /// Texts read so far that were not UTF-8 and got U+FFFD for what did not belong.
    [[nodiscard]] virtual std::int64_t changed_texts() const = 0;

    [[nodiscard]] virtual Result<SourceContents> read_contents() = 0;
    [[nodiscard]] virtual Result<std::vector<std::string>> list_runs(ExperimentId experiment) = 0;
    [[nodiscard]] virtual Result<SourceRun> read_run(ExperimentId experiment,
                                                     const std::string& run_id) = 0;

    /// All points of the run that read_run gave last, each point once; the pieces of a key come one
    /// after the other.
    using VisitPoints = std::function<Result<void>(std::string_view key, std::span<const Point>)>;
    [[nodiscard]] virtual Result<void> for_each_series(const VisitPoints& visit) = 0;

    [[nodiscard]] virtual Result<std::vector<std::string>> list_models(ExperimentId experiment) = 0;
    [[nodiscard]] virtual Result<SourceModel> read_model(ExperimentId experiment,
                                                         const std::string& model_id) = 0;

    [[nodiscard]] virtual Result<std::vector<std::string>> list_registered_models() = 0;
    [[nodiscard]] virtual Result<SourceRegisteredModel> read_registered_model(
        const std::string& name) = 0;

    [[nodiscard]] virtual Result<SourceFiles> list_files(const ArtifactOwner& owner) = 0;
};

/// Sorts by time and drops exact repeats (a file may hold a line twice, a store never does).
void keep_each_point_once(std::vector<Point>& points);

}  // namespace tune::tracker
