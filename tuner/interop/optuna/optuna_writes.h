#pragma once
// An imported study into a data folder.

#include <functional>
#include <string>
#include <vector>

#include "tracker/store/store.h"
#include "tuner/interop/optuna/optuna_study.h"
#include "tuner/study/registry/studies.h"

namespace tune::tuner {

/// Writes the study, its trials as runs and all their values, all or nothing: a note of it comes
/// first and goes with the study's own document, which is written last, so that what breaks off is
/// found and undone by undo_imports. It waits paused. Blocks. `is_cancelled` is asked between
/// transactions; may be empty. `studies`: those that are open on the store, which take the study
/// in; null: none are. Errors: kResourceAlreadyExists when there is a study of this name;
/// kCancelled, after undoing; those of the store.
[[nodiscard]] Result<void> store_imported(tracker::Store& store, const ImportedStudy& imported,
                                          const std::function<bool()>& is_cancelled,
                                          Studies* studies = nullptr);

/// Deletes the runs (as a client would: `tune gc` removes them) and documents of imports that broke
/// off, and the experiments that were made for them if nothing else is in them. May break off
/// itself. Gives the names of these studies. REQUIRES: no Studies is open on the store.
[[nodiscard]] Result<std::vector<std::string>> undo_imports(tracker::Store& store);

}  // namespace tune::tuner
