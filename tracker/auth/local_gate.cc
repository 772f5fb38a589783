#include "tracker/auth/local_gate.h"

#include <nlohmann/json.hpp>

#include "base/crypto/digest.h"
#include "base/text/text.h"
#include "tracker/api/http/message.h"
#include "tracker/auth/authorization.h"

namespace tune::tracker {

LocalGate::LocalGate(std::string token, const Parts& parts, Guard guard)
    : token_(std::move(token)),
      login_(parts.login),
      tokens_(parts.tokens),
      attempts_(parts.attempts),
      limits_(parts.limits),
      guard_(guard) {}

Principal LocalGate::authenticate(const Credentials& credentials) const {
    Principal principal = identify(credentials);
    // A user's token is nobody's where there are no users.
    const auto* token = std::get_if<TokenPrincipal>(&principal);
    if (token == nullptr || token->user_id == 0) return principal;
    if (!credentials.cookie.empty() && login_.is_known(credentials.cookie)) return OwnerPrincipal{};
    return AnonymousPrincipal{};
}

Principal LocalGate::identify(const Credentials& credentials) const {
    if (!credentials.authorization.empty()) {
        const std::string_view token = bearer_of(credentials.authorization);
        if (!token.empty() && equal_secrets(token, token_)) return OwnerPrincipal{};
        if (std::optional<TokenPrincipal> known = tokens_.find(token)) return std::move(*known);
        Principal principal = attempts_.authenticate(credentials);
        if (!std::holds_alternative<AnonymousPrincipal>(principal)) return principal;
    }
    if (!credentials.cookie.empty() && login_.is_known(credentials.cookie)) return OwnerPrincipal{};
    return AnonymousPrincipal{};
}

Result<void> LocalGate::check_access(const Principal& principal, Access access) const {
    if (guard_ == Guard::kOff) return {};
    return tracker::check_access(principal, access,
                                 guard_ == Guard::kLoopback ? kAnonymousOnLoopback : Access::kOpen);
}

std::optional<Result<void>> LocalGate::admit_now(Request& request, const Needs& needs) const {
    if (needs.subject() == Subject::kTopics &&
        std::holds_alternative<TokenPrincipal>(request.principal)) {
        const std::string_view token = bearer_of(request.header("Authorization"));
        request.stands = [this, id = std::string(TokenBook::id_of(token))] {
            return tokens_.has(id);
        };
    }
    return limits_.check(request, needs, false);
}

void LocalGate::admit(const std::shared_ptr<Request>& request, const Needs& needs,
                      std::function<void(Result<void>)> done) const {
    limits_.check_later(request, needs, std::move(done));
}

Result<void> LocalGate::check_metrics(const Principal& principal, std::string_view run_id,
                                      std::span<const Metric> metrics) const {
    return attempts_.check_metrics(principal, run_id, metrics);
}

void add_page_login_routes(Router& router, PageLogin& login) {
    router.add_api(
        2, {Method::kPost, Access::kAdmin, "/tune/page-codes", Body::kJson,
            "A code that opens the page, once, as the owner's",
            [&login](const std::shared_ptr<Request>& request, const Responder& respond) {
                const Result<Message> message = Message::read(*request);
                if (!message) return respond(error_response(message.error()));
                // What the code gives would outlast the user.
                if (user_of(request->principal) != nullptr)
                    return respond(error_response(
                        {Code::kPermissionDenied, "Permission denied: users log in on the page"}));
                respond(json_response({{"code", login.new_code()}}));
            }});
}

}  // namespace tune::tracker
