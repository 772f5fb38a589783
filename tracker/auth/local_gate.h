#pragma once
// Who asks, on a server of one user: the owner by the folder's token or the page's cookie, others
// by a token that the owner made, an attempt by its credential, else nobody in particular.

#include <string>

#include "tracker/api/http/router.h"
#include "tracker/auth/attempt_limits.h"
#include "tracker/auth/page_login.h"
#include "tracker/auth/token_book.h"

namespace tune::tracker {

/// What those may do who bring no credential.
enum class Guard {
    kOff,       ///< everything; only attempts that are over are refused
    kLoopback,  ///< what clients of MLflow's own server may
    kClosed,    ///< nothing: beyond loopback
};

/// Thread-safe; no call blocks. An attempt keeps within its limits whatever the guard is.
class LocalGate final : public Authenticator {
public:
    /// Who is known, and what attempts may change. All outlive the gate.
    struct Parts {
        const PageLogin& login;
        const TokenBook& tokens;
        const Authenticator& attempts;  ///< knows the credentials of attempts
        const AttemptLimits& limits;
    };
    LocalGate(std::string token, const Parts& parts, Guard guard);

    [[nodiscard]] Principal authenticate(const Credentials& credentials) const override;
    /// The same, and the tokens of users, who are nobody here.
    [[nodiscard]] Principal identify(const Credentials& credentials) const;
    [[nodiscard]] Result<void> check_access(const Principal& principal,
                                            Access access) const override;
    [[nodiscard]] std::optional<Result<void>> admit_now(Request& request,
                                                        const Needs& needs) const override;
    void admit(const std::shared_ptr<Request>& request, const Needs& needs,
               std::function<void(Result<void>)> done) const override;
    [[nodiscard]] Result<void> check_metrics(const Principal& principal, std::string_view run_id,
                                             std::span<const Metric> metrics) const override;

    /// The limits of attempts, the same for whoever asks more than this gate does.
    [[nodiscard]] const AttemptLimits& limits() const { return limits_; }

private:
    const std::string token_;
    const PageLogin& login_;
    const TokenBook& tokens_;
    const Authenticator& attempts_;
    const AttemptLimits& limits_;
    const Guard guard_;
};

/// POST /api/2.0/tune/page-codes: a code that opens the page once. `login` outlives the router's
/// use.
void add_page_login_routes(Router& router, PageLogin& login);

}  // namespace tune::tracker
