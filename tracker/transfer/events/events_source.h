#pragma once
// Folders of TensorBoard's event files as runs.

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// Points of one run, at most: they are held in memory, 24 bytes each.
inline constexpr std::size_t kEventPointsMax = 16u << 20;

/// Whether `folder` holds event files, at any depth, and no experiment of MLflow's file store.
[[nodiscard]] bool is_event_folder(const std::filesystem::path& folder);

/// A tag of TensorBoard's as the name of a metric or param: what MLflow's names may not have
/// becomes '_'. Empty where nothing is left.
[[nodiscard]] std::string event_key(std::string_view tag);

/// One experiment named as `folder`, and in it a run for each folder beneath that holds event
/// files, named by its path. Scalars become metrics, hyperparameters params; the rest is counted.
/// What is behind a damaged or unfinished record of a file is left out, with a note. Errors: the
/// system's reasons.
[[nodiscard]] Result<std::unique_ptr<Source>> open_events(const std::filesystem::path& folder);

}  // namespace tune::tracker
