// Roles and grants. A grant to a user is one to the user's own role, which is made when it is first
// needed.

#include "tracker/store/permissions/apply_permissions.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

std::string on_resource(const std::string& type, const std::string& pattern) {
    return "resource_type=" + type + ", resource_id=" + pattern;
}

Result<std::optional<std::int64_t>> find_own_role(WriteContext& context, std::int64_t user_id) {
    TUNE_TRY(select, context.connection.prepare("SELECT role_id FROM roles WHERE workspace = ? AND "
                                                "name = ?"));
    const std::string name = own_role_name(user_id);
    TUNE_TRY(has_row, select.with(kDefaultWorkspace, name).step());
    if (!has_row) return std::optional<std::int64_t>();
    return std::optional(select.integer(0));
}

Result<std::int64_t> own_role(WriteContext& context, std::int64_t user_id) {
    TUNE_TRY(known, find_own_role(context, user_id));
    if (known) return *known;
    TUNE_TRY(insert,
             context.connection.prepare("INSERT INTO roles (workspace, name) VALUES (?, ?)"));
    const std::string name = own_role_name(user_id);
    TUNE_TRY_VOID(insert.with(kDefaultWorkspace, name).run());
    const std::int64_t role_id = context.connection.last_insert_row();
    TUNE_TRY(assign,
             context.connection.prepare("INSERT INTO user_roles (user_id, role_id) VALUES (?, ?)"));
    TUNE_TRY_VOID(assign.with(user_id, role_id).run());
    return role_id;
}

Result<std::optional<std::int64_t>> find_permission(WriteContext& context, std::int64_t role_id,
                                                    const std::string& type,
                                                    const std::string& pattern) {
    TUNE_TRY(select, context.connection.prepare("SELECT permission_id FROM role_permissions WHERE "
                                                "role_id = ? AND resource_type = ? AND "
                                                "resource_pattern = ?"));
    TUNE_TRY(has_row, select.with(role_id, type, pattern).step());
    if (!has_row) return std::optional<std::int64_t>();
    return std::optional(select.integer(0));
}

Result<std::int64_t> insert_permission(WriteContext& context, std::int64_t role_id,
                                       std::string_view type, std::string_view pattern,
                                       Permission permission) {
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO role_permissions (role_id, "
                                                "resource_type, resource_pattern, permission) "
                                                "VALUES (?, ?, ?, ?)"));
    const auto number = static_cast<std::int64_t>(permission);
    TUNE_TRY_VOID(insert.with(role_id, type, pattern, number).run());
    return context.connection.last_insert_row();
}

Result<Outcome> permission_outcome(WriteContext& context, std::int64_t permission_id) {
    TUNE_TRY(permission, require_role_permission(context.connection, permission_id));
    return Outcome(PermissionOutcome(std::move(permission)));
}

Result<Outcome> set_permission(WriteContext& context, std::int64_t permission_id,
                               Permission permission) {
    TUNE_TRY(update, context.connection.prepare("UPDATE role_permissions SET permission = ?2 WHERE "
                                                "permission_id = ?1"));
    TUNE_TRY_VOID(update.with(permission_id, static_cast<std::int64_t>(permission)).run());
    return permission_outcome(context, permission_id);
}

Result<void> check_role_name(const std::string& name) {
    if (!name.starts_with(kOwnRolePrefix)) return {};
    return Error{
        Code::kInvalidParameterValue,
        "Role name '" + name + "' uses the reserved '__user_' prefix, which is the server's own."};
}

}  // namespace

std::string own_role_name(std::int64_t user_id) {
    return std::string(kOwnRolePrefix) + std::to_string(user_id) + "__";
}

