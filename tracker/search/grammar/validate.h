#pragma once
// From the shape of a comparison to its meaning: what may be compared with what, subject by
// subject. Another subject is another function here.

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/grammar/comparison.h"

namespace tune::tracker::search {

/// Errors: kInvalidParameterValue with MLflow's sentence.
[[nodiscard]] Result<Clause> validate(Subject subject, const Comparison& comparison);

}  // namespace tune::tracker::search
