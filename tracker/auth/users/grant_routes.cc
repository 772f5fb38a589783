// users/permissions/*: what single users may do, and the older experiments/permissions/* and
// registered-models/permissions/* of clients before 3.17, which say the same of one resource.

#include <nlohmann/json.hpp>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/auth/users/user_json.h"
#include "tracker/auth/users/user_routes.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

constexpr Needs kManage = {Access::kRun, Subject::kGrant, Permission::kManage};

Error no_workspace_here() {
    return {Code::kInvalidParameterValue,
            "resource_type 'workspace' is not supported by the per-user permission convenience "
            "APIs. Use set_workspace_permission / delete_workspace_permission for workspace-wide "
            "grants."};
}

/// The resource that a call names.
struct Resource {
    std::string type;
    std::string id;
};

Result<Resource> read_resource(const Message& message) {
    TUNE_TRY(type, message.required_text("resource_type"));
    TUNE_TRY(id, message.required_text("resource_id"));
    if (type == "workspace") return no_workspace_here();
    return Resource{std::move(type), std::move(id)};
}

Result<Command> parse_grant(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(resource, read_resource(message));
    TUNE_TRY(permission, message.required_text("permission"));
    TUNE_TRY(fields, check_grant(resource.type, resource.id, permission));
    return Command(PermissionCommand(GrantPermission{.username = std::move(username),
                                                     .resource_type = fields.resource_type,
                                                     .resource_pattern = std::move(resource.id),
                                                     .permission = fields.permission}));
}

Result<Command> parse_revoke(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(resource, read_resource(message));
    TUNE_TRY_VOID(check_resource_type(resource.type));
    return Command(PermissionCommand(
        RevokePermission{std::move(username), std::move(resource.type), std::move(resource.id)}));
}

Result<std::string> get_permission(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(resource, read_resource(message));
    TUNE_TRY(type, check_resource_type(resource.type));
    if (!is_granted_by_id(type) && resource.id != kAnyResource)
        return Error{Code::kInvalidParameterValue,
                     "resource_type '" + resource.type +
                         "' is not supported by the per-user permission convenience APIs."};
    TUNE_TRY(user, parts.store.snapshot([&](sqlite::Connection& connection) {
        return require_user(connection, username);
    }));
    TUNE_TRY(permission, parts.gate.permission_of(user.user_id, type, resource.id));
    return to_text(
        {{"allowed", permission >= Permission::kUse}, {"permission", permission_name(permission)}});
}

Json rows_of(const std::vector<Role>& roles) {
    Json rows = Json::array();
    for (const Role& role : roles)
        for (const RolePermission& permission : role.permissions)
            rows.push_back({{"role_id", role.role_id},
                            {"role_name", role.name},
                            {"workspace", role.workspace},
                            {"resource_type", permission.resource_type},
                            {"resource_pattern", permission.resource_pattern},
                            {"permission", permission_name(permission.permission)}});
    return rows;
}

Result<std::string> permissions_of(const UserParts& parts, const std::string& username) {
    return parts.store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
        TUNE_TRY(user, require_user(connection, username));
        TUNE_TRY(roles, list_roles(connection, user.user_id));
        return to_text({{"is_admin", user.is_admin}, {"permissions", rows_of(roles)}});
    });
}

Result<std::string> list_permissions(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    return permissions_of(parts, username);
}

Result<std::string> own_permissions(const UserParts& parts, const Request& request) {
    const UserPrincipal* const asker = user_of(request.principal);
    if (asker != nullptr) return permissions_of(parts, asker->username);
    return to_text({{"is_admin", true}, {"permissions", Json::array()}});
}

// --- one resource, as clients before 3.17 say it -------------------------------------------------

/// experiment_id of an experiment, name of a registered model.
struct OldFace {
    const char* path;
    const char* id_field;
    const char* type;
    const char* object;
};

constexpr OldFace kExperimentFace = {"experiments", "experiment_id", "experiment",
                                     "experiment_permission"};
constexpr OldFace kModelFace = {"registered-models", "name", "registered_model",
                                "registered_model_permission"};

struct OldFields {
    std::string username;
    std::string id;
};

Result<OldFields> read_old(const OldFace& face, const Message& message) {
    TUNE_TRY(id, message.required_text(face.id_field));
    TUNE_TRY(username, message.required_text("username"));
    return OldFields{std::move(username), std::move(id)};
}

std::string old_answer(const OldFace& face, const std::string& id, std::int64_t user_id,
                       Permission permission) {
    return to_text({{face.object,
                     {{face.id_field, id},
                      {"user_id", user_id},
                      {"permission", permission_name(permission)}}}});
}

