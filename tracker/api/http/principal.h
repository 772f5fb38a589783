#pragma once
// Who asks. Every request carries a principal; the router fills it in, once, from the request's
// credentials (Router::set_authenticator), and refuses in one place what it may not do.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// No credential that this server knows. On loopback such a client may do what MLflow's own server
/// lets everybody do.
struct AnonymousPrincipal {};

/// One attempt of a trial, by the credential that was made for it.
struct AttemptPrincipal {
    std::string run_id = {};         ///< the trial's run
    ExperimentId experiment_id = 0;  ///< the study's; 0 where the attempt is over
    int attempt = 0;
    /// Turns false, for good and at any moment, when the attempt ends or its lease is lost. Never
    /// null.
    std::shared_ptr<const std::atomic<bool>> current = {};

    [[nodiscard]] bool is_current() const { return current->load(std::memory_order_acquire); }
};

/// Whoever holds the token of the data folder, or calls from within the server's own process.
struct OwnerPrincipal {};

enum class Access : std::uint8_t;  // tracker/api/http/access.h

/// Whoever holds a token that the owner made for something.
struct TokenPrincipal {
    std::string name = {};
    Access most = {};          ///< what it reaches
    std::int64_t user_id = 0;  ///< a user's own token acts as that user; 0: the owner made it
};

/// A user of this server, by login, session or own token.
struct UserPrincipal {
    std::int64_t user_id = 0;
    std::string username = {};
    bool is_admin = false;
    Access most = {};  ///< how far the credential reaches
    bool is_by_token = false;
};

/// Who says to be a user. Whether it is so takes a slow hash or a look into the store, so it is
/// found out before the body is read, not on the network thread (Authenticator::prove).
struct ClaimedPrincipal {
    std::string proof_key = {};  ///< the same for the same credential; no secret can be read off it
    std::string username = {};   ///< of a login
    std::string password = {};   ///< of a login
    std::string session_sha256 = {};
    std::int64_t user_id = 0;  ///< of a token
    Access most = {};
};

using Principal = std::variant<AnonymousPrincipal, AttemptPrincipal, OwnerPrincipal, TokenPrincipal,
                               UserPrincipal, ClaimedPrincipal>;

/// What a request says about who sends it: the values of these headers, or empty.
struct Credentials {
    std::string_view authorization = {};
    std::string_view cookie = {};
};

class Needs;  // tracker/api/http/access.h
struct Request;

/// Knows the credentials. All methods from any thread, on network threads: they compute, take no
/// lock that is held for long, and do not fail.
class Authenticator {
public:
    virtual ~Authenticator() = default;

    /// A Bearer token or Basic login that this server did not make is AnonymousPrincipal and no
    /// error: it belongs to a proxy in front, which passes it through, or to another server that
    /// the same client talks to.
    [[nodiscard]] virtual Principal authenticate(const Credentials& credentials) const = 0;

    /// Whether `principal` may use a route that needs `access`: the free check_access() with
    /// kAnonymousOnLoopback, where nothing else is said. Errors: those of it.
    [[nodiscard]] virtual Result<void> check_access(const Principal& principal,
                                                    Access access) const;

    /// Finds out whether a ClaimedPrincipal is who it says to be, and may use a route that needs
    /// `access`; puts who it is into the request. `done` is called once, from any thread, before
    /// the body is read. Errors: kUnauthenticated; those of check_access(); kRequestLimitExceeded
    /// where too many wait. REQUIRES: the request's principal is one.
    virtual void prove(const std::shared_ptr<Request>& request, Access access,
                       std::function<void(Result<void>)> done) const;

    /// Whether the request, which resolve() let pass and whose body is there, may be answered. A
    /// decision that takes no time, or nothing where it takes admit(). May put who asks, and what
    /// they see, into the request.
    [[nodiscard]] virtual std::optional<Result<void>> admit_now(Request& request,
                                                                const Needs& needs) const;
    /// The same with the time it takes: `done` is called once, from any thread.
    /// REQUIRES: admit_now() had no decision.
    virtual void admit(const std::shared_ptr<Request>& request, const Needs& needs,
                       std::function<void(Result<void>)> done) const;

    /// The value of WWW-Authenticate of a 401. A browser's script must not be asked by the browser
    /// itself, which then remembers the login for good.
    [[nodiscard]] virtual std::string_view challenge(bool is_from_page) const;

    /// Whether `principal` may log these metrics to the run now. Errors: kResourceConflict for a
    /// run whose metrics decide about something and come from one writer only.
    [[nodiscard]] virtual Result<void> check_metrics(const Principal& principal,
                                                     std::string_view run_id,
                                                     std::span<const Metric> metrics) const = 0;
};

/// The user who asks, or nullptr.
[[nodiscard]] const UserPrincipal* user_of(const Principal& principal);
/// The same user's id, who will manage what is made; 0: nobody in particular.
[[nodiscard]] std::int64_t owner_of(const Principal& principal);

/// The attempt that asks, while it is the trial's current one; nullptr for anybody else.
[[nodiscard]] const AttemptPrincipal* current_attempt(const Principal& principal);

/// Errors: kResourceConflict for an attempt that is no longer its trial's current one.
[[nodiscard]] Result<void> check_may_write(const Principal& principal);

}  // namespace tune::tracker
