#include "tracker/api/http/access.h"

namespace tune::tracker {
namespace {

Error out_of_reach(const std::string& credential, Access access) {
    return {Code::kPermissionDenied, "this call needs a token of scope '" +
                                         std::string(access_name(access)) + "'; " + credential +
                                         " does not reach so far"};
}

}  // namespace

std::string_view access_name(Access access) {
    switch (access) {
        case Access::kOpen: return "open";
        case Access::kRead: return "read";
        case Access::kByUrl: return "by url";
        case Access::kWrite: return "write";
        case Access::kAgent: return "agent";
        case Access::kRun: return "run";
        case Access::kAdmin: return "admin";
    }
    return "";
}

Result<void> check_access(const Principal& principal, Access access, Access anonymous) {
    if (access == Access::kOpen || access == Access::kByUrl) return {};
    if (std::holds_alternative<OwnerPrincipal>(principal)) return {};
    if (const auto* token = std::get_if<TokenPrincipal>(&principal)) {
        if (access <= token->most) return {};
        return out_of_reach("the token '" + token->name + "'", access);
    }
    if (std::holds_alternative<ClaimedPrincipal>(principal)) return {};
    if (const auto* user = std::get_if<UserPrincipal>(&principal)) {
        if (access <= user->most) return {};
        return Error{Code::kPermissionDenied, "Permission denied: user '" + user->username +
                                                  "' asked with what reaches no further than '" +
                                                  std::string(access_name(user->most)) +
                                                  "', and this call needs '" +
                                                  std::string(access_name(access)) + "'"};
    }
    if (const auto* attempt = std::get_if<AttemptPrincipal>(&principal)) {
        // The token of an attempt that is over cannot be told from one that was made up.
        if (access > anonymous) TUNE_TRY_VOID(check_may_write(principal));
        if (access <= Access::kWrite) return {};
        return out_of_reach("the credential of attempt " + std::to_string(attempt->attempt) +
                                " of run " + attempt->run_id,
                            access);
    }
    if (access <= anonymous) return {};
    return Error{Code::kUnauthenticated,
                 "this call needs a token of this server: send the header 'Authorization: Bearer "
                 "TOKEN' with the content of the file 'token' in the server's data folder "
                 "(programs of tune take it from TUNE_TOKEN, MLflow's from "
                 "MLFLOW_TRACKING_TOKEN), or open the page by the address that `tune open` "
                 "prints"};
}

}  // namespace tune::tracker
