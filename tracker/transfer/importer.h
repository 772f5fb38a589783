#pragma once
// Moves all that a source holds into a store:
//
//   source -> records -> StoreFeed -> Store (rows, journal, in one transaction each)
//          -> files   -> ArtifactMover -> ArtifactStore
//   then every run and model is read back from the store and compared with what the source
//   reported.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/store/store.h"
#include "tracker/transfer/artifact_mover.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// Lines of each list in a report; the rest is only counted.
inline constexpr std::size_t kReportLinesMax = 100;

struct TransferCounts {
    std::int64_t experiments = 0;
    std::int64_t runs = 0;
    std::int64_t points = 0;
    std::int64_t params = 0;
    std::int64_t tags = 0;
    std::int64_t inputs = 0;  // datasets of runs
    std::int64_t model_links = 0;
    std::int64_t logged_models = 0;
    std::int64_t registered_models = 0;
    std::int64_t model_versions = 0;
    bool operator==(const TransferCounts&) const = default;
};

struct TransferProgress {
    enum class Phase { kMoving, kVerifying };
    Phase phase = Phase::kMoving;
    std::int64_t runs_done = 0;
    std::int64_t runs_total = 0;
    std::int64_t points = 0;
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
};

struct MappedExperiment {
    ExperimentId from = 0;
    ExperimentId to = 0;
    std::string from_name;
    std::string to_name;
};

/// Sentences, at most kReportLinesMax of them.
struct ReportLines {
    std::vector<std::string> lines = {};
    std::int64_t count = 0;
    void add(std::string line) {
        ++count;
        if (lines.size() < kReportLinesMax) lines.push_back(std::move(line));
    }
};

struct TransferReport {
    TransferCounts read;              // what the source reported, of what was moved now or before
    TransferCounts stored;            // what the store gives back of it
    std::int64_t runs_unchanged = 0;  // moved by an earlier import, and the same since
    std::int64_t files = 0;
    std::int64_t files_new = 0;
    std::uint64_t bytes = 0;
    std::vector<MappedExperiment> mapped;
    ReportLines failed;      // could not be moved
    ReportLines mismatches;  // read back differently
    ReportLines files_left_out;
    /// Were not UTF-8 in the source: U+FFFD stands for what did not belong.
    std::int64_t texts_changed = 0;
    std::vector<LeftBehind> left_behind;
    std::vector<std::string> notes;

    /// All was moved and reads back as it was written.
    [[nodiscard]] bool is_whole() const {
        return failed.count == 0 && mismatches.count == 0 && read == stored;
    }
    /// And it was written as the source has it.
    [[nodiscard]] bool is_same() const { return is_whole() && texts_changed == 0; }
};

struct ImportOptions {
    ArtifactMode artifacts = ArtifactMode::kCopy;
    /// Where `artifact_store` lies.
    std::filesystem::path artifact_root = {};
    /// Called often; cheap.
    std::function<void(const TransferProgress&)> on_progress = {};
    std::function<bool()> is_cancelled = {};
};

/// What cannot be read or clashes with what the store has is left out and noted in the report.
/// Errors: those that end the import (disk, cancel: kCancelled); the same call again resumes.
/// Blocks; any thread but the store's own.
[[nodiscard]] Result<TransferReport> import_all(Source& source, Store& store,
                                                const ArtifactStore& artifact_store,
                                                const ImportOptions& options);

}  // namespace tune::tracker
