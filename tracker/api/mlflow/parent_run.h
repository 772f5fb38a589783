#pragma once
// Runs within runs, as MLflow marks them.

#include <algorithm>
#include <string_view>
#include <vector>

#include "tracker/api/http/principal.h"
#include "tracker/store/types.h"

namespace tune::tracker {

inline constexpr std::string_view kParentRunTag = "mlflow.parentRunId";

/// A run that a trial's attempt makes is beneath the trial's run, unless it names another parent:
/// there the attempt's credential may write (tracker/auth/attempt_limits.h).
inline void put_beneath_trial(std::vector<Tag>& tags, const Principal& principal) {
    const AttemptPrincipal* const attempt = current_attempt(principal);
    const auto is_parent = [](const Tag& tag) { return tag.key == kParentRunTag; };
    if (attempt != nullptr && std::none_of(tags.begin(), tags.end(), is_parent))
        tags.push_back({std::string(kParentRunTag), attempt->run_id});
}

}  // namespace tune::tracker
