#pragma once
// What a request touches, read off it as its route declares (Needs::subject) and by the same
// parsers as the route's own, so that the two never mean different things.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
        kMade,       ///< what there is not yet: `part` its type, `id` its name
        kGranted,    ///< `id` of `part`, whether there is one or not
        kSelf,       ///< `id` a user's name
        kWorkspace,
        kList,  ///< of which each reader gets what may be read
        kServer,
    };
    /// What of the thing is touched, and which grant decides: MLflow's tiers.
    struct Part {
        /// kRegisteredModelVersion stands for kPromptVersion where the model is a prompt.
        ResourceType type = ResourceType::kRun;
        enum class Rule : std::uint8_t {
            kDecides,  ///< READ on the whole; a grant on all such parts, or else the whole, decides
            kVeto,     ///< the whole decides, unless such parts are denied
        } rule = Rule::kDecides;
    };
    Kind kind = Kind::kServer;
    std::string id = {};
    Permission least = Permission::kRead;
    std::optional<Part> part = {};
    /// kSelf: who manages the workspace may too.
    bool or_workspace = false;
    std::string topic = {};  ///< of a live event: what may not be read is left out, not refused
    std::string path = {};   ///< kExperiment: of a file, below the experiment's folder
};

/// What a path of the artifact store touches. `least` kManage: it removes what lies there.
[[nodiscard]] std::vector<Touch> touches_of_path(std::string_view path, Permission least);

/// Things in one request; more is refused before any is looked up.
inline constexpr std::size_t kTouchesMax = 2'000;

/// All that the request touches. Errors: those of the route's parser (a missing field, two
/// spellings of one); kPermissionDenied for what a user may not name at all.
[[nodiscard]] Result<std::vector<Touch>> touches_of(Request& request, const Needs& needs);

}  // namespace tune::tracker
