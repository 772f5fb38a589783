#include "tracker/api/http/principal.h"

#include "tracker/api/http/access.h"
#include "tracker/api/http/http_types.h"

namespace tune::tracker {

const AttemptPrincipal* current_attempt(const Principal& principal) {
    const auto* attempt = std::get_if<AttemptPrincipal>(&principal);
    return attempt != nullptr && attempt->is_current() ? attempt : nullptr;
}

Result<void> Authenticator::check_access(const Principal& principal, Access access) const {
    return tracker::check_access(principal, access, kAnonymousOnLoopback);
}

void Authenticator::prove(const std::shared_ptr<Request>&, Access,
                          std::function<void(Result<void>)> done) const {
    done({});
}

std::optional<Result<void>> Authenticator::admit_now(Request&, const Needs&) const {
    return Result<void>();
}

void Authenticator::admit(const std::shared_ptr<Request>&, const Needs&,
                          std::function<void(Result<void>)> done) const {
    done({});
}

std::string_view Authenticator::challenge(bool) const {
    return "Bearer realm=\"tune\"";
}

const UserPrincipal* user_of(const Principal& principal) {
    return std::get_if<UserPrincipal>(&principal);
}

std::int64_t owner_of(const Principal& principal) {
    const UserPrincipal* const user = user_of(principal);
    return user != nullptr ? user->user_id : 0;
}

Result<void> check_may_write(const Principal& principal) {
    const auto* attempt = std::get_if<AttemptPrincipal>(&principal);
    if (attempt == nullptr || attempt->is_current()) return {};
    return Error{Code::kResourceConflict,
                 "attempt " + std::to_string(attempt->attempt) + " of run " + attempt->run_id +
                     " is not the current one: it has ended or was given to another process, so "
                     "nothing of it is written any more; end this process"};
}

}  // namespace tune::tracker
