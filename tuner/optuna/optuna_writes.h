#pragma once
// An imported study into a data folder.

#include <cstddef>

#include "tracker/store/store.h"
#include "tuner/optuna/optuna_study.h"

namespace tune::tuner {

/// Writes the study, its trials as runs and all their values. The study's own document is written
/// last: one that was interrupted is not there, and its runs are those of a deleted study. It waits
/// paused. Blocks. REQUIRES: no Studies is open on the store. Errors: kResourceAlreadyExists when
/// there is a study of this name; those of the store.
[[nodiscard]] Result<void> store_imported(tracker::Store& store, const ImportedStudy& imported);

}  // namespace tune::tuner
