#pragma once

#include <string>

#include "tracker/store/types.h"
#include "tracker/transfer/digest.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// What differs first between two records of one thing, for a sentence: "param 'lr'". Looks at what
/// the digests look at; empty when nothing of that differs.
[[nodiscard]] std::string first_difference(const Experiment& a, const Experiment& b);
/// `a_points`, `b_points`: the histories.
[[nodiscard]] std::string first_difference(const SourceRun& a, const RunDigest& a_points,
                                           const SourceRun& b, const RunDigest& b_points);
[[nodiscard]] std::string first_difference(const SourceModel& a, const SourceModel& b);
[[nodiscard]] std::string first_difference(const SourceRegisteredModel& a,
                                           const SourceRegisteredModel& b);

/// "WHAT reads back differently: FIELD"; of an empty `field` only the first part.
[[nodiscard]] std::string difference_line(const std::string& what, const std::string& field);

}  // namespace tune::tracker
