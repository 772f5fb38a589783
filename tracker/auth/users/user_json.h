#pragma once
// Users, roles and grants as MLflow's basic-auth app writes them, and the texts of its checks.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "tracker/store/permissions/permission_types.h"

namespace tune::tracker {

[[nodiscard]] Json user_json(const User& user);
[[nodiscard]] Json role_json(const Role& role);
[[nodiscard]] Json role_permission_json(const RolePermission& permission);

/// What a grant is about and what it gives, checked.
struct GrantFields {
    std::string resource_type = {};
    Permission permission = Permission::kRead;
};

/// Errors: kInvalidParameterValue with MLflow 3.17.2's texts for a type, a pattern or a permission
/// that is none, or that does not go with the type.
[[nodiscard]] Result<GrantFields> check_grant(const std::string& resource_type,
                                              const std::string& pattern,
                                              const std::string& permission);
/// Errors: the same.
[[nodiscard]] Result<ResourceType> check_resource_type(const std::string& resource_type);
/// Errors: the same, for a permission that is none.
[[nodiscard]] Result<Permission> check_permission(const std::string& permission);

}  // namespace tune::tracker
