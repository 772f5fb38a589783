#pragma once
// A new mlflow.db with the schema of MLflow 3.17.2 (head dc11669786a5).

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// The head that is stamped; MLflow of that version opens the file as it is, a later one after
/// `mlflow db upgrade`.
inline constexpr const char* kMlflowHead = "dc11669786a5";

/// One thread. The file is good only after finish(): write under a temporary name.
class MlflowDbWriter {
public:
    /// Errors: kResourceAlreadyExists when there is such a file; those of SQLite.
    [[nodiscard]] static Result<std::unique_ptr<MlflowDbWriter>> create(
        const std::filesystem::path& file);

    [[nodiscard]] Result<void> add_experiment(const Experiment& experiment);
    /// `run.run.metrics` are the latest values.
    [[nodiscard]] Result<void> add_run(const SourceRun& run);
    [[nodiscard]] Result<void> add_points(const std::string& run_id, std::string_view key,
                                          std::span<const Point> points);
    [[nodiscard]] Result<void> add_model(const SourceModel& model);
    [[nodiscard]] Result<void> add_registered_model(const SourceRegisteredModel& model);

    /// Makes the indexes, stamps the head, closes the file; it is on disk then.
    [[nodiscard]] Result<void> finish();

private:
    MlflowDbWriter(std::filesystem::path file, std::unique_ptr<sqlite::Connection> connection,
                   sqlite::Transaction transaction)
        : file_(std::move(file)),
          connection_(std::move(connection)),
          transaction_(std::move(transaction)) {}

    template <class... Values>
    [[nodiscard]] Result<void> insert(const char* sql, const Values&... values);
    [[nodiscard]] Result<void> add_latest(const std::string& run_id, const Metric& metric);
    [[nodiscard]] Result<void> add_dataset(ExperimentId experiment, const std::string& run_id,
                                           const DatasetInput& input);
    [[nodiscard]] Result<void> add_version(const std::string& name, const ModelVersion& version);

    std::filesystem::path file_;
    std::unique_ptr<sqlite::Connection> connection_;
    std::optional<sqlite::Transaction> transaction_;
};

}  // namespace tune::tracker