Result<void> grant_owner(WriteContext& context, std::int64_t user_id, ResourceType type,
                         std::string_view resource_id) {
    if (user_id == 0) return {};
    context.permissions_changed = true;
    TUNE_TRY(role_id, own_role(context, user_id));
    // Something may have been granted for the name before anything had it.
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO role_permissions (role_id, "
                                                "resource_type, resource_pattern, permission) "
                                                "VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                                                "permission = excluded.permission"));
    const std::string_view name = resource_type_name(type);
    constexpr auto kManage = static_cast<std::int64_t>(Permission::kManage);
    return insert.with(role_id, name, resource_id, kManage).run();
}

Result<void> drop_grants(WriteContext& context, ResourceType type, std::string_view resource_id) {
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM role_permissions WHERE resource_type = "
                                               "? AND resource_pattern = ?"));
    const std::string_view name = resource_type_name(type);
    TUNE_TRY_VOID(erase.with(name, resource_id).run());
    context.permissions_changed = true;
    return {};
}

Result<void> rename_grants(WriteContext& context, ResourceType type, std::string_view old_name,
                           std::string_view new_name) {
    if (old_name == new_name) return {};
    // What was granted for the new name before anything had it goes: the owner comes along.
    TUNE_TRY_VOID(drop_grants(context, type, new_name));
    TUNE_TRY(update, context.connection.prepare("UPDATE role_permissions SET resource_pattern = ?3 "
                                                "WHERE resource_type = ?1 AND resource_pattern = "
                                                "?2"));
    const std::string_view name = resource_type_name(type);
    return update.with(name, old_name, new_name).run();
}

Result<Outcome> apply(WriteContext& context, GrantPermission& command) {
    TUNE_TRY(user, require_user(context.connection, command.username));
    TUNE_TRY(role_id, own_role(context, user.user_id));
    TUNE_TRY(known,
             find_permission(context, role_id, command.resource_type, command.resource_pattern));
    const std::string subject = "Permission for user=" + command.username + " on " +
                                on_resource(command.resource_type, command.resource_pattern);
    if (known && !command.replaces)
        return Error{Code::kResourceAlreadyExists, subject + " already exists."};
    if (!known && command.replaces)
        return Error{Code::kResourceDoesNotExist, subject + " not found."};
    if (known) return set_permission(context, *known, command.permission);
    TUNE_TRY(permission_id, insert_permission(context, role_id, command.resource_type,
                                              command.resource_pattern, command.permission));
    return permission_outcome(context, permission_id);
}

Result<Outcome> apply(WriteContext& context, RevokePermission& command) {
    TUNE_TRY(user, require_user(context.connection, command.username));
    TUNE_TRY(role_id, find_own_role(context, user.user_id));
    TUNE_TRY(known, find_permission(context, role_id.value_or(0), command.resource_type,
                                    command.resource_pattern));
    if (!known)
        return Error{Code::kResourceDoesNotExist,
                     "Permission for user=" + command.username + " on " +
                         on_resource(command.resource_type, command.resource_pattern) +
                         " not found."};
    RemoveRolePermission remove{*known};
    return apply(context, remove);
}

Result<Outcome> apply(WriteContext& context, CreateRole& command) {
    TUNE_TRY_VOID(check_role_name(command.name));
    TUNE_TRY(select, context.connection.prepare("SELECT 1 FROM roles WHERE workspace = ? AND name "
                                                "= ?"));
    TUNE_TRY(is_taken, select.with(command.workspace, command.name).step());
    if (is_taken)
        return Error{Code::kResourceAlreadyExists, "Role (name=" + command.name + ", workspace=" +
                                                       command.workspace + ") already exists."};
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO roles (workspace, name, description) "
                                                "VALUES (?, ?, ?)"));
    insert.with(command.workspace, command.name);
    if (command.description) {
        insert.bind(3, *command.description);
    } else {
        insert.bind_null(3);
    }
    TUNE_TRY_VOID(insert.run());
    TUNE_TRY(role, require_role(context.connection, context.connection.last_insert_row()));
    return Outcome(PermissionOutcome(std::move(role)));
}

