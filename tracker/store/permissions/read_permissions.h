#pragma once
// Reads of users, roles and grants on a connection: shared by the writer and the store's readers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/search/sql.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/permissions/permission_types.h"

namespace tune::tracker {

/// "User with username=x not found".
[[nodiscard]] Error no_user(std::string_view username);
/// "Role with id=9 not found".
[[nodiscard]] Error no_role(std::int64_t role_id);
/// "Role permission with id=9 not found".
[[nodiscard]] Error no_role_permission(std::int64_t permission_id);

[[nodiscard]] Result<std::optional<User>> find_user(sqlite::Connection& connection,
                                                    std::string_view username);
[[nodiscard]] Result<std::optional<User>> find_user(sqlite::Connection& connection,
                                                    std::int64_t user_id);
/// The user of a session that has not expired at `now_ms`.
[[nodiscard]] Result<std::optional<User>> find_session_user(sqlite::Connection& connection,
                                                            std::string_view session_sha256,
                                                            std::int64_t now_ms);
/// Errors: no_user.
[[nodiscard]] Result<User> require_user(sqlite::Connection& connection, std::string_view username);
/// In the order in which they were made.
[[nodiscard]] Result<std::vector<User>> list_users(sqlite::Connection& connection);

/// Errors: no_role.
[[nodiscard]] Result<Role> require_role(sqlite::Connection& connection, std::int64_t role_id);
/// All of them, or those of `user_id`.
[[nodiscard]] Result<std::vector<Role>> list_roles(sqlite::Connection& connection,
                                                   std::optional<std::int64_t> user_id = {});
[[nodiscard]] Result<std::vector<RoleAssignment>> list_role_users(sqlite::Connection& connection,
                                                                  std::int64_t role_id);
/// Errors: no_role_permission.
[[nodiscard]] Result<RolePermission> require_role_permission(sqlite::Connection& connection,
                                                             std::int64_t permission_id);

/// What the user's grants say of the resource: kDeny if one does, else the highest; kManage for
/// who manages the workspace; nothing where no grant is about it.
[[nodiscard]] Result<std::optional<Permission>> granted(sqlite::Connection& connection,
                                                        std::int64_t user_id, ResourceType type,
                                                        std::string_view resource_id);

/// Whether the user manages the workspace, and with it roles and grants.
[[nodiscard]] Result<bool> is_workspace_admin(sqlite::Connection& connection, std::int64_t user_id);

/// The SQL condition that `column`, the id or name of a resource of `type`, may be read.
[[nodiscard]] Result<std::string> visible_condition(sqlite::Connection& connection,
                                                    const Viewer& visible_to, ResourceType type,
                                                    const std::string& column,
                                                    search::Binder& binder);

/// Those of `ids` that may be read, in their order.
[[nodiscard]] Result<std::vector<ExperimentId>> visible_experiments(
    sqlite::Connection& connection, const Viewer& visible_to, const std::vector<ExperimentId>& ids);

}  // namespace tune::tracker
