// A grant reaches a user through a role. Several may be about one resource, by its id and by "*":
// together they count as their highest, unless one denies (MLflow 3.17.2's fold_grants_for_key).

#include "tracker/store/permissions/read_permissions.h"

#include <algorithm>
#include <array>

namespace tune::tracker {
namespace {

constexpr std::array<std::pair<Permission, std::string_view>, 6> kPermissions = {{
    {Permission::kDeny, "DENY"},
    {Permission::kNone, "NO_PERMISSIONS"},
    {Permission::kRead, "READ"},
    {Permission::kUse, "USE"},
    {Permission::kEdit, "EDIT"},
    {Permission::kManage, "MANAGE"},
}};

struct Kind {
    ResourceType type;
    std::string_view name;
    bool by_id;
};
/// In order of the names.
constexpr std::array<Kind, 18> kKinds = {{
    {ResourceType::kAssessment, "assessment", false},
    {ResourceType::kExperiment, "experiment", true},
    {ResourceType::kGatewayEndpoint, "gateway_endpoint", true},
    {ResourceType::kGatewayModelDefinition, "gateway_model_definition", true},
    {ResourceType::kGatewaySecret, "gateway_secret", true},
    {ResourceType::kLoggedModel, "logged_model", false},
    {ResourceType::kMcpServer, "mcp_server", true},
    {ResourceType::kMcpServerVersion, "mcp_server_version", false},
    {ResourceType::kPrompt, "prompt", true},
    {ResourceType::kPromptVersion, "prompt_version", false},
    {ResourceType::kRegisteredModel, "registered_model", true},
    {ResourceType::kRegisteredModelVersion, "registered_model_version", false},
    {ResourceType::kReviewQueue, "review_queue", false},
    {ResourceType::kRun, "run", false},
    {ResourceType::kScorer, "scorer", true},
    {ResourceType::kScorerVersion, "scorer_version", false},
    {ResourceType::kTrace, "trace", false},
    {ResourceType::kWorkspace, "workspace", false},
}};

constexpr std::string_view kUserColumns =
    "SELECT u.user_id, u.username, u.password_hash, u.is_admin FROM users u ";
constexpr std::string_view kRoleColumns =
    "SELECT r.role_id, r.workspace, r.name, r.description FROM roles r ";
constexpr std::string_view kPermissionColumns =
    "SELECT permission_id, role_id, resource_type, resource_pattern, permission "
    "FROM role_permissions ";
constexpr std::string_view kGrants =
    "FROM user_roles a JOIN role_permissions p ON p.role_id = a.role_id ";

User user_of(const sqlite::Statement& row) {
    return {row.integer(0), std::string(row.text(1)), std::string(row.text(2)),
            row.integer(3) != 0};
}

Result<std::optional<User>> one_user(sqlite::Statement& select) {
    TUNE_TRY(has_row, select.step());
    if (!has_row) return std::optional<User>();
    return std::optional<User>(user_of(select));
}

RolePermission permission_of_row(const sqlite::Statement& row) {
    return {row.integer(0), row.integer(1), std::string(row.text(2)), std::string(row.text(3)),
            static_cast<Permission>(row.integer(4))};
}

Role role_of(const sqlite::Statement& row) {
    Role role;
    role.role_id = row.integer(0);
    role.workspace = row.text(1);
    role.name = row.text(2);
    if (!row.is_null(3)) role.description = row.text(3);
    return role;
}

Result<void> load_permissions(sqlite::Connection& connection, Role& role) {
    static const std::string sql =
        std::string(kPermissionColumns) + "WHERE role_id = ? ORDER BY permission_id";
    TUNE_TRY(select, connection.prepare(sql));
    select.with(role.role_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        role.permissions.push_back(permission_of_row(select));
    }
}

/// The highest of the user's grants on exactly `pattern`, kDeny if one denies; nothing without one.
Result<std::optional<Permission>> granted_on(sqlite::Connection& connection, std::int64_t user_id,
                                             ResourceType type, std::string_view pattern) {
    static const std::string sql =
        "SELECT min(p.permission), max(p.permission) " + std::string(kGrants) +
        "WHERE a.user_id = ?1 AND p.resource_type = ?2 AND p.resource_pattern = ?3";
    TUNE_TRY(select, connection.prepare(sql));
    const std::string_view name = resource_type_name(type);
    TUNE_TRY(has_row, select.with(user_id, name, pattern).step());
    if (!has_row || select.is_null(0)) return std::optional<Permission>();
    const auto least = static_cast<Permission>(select.integer(0));
    if (least == Permission::kDeny) return std::optional(least);
    return std::optional(static_cast<Permission>(select.integer(1)));
}

}  // namespace

std::string_view permission_name(Permission permission) {
    for (const auto& [one, name] : kPermissions)
        if (one == permission) return name;
    return "";
}

std::optional<Permission> permission_of(std::string_view name) {
    for (const auto& [one, known] : kPermissions)
        if (known == name) return one;
    return std::nullopt;
}

std::string_view resource_type_name(ResourceType type) {
    for (const Kind& kind : kKinds)
        if (kind.type == type) return kind.name;
    return "";
}

std::optional<ResourceType> resource_type_of(std::string_view name) {
    for (const Kind& kind : kKinds)
        if (kind.name == name) return kind.type;
    return std::nullopt;
}

bool is_granted_by_id(ResourceType type) {
    return std::any_of(kKinds.begin(), kKinds.end(),
                       [type](const Kind& kind) { return kind.type == type && kind.by_id; });
}

std::string resource_types_text() {
    std::string text;
    for (const Kind& kind : kKinds)
        text.append(text.empty() ? "('" : ", '").append(kind.name).append("'");
    return text + ")";
}

Error no_user(std::string_view username) {
    return {Code::kResourceDoesNotExist,
            "User with username=" + std::string(username) + " not found"};
}

Error no_role(std::int64_t role_id) {
    return {Code::kResourceDoesNotExist, "Role with id=" + std::to_string(role_id) + " not found"};
}

Error no_role_permission(std::int64_t permission_id) {
    return {Code::kResourceDoesNotExist,
            "Role permission with id=" + std::to_string(permission_id) + " not found"};
}

Result<std::optional<User>> find_user(sqlite::Connection& connection, std::string_view username) {
    static const std::string sql = std::string(kUserColumns) + "WHERE u.username = ?";
    TUNE_TRY(select, connection.prepare(sql));
    return one_user(select.with(username));
}

Result<std::optional<User>> find_user(sqlite::Connection& connection, std::int64_t user_id) {
    static const std::string sql = std::string(kUserColumns) + "WHERE u.user_id = ?";
    TUNE_TRY(select, connection.prepare(sql));
    return one_user(select.with(user_id));
}

Result<std::optional<User>> find_session_user(sqlite::Connection& connection,
                                              std::string_view session_sha256,
                                              std::int64_t now_ms) {
    static const std::string sql =
        std::string(kUserColumns) +
        "JOIN user_sessions s USING (user_id) WHERE s.session_sha256 = ? AND s.expires_ms > ?";
    TUNE_TRY(select, connection.prepare(sql));
    return one_user(select.with(session_sha256, now_ms));
}

Result<User> require_user(sqlite::Connection& connection, std::string_view username) {
    TUNE_TRY(user, find_user(connection, username));
    if (!user) return no_user(username);
    return std::move(*user);
}

Result<std::vector<User>> list_users(sqlite::Connection& connection) {
    static const std::string sql = std::string(kUserColumns) + "ORDER BY u.user_id";
    TUNE_TRY(select, connection.prepare(sql));
    std::vector<User> users;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return users;
        users.push_back(user_of(select));
    }
}