Result<Outcome> apply(WriteContext& context, UpdateRole& command) {
    TUNE_TRY(role, require_role(context.connection, command.role_id));
    if (command.name) {
        TUNE_TRY_VOID(check_role_name(*command.name));
        TUNE_TRY(select, context.connection.prepare("SELECT 1 FROM roles WHERE workspace = ? AND "
                                                    "name = ? AND role_id <> ?"));
        TUNE_TRY(is_taken, select.with(role.workspace, *command.name, command.role_id).step());
        if (is_taken)
            return Error{Code::kResourceAlreadyExists,
                         "Role with name=" + *command.name +
                             " already exists in workspace=" + role.workspace};
        role.name = *command.name;
    }
    if (command.description) role.description = command.description;
    TUNE_TRY(update, context.connection.prepare("UPDATE roles SET name = ?2, description = ?3 "
                                                "WHERE role_id = ?1"));
    update.with(role.role_id, role.name);
    if (role.description) {
        update.bind(3, *role.description);
    } else {
        update.bind_null(3);
    }
    TUNE_TRY_VOID(update.run());
    return Outcome(PermissionOutcome(std::move(role)));
}

Result<Outcome> apply(WriteContext& context, DeleteRole& command) {
    TUNE_TRY(role, require_role(context.connection, command.role_id));
    for (const char* sql :
         {"DELETE FROM role_permissions WHERE role_id = ?",
          "DELETE FROM user_roles WHERE role_id = ?", "DELETE FROM roles WHERE role_id = ?"}) {
        TUNE_TRY(erase, context.connection.prepare(sql));
        TUNE_TRY_VOID(erase.with(role.role_id).run());
    }
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, AddRolePermission& command) {
    TUNE_TRY(role, require_role(context.connection, command.role_id));
    TUNE_TRY(known, find_permission(context, role.role_id, command.resource_type,
                                    command.resource_pattern));
    if (known)
        return Error{Code::kResourceAlreadyExists,
                     "Role permission (role_id=" + std::to_string(role.role_id) +
                         ", resource_type=" + command.resource_type +
                         ", resource_pattern=" + command.resource_pattern + ") already exists."};
    TUNE_TRY(permission_id, insert_permission(context, role.role_id, command.resource_type,
                                              command.resource_pattern, command.permission));
    return permission_outcome(context, permission_id);
}

Result<Outcome> apply(WriteContext& context, UpdateRolePermission& command) {
    TUNE_TRY(known, require_role_permission(context.connection, command.permission_id));
    return set_permission(context, known.permission_id, command.permission);
}

Result<Outcome> apply(WriteContext& context, RemoveRolePermission& command) {
    TUNE_TRY(known, require_role_permission(context.connection, command.permission_id));
    TUNE_TRY(erase,
             context.connection.prepare("DELETE FROM role_permissions WHERE permission_id = ?"));
    TUNE_TRY_VOID(erase.with(known.permission_id).run());
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, AssignRole& command) {
    TUNE_TRY(user, require_user(context.connection, command.username));
    TUNE_TRY(role, require_role(context.connection, command.role_id));
    TUNE_TRY(select, context.connection.prepare("SELECT 1 FROM user_roles WHERE user_id = ? AND "
                                                "role_id = ?"));
    TUNE_TRY(is_there, select.with(user.user_id, role.role_id).step());
    if (is_there)
        return Error{Code::kResourceAlreadyExists,
                     "User role assignment (user_id=" + std::to_string(user.user_id) +
                         ", role_id=" + std::to_string(role.role_id) + ") already exists"};
    TUNE_TRY(insert,
             context.connection.prepare("INSERT INTO user_roles (user_id, role_id) VALUES (?, ?)"));
    TUNE_TRY_VOID(insert.with(user.user_id, role.role_id).run());
    return Outcome(PermissionOutcome(
        RoleAssignment{context.connection.last_insert_row(), user.user_id, role.role_id}));
}

Result<Outcome> apply(WriteContext& context, UnassignRole& command) {
    TUNE_TRY(user, require_user(context.connection, command.username));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM user_roles WHERE user_id = ? AND "
                                               "role_id = ?"));
    TUNE_TRY_VOID(erase.with(user.user_id, command.role_id).run());
    if (context.connection.changed_rows() == 0)
        return Error{Code::kResourceDoesNotExist,
                     "User role assignment (user_id=" + std::to_string(user.user_id) +
                         ", role_id=" + std::to_string(command.role_id) + ") not found"};
    return Outcome{};
}

}  // namespace tune::tracker
