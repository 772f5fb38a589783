// roles/*: grants that several users share, as in MLflow's basic-auth app. There is one workspace,
// "default", so who may change roles is who may manage it.
//
// Handlers parse into commands and render what they leave; rules about roles are the store's. Ids
// are taken as numbers or digits, as MLflow's client and its REST users send them.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/auth/users/user_json.h"
#include "tracker/auth/users/user_routes.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

constexpr Needs kChange = {Access::kRun, Subject::kWorkspace, Permission::kManage};
constexpr Needs kLook = {Access::kRun, Subject::kWorkspace, Permission::kManage};

Json assignment_json(const RoleAssignment& assignment) {
    return {{"id", assignment.assignment_id},
            {"user_id", assignment.user_id},
            {"role_id", assignment.role_id}};
}

template <class Part>
const Part& part_of(const Outcome& outcome) {
    return std::get<Part>(std::get<PermissionOutcome>(outcome));
}

std::string render_role(const Outcome& outcome) {
    return to_text({{"role", role_json(part_of<Role>(outcome))}});
}

std::string render_permission(const Outcome& outcome) {
    return to_text({{"role_permission", role_permission_json(part_of<RolePermission>(outcome))}});
}

std::string render_assignment(const Outcome& outcome) {
    return to_text({{"assignment", assignment_json(part_of<RoleAssignment>(outcome))}});
}

bool is_blank(const std::string& text) {
    return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

/// An id as a number or as its digits. Errors: MLflow's text.
Result<std::int64_t> read_id(const Message& message, const char* name) {
    const Result<std::int64_t> id = message.required_integer(name);
    TUNE_TRY(is_given, message.has(name));
    if (id || !is_given) return id;
    return Error{Code::kInvalidParameterValue,
                 "Parameter '" + std::string(name) + "' must be an integer."};
}

Result<Command> parse_create(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.text("name"));
    TUNE_TRY(workspace, message.text("workspace"));
    TUNE_TRY(description, message.optional_text("description"));
    if (is_blank(name)) return Error{Code::kInvalidParameterValue, "Role name cannot be empty."};
    if (is_blank(workspace))
        return Error{Code::kInvalidParameterValue, "Workspace cannot be empty."};
    if (workspace != kDefaultWorkspace)
        return Error{Code::kInvalidParameterValue,
                     "There is no workspace '" + workspace + "': this server has one, 'default'."};
    return Command(PermissionCommand(
        CreateRole{std::move(workspace), std::move(name), std::move(description)}));
}

Result<Command> parse_update(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(role_id, read_id(message, "role_id"));
    TUNE_TRY(name, message.optional_text("name"));
    TUNE_TRY(description, message.optional_text("description"));
    if (!name && !description)
        return Error{Code::kInvalidParameterValue,
                     "At least one of 'name' or 'description' must be provided to update a role."};
    if (name && is_blank(*name))
        return Error{Code::kInvalidParameterValue, "Role name cannot be empty."};
    return Command(PermissionCommand(UpdateRole{role_id, std::move(name), std::move(description)}));
}

Result<Command> parse_delete_role(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(role_id, read_id(message, "role_id"));
    return Command(PermissionCommand(DeleteRole{role_id}));
}

Result<Command> parse_add(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(role_id, read_id(message, "role_id"));
    TUNE_TRY(type, message.required_text("resource_type"));
    TUNE_TRY(pattern, message.required_text("resource_pattern"));
    TUNE_TRY(permission, message.required_text("permission"));
    TUNE_TRY(fields, check_grant(type, pattern, permission));
    return Command(PermissionCommand(AddRolePermission{role_id, std::move(fields.resource_type),
                                                       std::move(pattern), fields.permission}));
}

Result<Command> parse_remove(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(permission_id, read_id(message, "role_permission_id"));
    return Command(PermissionCommand(RemoveRolePermission{permission_id}));
}

Result<Command> parse_assign(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(role_id, read_id(message, "role_id"));
    return Command(PermissionCommand(AssignRole{std::move(username), role_id}));
}

Result<Command> parse_unassign(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(role_id, read_id(message, "role_id"));
    return Command(PermissionCommand(UnassignRole{std::move(username), role_id}));
}

