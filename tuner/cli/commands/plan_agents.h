#pragma once
// Whether the agents of a server could run a study that is only planned.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "tuner/config/study_config.h"

namespace tune::cli {

/// What stands in the way, as a sentence without a full stop; empty: nothing, or it cannot be told.
/// `queue`: what GET tune/queue answers. Judged by the code that places trials. Errors: kDataLoss
/// for an answer of another form.
[[nodiscard]] Result<std::string> agents_lacking(const Json& queue,
                                                 const tuner::StudyConfig& config);

}  // namespace tune::cli
