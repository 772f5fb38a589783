#pragma once
// What a request touches, read off it as its route declares (Needs::subject) and by the same
// parsers as the route's own, so that the two never mean different things.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/api/http/access.h"
#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// One thing that a request touches, and what the user must be allowed to do with it.
struct Touch {
    enum class Kind : std::uint8_t {
        kExperiment,      ///< `id` its number
        kExperimentName,  ///< `id` its name
        kRun,             ///< and so on
        kLoggedModel,
        kRegisteredModel,
        kUpload,
        kStudy,
        kMadeStudy,  ///< there need be none
        kMade,       ///< what there is not yet
        kSelf,       ///< `id` a user's name
        kWorkspace,
        kList,  ///< of which each reader gets what may be read
        kServer,
    };
    Kind kind = Kind::kServer;
    std::string id = {};
    Permission least = Permission::kRead;
    /// kSelf: who manages the workspace may too.
    bool or_workspace = false;
    std::string topic = {};  ///< of a live event: what may not be read is left out, not refused
};

/// Things in one request; more is refused before any is looked up.
inline constexpr std::size_t kTouchesMax = 2'000;

/// All that the request touches. Errors: those of the route's parser (a missing field, two
/// spellings of one); kPermissionDenied for what a user may not name at all.
[[nodiscard]] Result<std::vector<Touch>> touches_of(Request& request, const Needs& needs);

}  // namespace tune::tracker
