#pragma once
// Users, roles and grants, as MLflow 3.17's basic-auth app has them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/store/types.h"

namespace tune::tracker {

/// What a user may do with an experiment or a registered model; from kNone on each includes the one
/// before. The numbers are stored.
enum class Permission : std::int8_t {
    kDeny = -1,  ///< nothing, whatever else was granted
    kNone = 0,   ///< nothing; MLflow's NO_PERMISSIONS
    kRead = 1,
    kUse = 2,
    kEdit = 3,    ///< log, tag, rename
    kManage = 4,  ///< delete, restore, grant
};

/// "READ", "NO_PERMISSIONS", ...
[[nodiscard]] std::string_view permission_name(Permission permission);
/// Nothing for another word.
[[nodiscard]] std::optional<Permission> permission_of(std::string_view name);

/// What grants can be about: MLflow's kinds of resources. Those that this server has none of can be
/// granted and decide nothing.
enum class ResourceType : std::uint8_t {
    kExperiment,
    kRegisteredModel,  ///< one that is no prompt
    kPrompt,           ///< a registered model with the mark of prompts
    kWorkspace,
    // Kinds below an experiment or a registered model: with "*" only.
    kRun,
    kLoggedModel,
    kRegisteredModelVersion,
    kPromptVersion,
    kTrace,  // of these there are files only
    // Kinds of things that are not here.
    kAssessment,
    kReviewQueue,
    kScorer,
    kScorerVersion,
    kGatewaySecret,
    kGatewayEndpoint,
    kGatewayModelDefinition,
    kMcpServer,
    kMcpServerVersion,
};

/// "experiment", "registered_model", "logged_model", ...: as stored and as MLflow names them.
[[nodiscard]] std::string_view resource_type_name(ResourceType type);
/// Nothing for another word.
[[nodiscard]] std::optional<ResourceType> resource_type_of(std::string_view name);
/// Whether a grant can be about one of them, not only about all.
[[nodiscard]] bool is_granted_by_id(ResourceType type);
/// All names, as Python prints a tuple of them in order of the alphabet.
[[nodiscard]] std::string resource_types_text();

/// The only workspace there is.
inline constexpr std::string_view kDefaultWorkspace = "default";
/// A grant with this pattern is about all resources of its type.
inline constexpr std::string_view kAnyResource = "*";
/// How the name of a user's own role begins; it is followed by the id and "__".
inline constexpr std::string_view kOwnRolePrefix = "__user_";

struct User {
    std::int64_t user_id = 0;
    std::string username = {};
    std::string password_hash = {};
    bool is_admin = false;
};

struct RolePermission {
    std::int64_t permission_id = 0;
    std::int64_t role_id = 0;
    std::string resource_type = {};
    std::string resource_pattern = {};
    Permission permission = Permission::kNone;
};

struct Role {
    std::int64_t role_id = 0;
    std::string workspace = {};
    std::string name = {};
    std::optional<std::string> description = {};
    std::vector<RolePermission> permissions = {};
};

struct RoleAssignment {
    std::int64_t assignment_id = 0;
    std::int64_t user_id = 0;
    std::int64_t role_id = 0;
};

/// Whose eyes a search has: it finds what this user may read. A user who is no user (0) has no
/// grants.
struct Viewer {
    std::int64_t user_id = 0;
    bool by_default = true;          ///< what no grant is about may be read
    ExperimentId experiment_id = 0;  ///< is seen whatever is granted; 0: none
    std::uint32_t denied = 0;        ///< a bit for each ResourceType of which nothing is shown

    /// Whether a DENY hides all of this kind, wherever it lies.
    [[nodiscard]] bool is_denied(ResourceType type) const { return (denied & bit_of(type)) != 0; }
    void deny(ResourceType type) { denied |= bit_of(type); }

private:
    static std::uint32_t bit_of(ResourceType type) { return 1u << static_cast<unsigned>(type); }
};

}  // namespace tune::tracker
