#pragma once
// Changes of users, roles and grants in the open transaction, and what other changes do to grants.

#include "base/result.h"
#include "tracker/store/commands/commands.h"
#include "tracker/store/writer/write_context.h"

namespace tune::tracker {

// apply_users.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateUser& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UpdateUser& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteUser& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, OpenSession& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CloseSession& command);

// apply_grants.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, GrantPermission& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RevokePermission& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateRole& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UpdateRole& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteRole& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, AddRolePermission& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UpdateRolePermission& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RemoveRolePermission& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, AssignRole& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UnassignRole& command);

/// Whoever made the resource manages it; 0 is nobody.
[[nodiscard]] Result<void> grant_owner(WriteContext& context, std::int64_t user_id,
                                       ResourceType type, std::string_view resource_id);
/// The name may be given again: nobody may have rights by it then.
[[nodiscard]] Result<void> drop_grants(WriteContext& context, ResourceType type,
                                       std::string_view resource_id);
[[nodiscard]] Result<void> rename_grants(WriteContext& context, ResourceType type,
                                         std::string_view old_name, std::string_view new_name);

/// "__user_7__"
[[nodiscard]] std::string own_role_name(std::int64_t user_id);

}  // namespace tune::tracker