/// Creates, or changes with `replaces`.
ParseCommand parse_old_grant(const OldFace& face, bool replaces) {
    return [face, replaces](const Request& request) -> Result<Command> {
        TUNE_TRY(message, Message::read(request));
        TUNE_TRY(fields, read_old(face, message));
        TUNE_TRY(name, message.required_text("permission"));
        TUNE_TRY(permission, check_permission(name));
        return Command(PermissionCommand(GrantPermission{
            std::move(fields.username), face.type, std::move(fields.id), permission, replaces}));
    };
}

ParseCommand parse_old_revoke(const OldFace& face) {
    return [face](const Request& request) -> Result<Command> {
        TUNE_TRY(message, Message::read(request));
        TUNE_TRY(fields, read_old(face, message));
        return Command(PermissionCommand(
            RevokePermission{std::move(fields.username), face.type, std::move(fields.id)}));
    };
}

/// The user's own grant on exactly this resource.
Result<std::string> find_old(const UserParts& parts, const OldFace& face, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(fields, read_old(face, message));
    return parts.store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
        TUNE_TRY(user, require_user(connection, fields.username));
        TUNE_TRY(roles, list_roles(connection, user.user_id));
        for (const Role& role : roles)
            for (const RolePermission& one : role.permissions)
                if (role.name.starts_with(kOwnRolePrefix) && one.resource_type == face.type &&
                    one.resource_pattern == fields.id)
                    return old_answer(face, fields.id, user.user_id, one.permission);
        return Error{Code::kResourceDoesNotExist,
                     std::string("Permission with ") + face.id_field + "=" + fields.id +
                         " and username=" + fields.username + " not found"};
    });
}

/// The answer of a create names the user by number, which only the store knows.
Handler old_create_handler(const UserParts& parts, const OldFace& face) {
    return read_handler(parts.store, [parts, face](const Request& request) -> Result<std::string> {
        TUNE_TRY(command, parse_old_grant(face, false)(request));
        TUNE_TRY_VOID(parts.store.execute(std::move(command)));
        return find_old(parts, face, request);
    });
}

void add_old_face(Router& router, const UserParts& parts, const OldFace& face) {
    const std::string path = std::string("/mlflow/") + face.path + "/permissions/";
    const std::string who = std::string(face.id_field) + "!, username!";
    router.add_api(
        2, {Method::kPost, kManage, path + "create", Body::kJson,
            "Clients before 3.17: " + who + ", permission!", old_create_handler(parts, face)});
    router.add_api(2, {Method::kGet,
                       {Access::kRun, Subject::kGrant, Permission::kManage},
                       path + "get",
                       Body::kNone,
                       "Clients before 3.17: " + who,
                       read_handler(parts.store, [parts, face](const Request& request) {
                           return find_old(parts, face, request);
                       })});
    router.add_api(2, {Method::kPatch, kManage, path + "update", Body::kJson,
                       "Clients before 3.17: " + who + ", permission!",
                       write_handler(parts.store, parse_old_grant(face, true))});
    router.add_api(
        2, {Method::kDelete, kManage, path + "delete", Body::kNone, "Clients before 3.17: " + who,
            write_handler(parts.store, parse_old_revoke(face))});
}

}  // namespace

void add_grant_routes(Router& router, const UserParts& parts) {
    const auto read = [&](Subject subject, const char* path, const char* summary,
                          Result<std::string> (*work)(const UserParts&, const Request&)) {
        router.add_api(3, {Method::kGet,
                           {Access::kRun, subject},
                           path,
                           Body::kNone,
                           summary,
                           read_handler(parts.store, [parts, work](const Request& request) {
                               return work(parts, request);
                           })});
    };
    router.add_api(3, {Method::kPost, kManage, "/mlflow/users/permissions/grant", Body::kJson,
                       "username!, resource_type!, resource_id!, permission!",
                       write_handler(parts.store, parse_grant)});
    router.add_api(
        3, {Method::kPost, kManage, "/mlflow/users/permissions/revoke", Body::kJson,
            "username!, resource_type!, resource_id!", write_handler(parts.store, parse_revoke)});
    read(Subject::kSelfOrWorkspace, "/mlflow/users/permissions/get",
         "What a user may do, by all grants together: username!, resource_type!, resource_id!",
         get_permission);
    read(Subject::kSelfOrWorkspace, "/mlflow/users/permissions/list",
         "All that was granted to a user: username!", list_permissions);
    read(Subject::kNothing, "/mlflow/users/current/permissions", "All that was granted to who asks",
         own_permissions);
    add_old_face(router, parts, kExperimentFace);
    add_old_face(router, parts, kModelFace);
}

}  // namespace tune::tracker
