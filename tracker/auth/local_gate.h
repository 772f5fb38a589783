#pragma once
// Who asks, on a server of one user: the owner by the folder's token or the page's cookie, others
// by a token that the owner made, an attempt by its credential, else nobody in particular.

#include <string>

#include "tracker/api/http/router.h"
#include "tracker/auth/page_login.h"
#include "tracker/auth/token_book.h"

namespace tune::tracker {

/// What those may do who bring no credential.
enum class Guard {
    kOff,       ///< everything; only attempts that are over are refused
    kLoopback,  ///< what clients of MLflow's own server may
    kClosed,    ///< nothing: beyond loopback
};

/// Thread-safe; no call blocks.
class LocalGate final : public Authenticator {
public:
    /// `attempts` knows the credentials of attempts. All three outlive the gate.
    LocalGate(std::string token, const PageLogin& login, const TokenBook& tokens,
              const Authenticator& attempts, Guard guard);

    [[nodiscard]] Principal authenticate(const Credentials& credentials) const override;
    /// The same, and the tokens of users, who are nobody here.
    [[nodiscard]] Principal identify(const Credentials& credentials) const;
    [[nodiscard]] Result<void> check_access(const Principal& principal,
                                            Access access) const override;
    [[nodiscard]] std::optional<Result<void>> admit_now(Request& request,
                                                        const Needs& needs) const override;
    [[nodiscard]] Result<void> check_metrics(const Principal& principal, std::string_view run_id,
                                             std::span<const Metric> metrics) const override;

private:
    const std::string token_;
    const PageLogin& login_;
    const TokenBook& tokens_;
    const Authenticator& attempts_;
    const Guard guard_;
};

/// POST /api/2.0/tune/page-codes: a code that opens the page once. `login` outlives the router's
/// use.
void add_page_login_routes(Router& router, PageLogin& login);

}  // namespace tune::tracker
