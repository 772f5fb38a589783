// The page's login, and users' own tokens. A login becomes a random cookie that scripts cannot read
// and other sites cannot send; the store holds its SHA-256, so that logging out ends it everywhere.

#include <nlohmann/json.hpp>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/auth/authorization.h"
#include "tracker/auth/token_routes.h"
#include "tracker/auth/users/user_json.h"
#include "tracker/auth/users/user_routes.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kSessionBytes = 32;

std::string set_cookie(const UserParts& parts, const std::string& value, std::int64_t life_ms) {
    const std::string path = parts.cookie_path.empty() ? "/" : parts.cookie_path;
    return parts.gate.cookie_name() + "=" + value + "; Path=" + path +
           "; Max-Age=" + std::to_string(life_ms / 1000) + "; HttpOnly; SameSite=Strict" +
           (parts.is_https ? "; Secure" : "");
}

/// Open to all: the page asks before it knows whether anybody is logged in.
void say_who(const UserParts& parts, const std::shared_ptr<Request>& request,
             const Responder& respond) {
    parts.gate.recognise(request, [parts, request, respond] {
        Json user = nullptr;
        if (const UserPrincipal* const asker = user_of(request->principal))
            user = user_json({asker->user_id, asker->username, {}, asker->is_admin});
        if (std::holds_alternative<OwnerPrincipal>(request->principal))
            user = user_json({.username = "owner", .is_admin = true});
        Response response =
            json_response({{"auth", parts.is_on ? "basic" : "token"}, {"user", std::move(user)}});
        response.headers.emplace_back("Cache-Control", "no-store");
        respond(std::move(response));
    });
}

Result<Response> log_in(const UserParts& parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    TUNE_TRY(password, message.required_text("password"));
    TUNE_TRY(user, parts.gate.verify(username, password));
    if (!user) return Error{Code::kUnauthenticated, "The user name or the password is not right."};
    const std::string session = random_hex(kSessionBytes);
    TUNE_TRY_VOID(parts.store.execute(PermissionCommand(OpenSession{
        hex_encode(sha256(session)), user->user_id, parts.clock.now_ms() + kSessionLife_ms})));
    Response response = json_response({{"user", user_json(*user)}});
    response.headers.emplace_back("Set-Cookie", set_cookie(parts, session, kSessionLife_ms));
    response.headers.emplace_back("Cache-Control", "no-store");
    return response;
}

void answer_login(const UserParts& parts, const std::shared_ptr<Request>& request,
                  const Responder& respond) {
    if (!parts.is_on)
        return respond(error_response(
            {Code::kBadRequest, "Nobody logs in here: start the server with --auth basic."}));
    const bool posted = parts.pool.post(request->remote_address, [parts, request, respond] {
        Result<Response> response = log_in(parts, *request);
        respond(response ? std::move(*response) : error_response(response.error()));
    });
    if (!posted)
        respond(error_response({Code::kRequestLimitExceeded,
                                "Too many logins wait for their passwords to be checked. Try "
                                "again in a second."}));
}

void log_out(const UserParts& parts, const Request& request, const Responder& respond) {
    if (const auto message = Message::read(request); !message)
        return respond(error_response(message.error()));
    Response gone = json_text_response("{}");
    gone.headers.emplace_back("Set-Cookie", set_cookie(parts, "", 0));
    const std::string_view session = cookie_of(request.header("Cookie"), parts.gate.cookie_name());
    if (session.empty()) return respond(std::move(gone));
    parts.store.submit(PermissionCommand(CloseSession{hex_encode(sha256(session))}),
                       [respond, gone](const Result<Outcome>& outcome) {
                           respond(outcome ? gone : error_response(outcome.error()));
                       });
}

// --- users' own tokens ---------------------------------------------------------------------------

/// Whose tokens the call is about. Errors: kPermissionDenied for who came with a token, which could
/// outlive its own end by another one.
Result<std::int64_t> token_owner(const Request& request) {
    const UserPrincipal* const user = user_of(request.principal);
    if (user != nullptr && !user->is_by_token) return user->user_id;
    return Error{Code::kPermissionDenied,
                 "Permission denied: a user who logged in by name and password makes tokens here "
                 "(the owner of the data folder makes them with tune/tokens)"};
}

Result<std::string> create_token(const UserParts& parts, const Request& request) {
    TUNE_TRY(user_id, token_owner(request));
    TUNE_TRY(wanted, read_token_request(request));
    TUNE_TRY(made,
             parts.tokens.create(std::move(wanted.name), wanted.most, wanted.lives_ms, user_id));
    return to_text({{"token", token_json(made.info)}, {"secret", made.token}});
}

Result<std::string> list_tokens(const UserParts& parts, const Request& request) {
    TUNE_TRY(user_id, token_owner(request));
    Json rows = Json::array();
    for (const TokenInfo& token : parts.tokens.list())
        if (token.user_id == user_id) rows.push_back(token_json(token));
    return to_text({{"tokens", std::move(rows)}});
}

Result<std::string> revoke_token(const UserParts& parts, const Request& request) {
    TUNE_TRY(user_id, token_owner(request));
    TUNE_TRY_VOID(parts.tokens.revoke(request.parameter("token_id"), user_id));
    return std::string("{}");
}

}  // namespace

void add_session_routes(Router& router, const UserParts& parts) {
    router.add_api(2,
                   {Method::kGet, Access::kOpen, "/tune/login", Body::kNone, "How one logs in here",
                    [parts](const std::shared_ptr<Request>& request, const Responder& respond) {
                        say_who(parts, request, respond);
                    }});
    router.add_api(2, {Method::kPost, Access::kOpen, "/tune/login", Body::kJson,
                       "A cookie for the page: username!, password!",
                       [parts](const std::shared_ptr<Request>& request, const Responder& respond) {
                           answer_login(parts, request, respond);
                       }});
    router.add_api(
        2, {Method::kPost, Access::kOpen, "/tune/logout", Body::kJson, "Ends the cookie's session",
            [parts](const std::shared_ptr<Request>& request, const Responder& respond) {
                log_out(parts, *request, respond);
            }});
    const auto call = [&](Method method, std::string path, Body body, const char* summary,
                          Result<std::string> (*work)(const UserParts&, const Request&)) {
        router.add_api(2, {method,
                           {Access::kRun, Subject::kNothing},
                           std::move(path),
                           body,
                           summary,
                           read_handler(parts.store, [parts, work](const Request& request) {
                               return work(parts, request);
                           })});
    };
    const std::string tokens = "/tune/users/current/tokens";
    call(Method::kPost, tokens, Body::kJson,
         "Make a token that acts as the user: scope!, name, lives_ms", create_token);
    call(Method::kGet, tokens, Body::kNone, "The user's own tokens", list_tokens);
    call(Method::kDelete, tokens + "/{token_id}", Body::kNone, "Revoke one of them", revoke_token);
}

}  // namespace tune::tracker
