#pragma once
// A run, or a study with its trials, as folders of TensorBoard's event files.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace tune::tracker {

struct ExportEventsOptions {
    std::filesystem::path data;    ///< folder of tune.db
    std::filesystem::path target;  ///< a folder for a folder a run
    std::string run;               ///< id or name; runs whose parent it is are taken too
};

struct ExportedEvents {
    std::int64_t runs = 0;
    std::int64_t points = 0;
};

/// Scalars of every metric with step and time, params and the end as the plugin hparams has them.
/// Reads one snapshot; a server may write meanwhile. Errors: kResourceDoesNotExist for a run that
/// is not there, kInvalidParameterValue where several have the name (with their ids),
/// kResourceAlreadyExists when the target has files.
[[nodiscard]] Result<ExportedEvents> export_events(const ExportEventsOptions& options);

}  // namespace tune::tracker
