#include "tracker/auth/users/user_json.h"

#include <nlohmann/json.hpp>

namespace tune::tracker {

Json user_json(const User& user) {
    return {{"id", user.user_id}, {"username", user.username}, {"is_admin", user.is_admin}};
}

Json role_permission_json(const RolePermission& permission) {
    return {{"id", permission.permission_id},
            {"role_id", permission.role_id},
            {"resource_type", permission.resource_type},
            {"resource_pattern", permission.resource_pattern},
            {"permission", permission_name(permission.permission)}};
}

Json role_json(const Role& role) {
    Json permissions = Json::array();
    for (const RolePermission& permission : role.permissions)
        permissions.push_back(role_permission_json(permission));
    return {{"id", role.role_id},
            {"name", role.name},
            {"workspace", role.workspace},
            {"description", role.description ? Json(*role.description) : Json(nullptr)},
            {"permissions", std::move(permissions)}};
}

Result<ResourceType> check_resource_type(const std::string& resource_type) {
    if (const auto known = resource_type_of(resource_type)) return *known;
    return Error{Code::kInvalidParameterValue,
                 "Invalid resource type '" + resource_type +
                     "'. Valid resource types are: " + resource_types_text()};
}

Result<Permission> check_permission(const std::string& permission) {
    if (const auto known = permission_of(permission)) return *known;
    return Error{Code::kInvalidParameterValue,
                 "Invalid permission '" + permission +
                     "'. Valid permissions are: ('READ', 'USE', 'EDIT', 'MANAGE', "
                     "'NO_PERMISSIONS', 'DENY')"};
}

Result<GrantFields> check_grant(const std::string& resource_type, const std::string& pattern,
                                const std::string& permission) {
    TUNE_TRY(type, check_resource_type(resource_type));
    const bool is_workspace = type == ResourceType::kWorkspace;
    if (!is_granted_by_id(type) && pattern != kAnyResource)
        return Error{Code::kInvalidParameterValue,
                     "Invalid resource_pattern '" + pattern + "' for resource_type='" +
                         resource_type +
                         "'. This resource type supports only wildcard ('*') grants."};
    TUNE_TRY(given, check_permission(permission));
    const std::string subject =
        "Invalid permission '" + permission + "' for resource_type='" + resource_type + "'. ";
    if (is_workspace && given != Permission::kUse && given != Permission::kManage)
        return Error{Code::kInvalidParameterValue,
                     subject + "Workspace-wide grants accept only: ('MANAGE', 'USE')."};
    if (given == Permission::kNone)
        return Error{Code::kInvalidParameterValue,
                     subject +
                         "Resource-level grants accept only: ('DENY', 'EDIT', 'MANAGE', "
                         "'READ', 'USE')."};
    return GrantFields{std::string(resource_type_name(type)), given};
}

}  // namespace tune::tracker