Result<Role> require_role(sqlite::Connection& connection, std::int64_t role_id) {
    static const std::string sql = std::string(kRoleColumns) + "WHERE r.role_id = ?";
    TUNE_TRY(select, connection.prepare(sql));
    TUNE_TRY(has_row, select.with(role_id).step());
    if (!has_row) return no_role(role_id);
    Role role = role_of(select);
    TUNE_TRY_VOID(load_permissions(connection, role));
    return role;
}

Result<std::vector<Role>> list_roles(sqlite::Connection& connection,
                                     std::optional<std::int64_t> user_id) {
    static const std::string of_user =
        std::string(kRoleColumns) +
        "JOIN user_roles a USING (role_id) WHERE a.user_id = ? ORDER BY r.role_id";
    static const std::string of_all = std::string(kRoleColumns) + "ORDER BY r.role_id";
    TUNE_TRY(select, connection.prepare(user_id ? of_user : of_all));
    if (user_id) select.with(*user_id);
    std::vector<Role> roles;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        roles.push_back(role_of(select));
    }
    for (Role& role : roles) TUNE_TRY_VOID(load_permissions(connection, role));
    return roles;
}

Result<std::vector<RoleAssignment>> list_role_users(sqlite::Connection& connection,
                                                    std::int64_t role_id) {
    TUNE_TRY(select, connection.prepare("SELECT assignment_id, user_id, role_id FROM user_roles "
                                        "WHERE role_id = ? ORDER BY assignment_id"));
    select.with(role_id);
    std::vector<RoleAssignment> assignments;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return assignments;
        assignments.push_back({select.integer(0), select.integer(1), select.integer(2)});
    }
}

