#pragma once
// What a route needs of who asks. Every route declares it, and the router checks it in one place,
// before any byte of the body is read (Router::resolve).

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "tracker/api/http/principal.h"

namespace tune::tracker {

/// From what everybody may to what only the owner of the data folder may.
enum class Access : std::uint8_t {
    kOpen,   ///< nothing: the page's files, whether the server lives
    kRead,   ///< look at what is stored
    kByUrl,  ///< nothing but the URL, which nobody can guess: parts of an upload
    kWrite,  ///< log, tag, rename, delete: what MLflow's own server lets clients do
    kAgent,  ///< take trials and run their commands
    kRun,    ///< start, stop or change what runs
    kAdmin,  ///< the whole data folder: backups, removal for good
};

/// "open", "read", ...
[[nodiscard]] std::string_view access_name(Access access);

/// The access of one route. There is no default: a route that declares none does not compile.
class Needs {
public:
    // NOLINTNEXTLINE(google-explicit-constructor): {Method::kGet, Access::kRead, "/x", ...}
    constexpr Needs(Access access) : access_(access) {}
    [[nodiscard]] constexpr Access access() const { return access_; }
    /// Whether the route may change something. Says nothing of a HEAD or OPTIONS request.
    [[nodiscard]] constexpr bool is_write() const { return access_ > Access::kRead; }

private:
    Access access_;
};

/// What requests without a credential may do where nothing else is said, on loopback: all that
/// clients of MLflow's own server may.
inline constexpr Access kAnonymousOnLoopback = Access::kWrite;

/// Whether `principal` may use a route that needs `access`. kOpen and kByUrl are everybody's; a
/// request without a credential reaches up to `anonymous`, an attempt up to kWrite, a token as far
/// as it says, the owner everything. Errors: kUnauthenticated without a credential,
/// kPermissionDenied for one that does not reach. An attempt that is over passes for what it could
/// do while it was current; check_may_write() refuses it what changes something.
[[nodiscard]] Result<void> check_access(const Principal& principal, Access access,
                                        Access anonymous);

}  // namespace tune::tracker
