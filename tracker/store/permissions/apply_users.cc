// Users and their sessions: the writer's side of the commands.
//
// The last admin stays, since without one nobody could make another. A changed password or a
// removal ends the user's sessions in the same transaction, so no login outlives what it was made
// with.

#include "tracker/store/permissions/apply_permissions.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

/// Errors: kBadRequest when `user` is the only admin.
Result<void> check_other_admin(WriteContext& context, const User& user) {
    if (!user.is_admin) return {};
    TUNE_TRY(select, context.connection.prepare("SELECT 1 FROM users WHERE is_admin = 1 AND "
                                                "user_id <> ? LIMIT 1"));
    TUNE_TRY(has_other, select.with(user.user_id).step());
    if (has_other) return {};
    return Error{Code::kBadRequest, "User '" + user.username +
                                        "' is the only admin. Make another user an admin first."};
}

Result<void> end_sessions(WriteContext& context, std::int64_t user_id) {
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM user_sessions WHERE user_id = ?"));
    return erase.with(user_id).run();
}

Result<Outcome> user_outcome(WriteContext& context, const std::string& username) {
    TUNE_TRY(user, require_user(context.connection, username));
    return Outcome(PermissionOutcome(std::move(user)));
}

}  // namespace

Result<Outcome> apply(WriteContext& context, PermissionCommand& command) {
    context.permissions_changed = true;
    return std::visit([&](auto& one) { return apply(context, one); },
                      static_cast<PermissionCommandVariant&>(command));
}

Result<Outcome> apply(WriteContext& context, CreateUser& command) {
    if (command.username.empty())
        return Error{Code::kInvalidParameterValue, "Username cannot be empty."};
    TUNE_TRY(known, find_user(context.connection, command.username));
    if (known)
        return Error{Code::kResourceAlreadyExists,
                     "User (username=" + command.username + ") already exists."};
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO users (username, password_hash, "
                                                "is_admin) VALUES (?, ?, ?)"));
    const std::int64_t is_admin = command.is_admin ? 1 : 0;
    TUNE_TRY_VOID(insert.with(command.username, command.password_hash, is_admin).run());
    return user_outcome(context, command.username);
}

Result<Outcome> apply(WriteContext& context, UpdateUser& command) {
    TUNE_TRY(user, require_user(context.connection, command.username));
    if (command.is_admin && !*command.is_admin) TUNE_TRY_VOID(check_other_admin(context, user));
    TUNE_TRY(update, context.connection.prepare("UPDATE users SET password_hash = ?2, is_admin = "
                                                "?3 WHERE user_id = ?1"));
    const std::string hash = command.password_hash.value_or(user.password_hash);
    const std::int64_t is_admin = command.is_admin.value_or(user.is_admin) ? 1 : 0;
    TUNE_TRY_VOID(update.with(user.user_id, hash, is_admin).run());
    if (command.password_hash) TUNE_TRY_VOID(end_sessions(context, user.user_id));
    return user_outcome(context, command.username);
}

Result<Outcome> apply(WriteContext& context, DeleteUser& command) {
    TUNE_TRY(user, require_user(context.connection, command.username));
    TUNE_TRY_VOID(check_other_admin(context, user));
    TUNE_TRY(grants, context.connection.prepare("DELETE FROM role_permissions WHERE role_id IN "
                                                "(SELECT role_id FROM roles WHERE name = ?)"));
    const std::string own_role = own_role_name(user.user_id);
    TUNE_TRY_VOID(grants.with(own_role).run());
    TUNE_TRY(role, context.connection.prepare("DELETE FROM roles WHERE name = ?"));
    TUNE_TRY_VOID(role.with(own_role).run());
    TUNE_TRY(roles, context.connection.prepare("DELETE FROM user_roles WHERE user_id = ?"));
    TUNE_TRY_VOID(roles.with(user.user_id).run());
    TUNE_TRY_VOID(end_sessions(context, user.user_id));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM users WHERE user_id = ?"));
    TUNE_TRY_VOID(erase.with(user.user_id).run());
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, OpenSession& command) {
    TUNE_TRY(user, find_user(context.connection, command.user_id));
    if (!user) return no_user("#" + std::to_string(command.user_id));
    const std::int64_t now_ms = context.clock.now_ms();
    TUNE_TRY(expired, context.connection.prepare("DELETE FROM user_sessions WHERE user_id = ?1 AND "
                                                 "(expires_ms <= ?2 OR session_sha256 IN (SELECT "
                                                 "session_sha256 FROM user_sessions WHERE user_id "
                                                 "= ?1 ORDER BY created_ms DESC LIMIT -1 OFFSET "
                                                 "?3))"));
    TUNE_TRY_VOID(expired.with(command.user_id, now_ms, kSessionsPerUserMax - 1).run());
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO user_sessions VALUES (?, ?, ?, ?)"));
    TUNE_TRY_VOID(
        insert.with(command.session_sha256, command.user_id, now_ms, command.expires_ms).run());
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, CloseSession& command) {
    TUNE_TRY(erase,
             context.connection.prepare("DELETE FROM user_sessions WHERE session_sha256 = ?"));
    TUNE_TRY_VOID(erase.with(command.session_sha256).run());
    return Outcome{};
}

}  // namespace tune::tracker
