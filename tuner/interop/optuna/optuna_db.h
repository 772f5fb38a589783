#pragma once
// A study as Optuna's SQLite storage holds it, row by row; see optuna_study.h for what it means to
// us. The only file of the tuner with SQL, which is of Optuna's schema and not of ours.
//
// Times are milliseconds since 1970 here. Optuna's are local times without a zone.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tune::tuner {

struct OptunaParam {
    std::string name;
    double value = 0;  ///< as Optuna stores it: the index of a choice, else the value itself
    std::string distribution_json;
};

/// Key and JSON text.
using OptunaAttributes = std::vector<std::pair<std::string, std::string>>;

struct OptunaTrial {
    std::int64_t number = 0;
    std::string state;             ///< RUNNING, COMPLETE, PRUNED, FAIL or WAITING
    std::int64_t start_ms = 0;     ///< 0: none
    std::int64_t complete_ms = 0;  ///< 0: none
    std::vector<double> values;    ///< one an objective, or none
    std::vector<OptunaParam> params;
    std::vector<std::pair<std::int64_t, double>> intermediate;  ///< by step; may be NaN
    OptunaAttributes user_attributes;
    OptunaAttributes system_attributes;
};

struct OptunaStudy {
    std::string name;
    std::vector<bool> is_maximized;  ///< one an objective
    OptunaAttributes user_attributes;
    OptunaAttributes system_attributes;
    std::vector<OptunaTrial> trials;  ///< by number, which count from 0
};

/// Makes a new file that holds this study, whole or not at all. Errors: kResourceAlreadyExists when
/// there is one; kResourceExhausted and kTemporarilyUnavailable as of the disk.
[[nodiscard]] Result<void> write_optuna_db(const std::filesystem::path& file,
                                           const OptunaStudy& study);

/// What a file of Optuna's is, by its content.
enum class OptunaFile { kNone, kDb, kJournal };

/// kNone also for what cannot be read. The file is not changed.
[[nodiscard]] OptunaFile optuna_file_kind(const std::filesystem::path& file);

/// Reads one study. `name` empty: the only one. The file is not changed. Errors:
/// kResourceDoesNotExist naming the studies there are; kInvalidParameterValue for a file that is
/// none of Optuna's, or of a version whose schema is another one; kDataLoss for a broken one.
[[nodiscard]] Result<OptunaStudy> read_optuna_db(const std::filesystem::path& file,
                                                 const std::string& name);

}  // namespace tune::tuner