Result<RolePermission> require_role_permission(sqlite::Connection& connection,
                                               std::int64_t permission_id) {
    static const std::string sql = std::string(kPermissionColumns) + "WHERE permission_id = ?";
    TUNE_TRY(select, connection.prepare(sql));
    TUNE_TRY(has_row, select.with(permission_id).step());
    if (!has_row) return no_role_permission(permission_id);
    return permission_of_row(select);
}

Result<bool> is_workspace_admin(sqlite::Connection& connection, std::int64_t user_id) {
    TUNE_TRY(of_all, granted_on(connection, user_id, ResourceType::kWorkspace, kAnyResource));
    return of_all == Permission::kManage;
}

Result<std::optional<Permission>> granted(sqlite::Connection& connection, std::int64_t user_id,
                                          ResourceType type, std::string_view resource_id) {
    TUNE_TRY(is_admin, is_workspace_admin(connection, user_id));
    if (is_admin) return std::optional(Permission::kManage);
    TUNE_TRY(of_all, granted_on(connection, user_id, type, kAnyResource));
    TUNE_TRY(of_one, granted_on(connection, user_id, type, resource_id));
    if (!of_one || of_all == Permission::kDeny) return of_all;
    if (!of_all || of_one == Permission::kDeny) return of_one;
    return std::optional(std::max(*of_all, *of_one));
}

Result<std::string> visible_condition(sqlite::Connection& connection, const Viewer& visible_to,
                                      ResourceType type, const std::string& column,
                                      search::Binder& binder) {
    TUNE_TRY(is_admin, is_workspace_admin(connection, visible_to.user_id));
    if (is_admin) return std::string("1");
    TUNE_TRY(of_all, granted_on(connection, visible_to.user_id, type, kAnyResource));
    const std::string own = type == ResourceType::kExperiment && visible_to.experiment_id != 0
                                ? " OR " + column + " = " + binder.bind(visible_to.experiment_id)
                                : std::string();
    if (of_all == Permission::kDeny) return "(0" + own + ")";
    const std::string pattern = type == ResourceType::kExperiment
                                    ? "CAST(p.resource_pattern AS INTEGER)"
                                    : "p.resource_pattern";
    const std::string grants = "(SELECT " + pattern + " " + std::string(kGrants) +
                               "WHERE a.user_id = " + binder.bind(visible_to.user_id) +
                               " AND p.resource_type = '" + std::string(resource_type_name(type)) +
                               "' AND p.permission ";
    std::string readable = column + " IN " + grants + "> 0)";
    if (of_all && *of_all >= Permission::kRead) {
        readable = "1";
    } else if (!of_all && visible_to.by_default) {
        readable += " OR " + column + " NOT IN " + grants + "= 0)";
    }
    return "((" + readable + ") AND " + column + " NOT IN " + grants + "< 0)" + own + ")";
}

Result<std::vector<ExperimentId>> visible_experiments(sqlite::Connection& connection,
                                                      const Viewer& visible_to,
                                                      const std::vector<ExperimentId>& ids) {
    std::vector<ExperimentId> visible;
    for (const ExperimentId id : ids) {
        TUNE_TRY(permission, granted(connection, visible_to.user_id, ResourceType::kExperiment,
                                     std::to_string(id)));
        const bool is_readable =
            permission ? *permission >= Permission::kRead : visible_to.by_default;
        if (is_readable || id == visible_to.experiment_id) visible.push_back(id);
    }
    return visible;
}

}  // namespace tune::tracker
