#pragma once
// Users and what they may do, over REST: the calls of MLflow 3.17.2's basic-auth app, as
// mlflow.server.get_app_client("basic-auth", ...) makes them, the calls for permissions of single
// experiments and registered models that clients before 3.17 make, and the login of the page.

#include <string>

#include "tracker/api/http/router.h"
#include "tracker/auth/token_book.h"
#include "tracker/auth/users/password_pool.h"
#include "tracker/auth/users/user_gate.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// All outlive the router's use.
struct UserParts {
    Store& store;
    const UserGate& gate;
    PasswordPool& pool;
    TokenBook& tokens;
    const Clock& clock;
    bool is_on = true;             ///< users log in; otherwise they can only be prepared
    std::string cookie_path = {};  ///< the prefix of the server's paths, or empty
    bool is_https = false;         ///< browsers send the cookie of a login through TLS only
};

/// How long a login of the page lasts.
inline constexpr std::int64_t kSessionLife_ms = 30ll * 24 * 3600 * 1000;
/// MLflow's rule for passwords, and a bound on what is hashed.
inline constexpr std::size_t kPasswordCharsMin = 12;
inline constexpr std::size_t kPasswordBytesMax = 1024;

/// Errors: kInvalidParameterValue for a password that is too short or too long.
[[nodiscard]] Result<void> check_new_password(std::string_view password);

void add_user_routes(Router& router, const UserParts& parts);

// The groups of it, each in its own file.
void add_account_routes(Router& router, const UserParts& parts);
void add_grant_routes(Router& router, const UserParts& parts);
void add_role_routes(Router& router, const UserParts& parts);
void add_session_routes(Router& router, const UserParts& parts);

}  // namespace tune::tracker
