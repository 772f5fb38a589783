#pragma once
// Documents of studies that were removed.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "tracker/store/store.h"

namespace tune::tuner {

/// By the study's id: {erased_ms, study: as in kStudyCollection}. Its trials' documents lie where
/// they were.
inline constexpr const char* kErasedCollection = "tune.studies.erased";

/// One of them, as far as it takes to bring it back.
struct ErasedStudy {
    std::string id = {};  ///< the key
    std::string name = {};
    std::int64_t erased_ms = 0;
    std::int64_t experiment_id = 0;
    std::string run_id = {};
    std::string study_text = {};  ///< as in kStudyCollection
};

/// The one of this name that was erased last. Blocks; O(erased studies). Errors:
/// kResourceDoesNotExist with the names that there are; the store's.
[[nodiscard]] Result<ErasedStudy> find_erased_study(const tracker::Store& store,
                                                    const std::string& name);

/// The run of the study that such a document holds; empty where it holds none.
[[nodiscard]] std::string run_of_erased(const tracker::Document& document);

/// Removes the documents of removed studies whose runs are gone for good (`tune gc`), so that they
/// cannot be restored any more, with those of their trials. How many studies. One that is stopped
/// in between goes on with the next call. Blocks; O(trials of all studies). Errors: the store's.
[[nodiscard]] Result<std::size_t> forget_purged_studies(tracker::Store& store);

}  // namespace tune::tuner
