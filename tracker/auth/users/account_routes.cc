// users/*: accounts. Whoever changes the own password says the old one again, so that a page that
// was left open is not enough.

#include <nlohmann/json.hpp>

#include "base/crypto/password.h"
#include "base/text/utf8.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/auth/users/user_json.h"
#include "tracker/auth/users/user_routes.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

using RequestPtr = std::shared_ptr<Request>;
using Work = Result<std::string> (*)(const UserParts&, const Request&);

/// Runs `work`, which hashes, on the pool.
Handler hashing_handler(const UserParts& parts, Work work) {
    return [parts, work](const RequestPtr& request, const Responder& respond) {
        const bool posted = parts.pool.post(
            request->remote_address,
            [parts, work, request, respond] { respond(response_of(work(parts, *request))); });
        if (!posted)
            respond(error_response({Code::kRequestLimitExceeded,
                                    "Too many passwords wait to be checked. Try again in a "
                                    "second."}));
    };
}

Handler reading_handler(const UserParts& parts, Work work) {
    return read_handler(parts.store,
                        [parts, work](const Request& request) { return work(parts, request); });
}

Result<void> check_both(const std::string& username, const std::string& password) {
    if (username.empty() || password.empty())
        return Error{Code::kInvalidParameterValue, "Username and password cannot be empty."};
    return check_new_password(password);
}

/// A field that may be empty, but not left out.
Result<std::string> given_text(const Message& message, const char* name) {
    TUNE_TRY(text, message.optional_text(name));
    if (!text) return message.required_text(name);
    return std::move(*text);
}

Result<std::string> create(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, given_text(message, "username"));
    TUNE_TRY(password, given_text(message, "password"));
    TUNE_TRY_VOID(check_both(username, password));
    TUNE_TRY(hash, hash_password(password));
    TUNE_TRY(outcome, parts.store.execute(
                          PermissionCommand(CreateUser{std::move(username), std::move(hash)})));
    const User& user = std::get<User>(std::get<PermissionOutcome>(outcome));
    return to_text({{"user", user_json(user)}});
}

Result<std::string> get(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(user, parts.store.snapshot([&](sqlite::Connection& connection) {
        return require_user(connection, username);
    }));
    return to_text({{"user", user_json(user)}});
}

/// Roles of others are for who manages them.
Result<std::string> list(const UserParts& parts, const Request& request) {
    const UserPrincipal* const asker = user_of(request.principal);
    return parts.store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
        bool sees_all = asker == nullptr || asker->is_admin;
        if (!sees_all) {
            TUNE_TRY(manages, is_workspace_admin(connection, asker->user_id));
            sees_all = manages;
        }
        TUNE_TRY(users, list_users(connection));
        Json rows = Json::array();
        for (const User& user : users) {
            Json row = user_json(user);
            row["roles"] = Json::array();
            if (sees_all || user.user_id == asker->user_id) {
                TUNE_TRY(roles, list_roles(connection, user.user_id));
                for (const Role& role : roles) row["roles"].push_back(role_json(role));
            }
            rows.push_back(std::move(row));
        }
        return to_text({{"users", std::move(rows)}});
    });
}

/// The owner of the data folder is no user, but may do what an admin may.
Result<std::string> current(const UserParts& parts, const Request& request) {
    User user{.username = "owner", .is_admin = true};
    if (const UserPrincipal* const asker = user_of(request.principal))
        user = {asker->user_id, asker->username, {}, asker->is_admin};
    return to_text({{"user", user_json(user)}, {"is_basic_auth", parts.is_on}});
}

/// Errors: kInvalidParameterValue unless the old password is right, and another one.
Result<void> check_own_password(const UserParts& parts, const Message& message,
                                const std::string& username, const std::string& password) {
    TUNE_TRY(old_password, message.text("current_password"));
    if (old_password.empty())
        return Error{Code::kInvalidParameterValue,
                     "Current password is required when changing your own password."};
    TUNE_TRY(user, parts.gate.verify(username, old_password));
    if (!user) return Error{Code::kInvalidParameterValue, "Current password does not match."};
    if (password == old_password)
        return Error{Code::kInvalidParameterValue,
                     "New password must differ from the current password."};
    return {};
}

Result<std::string> update_password(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(password, given_text(message, "password"));
    const UserPrincipal* const asker = user_of(request.principal);
    if (asker != nullptr && asker->username == username)
        TUNE_TRY_VOID(check_own_password(parts, message, username, password));
    TUNE_TRY_VOID(check_new_password(password));
    TUNE_TRY(hash, hash_password(password));
    TUNE_TRY_VOID(parts.store.execute(
        PermissionCommand(UpdateUser{.username = username, .password_hash = hash})));
    return std::string("{}");
}

Result<Command> parse_update_admin(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(is_admin, message.boolean("is_admin"));
    if (!is_admin) return message.required_text("is_admin").error();
    return Command(PermissionCommand(UpdateUser{.username = username, .is_admin = is_admin}));
}

Result<Command> parse_delete(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    const UserPrincipal* const asker = user_of(request.principal);
    if (asker != nullptr && asker->username == username)
        return Error{Code::kBadRequest,
                     "Users cannot delete their own account. Ask another admin to delete this "
                     "user instead."};
    return Command(PermissionCommand(DeleteUser{std::move(username)}));
}

}  // namespace

Result<void> check_new_password(std::string_view password) {
    if (count_characters(password) < kPasswordCharsMin)
        return Error{Code::kInvalidParameterValue, "Password must be at least 12 characters."};
    if (password.size() > kPasswordBytesMax)
        return Error{
            Code::kInvalidParameterValue,
            "Password must be at most " + std::to_string(kPasswordBytesMax) + " bytes long."};
    if (password == "password1234")
        return Error{Code::kInvalidParameterValue,
                     "This is the password that older MLflow servers came with; take another."};
    return {};
}

void add_account_routes(Router& router, const UserParts& parts) {
    const std::string users = "/mlflow/users/";
    // Not kRead: where there is no login, names of users are not for everybody.
    constexpr Needs kLook = {Access::kRun, Subject::kNothing};
    router.add_api(2, {Method::kPost, Access::kAdmin, users + "create", Body::kJson,
                       "Make a user: username!, password!", hashing_handler(parts, create)});
    router.add_api(2, {Method::kGet,
                       {Access::kRun, Subject::kSelf},
                       users + "get",
                       Body::kNone,
                       "username!",
                       reading_handler(parts, get)});
    router.add_api(2, {Method::kGet, kLook, users + "list", Body::kNone, "All users, with roles",
                       reading_handler(parts, list)});
    router.add_api(2, {Method::kGet, kLook, users + "current", Body::kNone, "Who asks",
                       reading_handler(parts, current)});
    router.add_api(2, {Method::kPatch,
                       {Access::kRun, Subject::kSelf},
                       users + "update-password",
                       Body::kJson,
                       "username!, password!, current_password (of one's own)",
                       hashing_handler(parts, update_password)});
    router.add_api(2, {Method::kPatch, Access::kAdmin, users + "update-admin", Body::kJson,
                       "username!, is_admin!", write_handler(parts.store, parse_update_admin)});
    router.add_api(2, {Method::kDelete, Access::kAdmin, users + "delete", Body::kNone, "username!",
                       write_handler(parts.store, parse_delete)});
}

void add_user_routes(Router& router, const UserParts& parts) {
    add_account_routes(router, parts);
    add_grant_routes(router, parts);
    add_role_routes(router, parts);
    add_session_routes(router, parts);
}

}  // namespace tune::tracker
