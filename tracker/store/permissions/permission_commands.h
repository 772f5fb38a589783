#pragma once
// Changes of users, roles and grants. Messages and codes are those of MLflow 3.17.2's basic-auth
// app. Errors common to them: kResourceDoesNotExist "User with username=x not found", "Role with
// id=9 not found".

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "tracker/store/permissions/permission_types.h"

namespace tune::tracker {

/// Sessions of one user; one more ends the oldest.
inline constexpr std::int64_t kSessionsPerUserMax = 100;

/// Outcome: User. Errors: kResourceAlreadyExists.
struct CreateUser {
    std::string username;
    std::string password_hash;
    bool is_admin = false;
};

/// Outcome: User. A new password ends the user's sessions. Errors: kBadRequest when it would
/// leave no admin.
struct UpdateUser {
    std::string username;
    std::optional<std::string> password_hash = {};
    std::optional<bool> is_admin = {};
};

/// With the user's own role and sessions. Errors: kBadRequest for the last admin.
struct DeleteUser {
    std::string username;
};

/// Grants to the user's own role. Outcome: RolePermission. Errors: kResourceAlreadyExists when
/// there is a grant on that resource, unless `replaces`; then kResourceDoesNotExist when there is
/// none.
struct GrantPermission {
    std::string username;
    std::string resource_type;
    std::string resource_pattern;
    Permission permission = Permission::kRead;
    bool replaces = false;
};

/// Errors: kResourceDoesNotExist.
struct RevokePermission {
    std::string username;
    std::string resource_type;
    std::string resource_pattern;
};

/// Outcome: Role. Errors: kResourceAlreadyExists; kInvalidParameterValue for the name of a user's
/// own role.
struct CreateRole {
    std::string workspace;
    std::string name;
    std::optional<std::string> description = {};
};

/// Outcome: Role. What is left out stays.
struct UpdateRole {
    std::int64_t role_id = 0;
    std::optional<std::string> name = {};
    std::optional<std::string> description = {};
};

/// With its grants; who had it loses them.
struct DeleteRole {
    std::int64_t role_id = 0;
};

/// Outcome: RolePermission.
struct AddRolePermission {
    std::int64_t role_id = 0;
    std::string resource_type;
    std::string resource_pattern;
    Permission permission = Permission::kRead;
};

/// Outcome: RolePermission.
struct UpdateRolePermission {
    std::int64_t permission_id = 0;
    Permission permission = Permission::kRead;
};

struct RemoveRolePermission {
    std::int64_t permission_id = 0;
};

/// Outcome: RoleAssignment.
struct AssignRole {
    std::string username;
    std::int64_t role_id = 0;
};

struct UnassignRole {
    std::string username;
    std::int64_t role_id = 0;
};

/// Errors: kResourceDoesNotExist when the user is gone.
struct OpenSession {
    std::string session_sha256;
    std::int64_t user_id = 0;
    std::int64_t expires_ms = 0;
};

/// Fine when there is none.
struct CloseSession {
    std::string session_sha256;
};

using PermissionCommandVariant =
    std::variant<CreateUser, UpdateUser, DeleteUser, GrantPermission, RevokePermission, CreateRole,
                 UpdateRole, DeleteRole, AddRolePermission, UpdateRolePermission,
                 RemoveRolePermission, AssignRole, UnassignRole, OpenSession, CloseSession>;

/// One change of users, roles or grants. Converts implicitly from each struct above.
struct PermissionCommand : PermissionCommandVariant {
    using PermissionCommandVariant::PermissionCommandVariant;
    PermissionCommand();
    PermissionCommand(const PermissionCommand&);
    PermissionCommand(PermissionCommand&&) noexcept;
    PermissionCommand& operator=(const PermissionCommand&);
    PermissionCommand& operator=(PermissionCommand&&) noexcept;
    ~PermissionCommand();
};

/// What such a change answers, where its comment names a type.
struct PermissionOutcome : std::variant<User, Role, RolePermission, RoleAssignment> {
    using variant::variant;
    PermissionOutcome();
    PermissionOutcome(const PermissionOutcome&);
    PermissionOutcome(PermissionOutcome&&) noexcept;
    PermissionOutcome& operator=(const PermissionOutcome&);
    PermissionOutcome& operator=(PermissionOutcome&&) noexcept;
    ~PermissionOutcome();
};

}  // namespace tune::tracker
