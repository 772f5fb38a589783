#pragma once
// Documents of studies that were removed.

#include <cstddef>

#include "base/result.h"
#include "tracker/store/store.h"

namespace tune::tuner {

/// By the study's id: {erased_ms, study: as in kStudyCollection}. Its trials' documents lie where
/// they were.
inline constexpr const char* kErasedCollection = "tune.studies.erased";

/// Removes the documents of removed studies whose runs are gone for good (`tune gc`), so that they
/// cannot be restored any more, with those of their trials. How many studies. One that is stopped
/// in between goes on with the next call. Blocks; O(trials of all studies). Errors: the store's.
[[nodiscard]] Result<std::size_t> forget_purged_studies(tracker::Store& store);

}  // namespace tune::tuner
