#include "tuner/api/attempt_authenticator.h"

#include <utility>

#include "base/text/text.h"
#include "tracker/api/http/access.h"
#include "tuner/study/registry/attempt_credentials.h"

namespace tune::tuner {
namespace {

constexpr std::string_view kScheme = "bearer ";

}  // namespace

tracker::Principal AttemptAuthenticator::authenticate(
    const tracker::Credentials& credentials) const {
    const std::string_view authorization = credentials.authorization;
    if (authorization.size() <= kScheme.size() ||
        lower_ascii(authorization.substr(0, kScheme.size())) != kScheme)
        return tracker::AnonymousPrincipal();
    std::optional<AttemptStanding> standing =
        credentials_.find(trimmed(authorization.substr(kScheme.size())));
    if (!standing) return tracker::AnonymousPrincipal();
    return tracker::AttemptPrincipal{.run_id = std::move(standing->run_id),
                                     .experiment_id = standing->experiment_id,
                                     .attempt = standing->attempt,
                                     .current = std::move(standing->current)};
}

Result<void> AttemptAuthenticator::check_metrics(const tracker::Principal& principal,
                                                 std::string_view run_id,
                                                 std::span<const tracker::Metric> metrics) const {
    const auto* attempt = std::get_if<tracker::AttemptPrincipal>(&principal);
    if (attempt != nullptr && attempt->run_id == run_id) return {};
    // An agent that took a trial over has no credential of it, and reports for it all the same.
    const auto* token = std::get_if<tracker::TokenPrincipal>(&principal);
    const bool is_agent = token != nullptr && token->most >= tracker::Access::kAgent;
    if (is_agent || std::holds_alternative<tracker::OwnerPrincipal>(principal)) return {};
    const std::optional<std::string> objection = credentials_.objection(
        run_id, attempt != nullptr ? std::string_view(attempt->run_id) : std::string_view(),
        metrics);
    if (objection) return Error{Code::kResourceConflict, *objection};
    return {};
}

}  // namespace tune::tuner