/// Whether the permission goes with what the grant is about is known only with the grant.
Result<std::string> update_permission(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(permission_id, read_id(message, "role_permission_id"));
    TUNE_TRY(name, message.required_text("permission"));
    TUNE_TRY(known, parts.store.snapshot([&](sqlite::Connection& connection) {
        return require_role_permission(connection, permission_id);
    }));
    TUNE_TRY(fields, check_grant(known.resource_type, known.resource_pattern, name));
    TUNE_TRY(outcome, parts.store.execute(PermissionCommand(
                          UpdateRolePermission{permission_id, fields.permission})));
    return render_permission(outcome);
}

Result<Role> read_role(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(role_id, read_id(message, "role_id"));
    return parts.store.snapshot(
        [&](sqlite::Connection& connection) { return require_role(connection, role_id); });
}

Result<std::string> role_text(const UserParts& parts, const Request& request) {
    TUNE_TRY(role, read_role(parts, request));
    return to_text({{"role", role_json(role)}});
}

Result<std::string> list_role_permissions(const UserParts& parts, const Request& request) {
    TUNE_TRY(role, read_role(parts, request));
    return to_text({{"role_permissions", role_json(role)["permissions"]}});
}

/// Those of the workspaces that are named, or all.
Result<std::string> roles_text(const UserParts& parts, const Request& request) {
    const std::vector<std::string_view> named = request.query_values("workspace");
    TUNE_TRY(roles, parts.store.snapshot(
                        [&](sqlite::Connection& connection) { return list_roles(connection); }));
    Json rows = Json::array();
    for (const Role& role : roles)
        if (named.empty() || std::find(named.begin(), named.end(), role.workspace) != named.end())
            rows.push_back(role_json(role));
    return to_text({{"roles", std::move(rows)}});
}

Result<std::string> list_of_user(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    return parts.store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
        TUNE_TRY(user, require_user(connection, username));
        TUNE_TRY(roles, list_roles(connection, user.user_id));
        Json rows = Json::array();
        for (const Role& role : roles) rows.push_back(role_json(role));
        return to_text({{"roles", std::move(rows)}});
    });
}

Result<std::string> list_users_of(const UserParts& parts, const Request& request) {
    TUNE_TRY(role, read_role(parts, request));
    TUNE_TRY(assignments, parts.store.snapshot([&](sqlite::Connection& connection) {
        return list_role_users(connection, role.role_id);
    }));
    Json rows = Json::array();
    for (const RoleAssignment& assignment : assignments)
        rows.push_back(assignment_json(assignment));
    return to_text({{"assignments", std::move(rows)}});
}

}  // namespace

void add_role_routes(Router& router, const UserParts& parts) {
    const std::string roles = "/mlflow/roles/";
    const auto change = [&](Method method, const char* call, const char* summary,
                            ParseCommand parse, RenderOutcome render = {}) {
        const Body body = method == Method::kDelete ? Body::kNone : Body::kJson;
        router.add_api(3, {method, kChange, roles + call, body, summary,
                           write_handler(parts.store, std::move(parse), std::move(render))});
    };
    const auto read = [&](Needs needs, const std::string& path, const char* summary,
                          Result<std::string> (*work)(const UserParts&, const Request&)) {
        router.add_api(3, {Method::kGet, needs, path, Body::kNone, summary,
                           read_handler(parts.store, [parts, work](const Request& request) {
                               return work(parts, request);
                           })});
    };
    change(Method::kPost, "create", "workspace! (default), name!, description", parse_create,
           render_role);
    change(Method::kPatch, "update", "role_id!, name, description", parse_update, render_role);
    change(Method::kDelete, "delete", "role_id!", parse_delete_role);
    change(Method::kPost, "permissions/add",
           "role_id!, resource_type!, resource_pattern! (an id, a name or *), permission!",
           parse_add, render_permission);
    change(Method::kDelete, "permissions/remove", "role_permission_id!", parse_remove);
    change(Method::kPost, "assign", "username!, role_id!", parse_assign, render_assignment);
    change(Method::kDelete, "unassign", "username!, role_id!", parse_unassign);
    router.add_api(3, {Method::kPatch, kChange, roles + "permissions/update", Body::kJson,
                       "role_permission_id!, permission!",
                       read_handler(parts.store, [parts](const Request& request) {
                           return update_permission(parts, request);
                       })});
    read(kLook, roles + "get", "role_id!", role_text);
    read(kLook, roles + "list", "workspace (repeated)", roles_text);
    read(kLook, roles + "permissions/list", "role_id!", list_role_permissions);
    read(kLook, roles + "users/list", "role_id!", list_users_of);
    read({Access::kRun, Subject::kSelfOrWorkspace}, "/mlflow/users/roles/list", "username!",
         list_of_user);
}

}  // namespace tune::tracker
