#include "tracker/auth/token_routes.h"

#include <nlohmann/json.hpp>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"

namespace tune::tracker {
namespace {

/// Ten years: more is "for ever", which is said by leaving it out.
constexpr std::int64_t kTokenLifeMax_ms = 10ll * 366 * 24 * 3600 * 1000;

Result<std::string> create(TokenBook& book, const Request& request) {
    TUNE_TRY(wanted, read_token_request(request));
    TUNE_TRY(made, book.create(std::move(wanted.name), wanted.most, wanted.lives_ms,
                               owner_of(request.principal)));
    return to_text({{"token", token_json(made.info)}, {"secret", made.token}});
}

Result<std::string> list(TokenBook& book, const Request&) {
    Json tokens = Json::array();
    for (const TokenInfo& token : book.list()) tokens.push_back(token_json(token));
    return to_text({{"tokens", std::move(tokens)}});
}

Result<std::string> revoke(TokenBook& book, const Request& request) {
    TUNE_TRY_VOID(book.revoke(request.parameter("token_id")));
    return std::string("{}");
}

}  // namespace

Result<TokenRequest> read_token_request(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(scope, message.required_text("scope"));
    TUNE_TRY(name, message.text("name"));
    TUNE_TRY(lives_ms, message.integer_at_most("lives_ms", kTokenLifeMax_ms));
    const std::optional<Access> most = scope_of(scope);
    if (!most)
        return Error{Code::kInvalidParameterValue,
                     "the scope of a token is 'read', 'agent' or 'user', not '" + scope + "'"};
    if (lives_ms && *lives_ms <= 0)
        return Error{Code::kInvalidParameterValue, "lives_ms must be above 0"};
    return TokenRequest{std::move(name), *most, lives_ms.value_or(0)};
}

Json token_json(const TokenInfo& token) {
    Json json = {{"token_id", token.id},
                 {"name", token.name},
                 {"scope", scope_name(token.most)},
                 {"created_ms", token.created_ms}};
    if (token.expires_ms != 0) json["expires_ms"] = token.expires_ms;
    return json;
}

void add_token_routes(Router& router, Store& store, TokenBook& book) {
    const auto call = [&store, &book](Result<std::string> (*work)(TokenBook&, const Request&)) {
        return read_handler(store,
                            [&book, work](const Request& request) { return work(book, request); });
    };
    router.add_api(2, {Method::kPost, Access::kAdmin, "/tune/tokens", Body::kJson,
                       "Make a token: scope! (read, agent, user), name, lives_ms", call(create)});
    router.add_api(2, {Method::kGet, Access::kAdmin, "/tune/tokens", Body::kNone, "List the tokens",
                       call(list)});
    router.add_api(2, {Method::kDelete, Access::kAdmin, "/tune/tokens/{token_id}", Body::kNone,
                       "Revoke a token", call(revoke)});
}

}  // namespace tune::tracker
