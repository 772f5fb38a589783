#pragma once
// Where a server of this process listens, and what it asks of those who can reach it there: the one
// rule for `tune server` and `tune run`.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "tracker/auth/local_gate.h"
#include "tracker/http/server.h"
#include "tracker/http/tls/tls_identity.h"
#include "tuner/cli/options.h"

namespace tune::cli {

/// What the flags come to.
struct Listening {
    std::string address = {};  ///< what the host's name stands for: the guard was chosen for it
    tracker::Guard guard = tracker::Guard::kClosed;
    std::shared_ptr<tracker::TlsIdentity> tls = {};  ///< null: plain HTTP
};

/// Reads the certificate. Whether other machines reach the server is decided by the address that
/// the host's name stands for, which is then the one listened on. Errors: kInvalidParameterValue,
/// with what to say, where other machines do and authentication or encryption is left out without
/// being told so by name; a host that is no address and no name; what is wrong with the
/// certificate.
[[nodiscard]] Result<Listening> listening_of(const ListenFlags& flags);

/// The same as options of the server, with the port.
[[nodiscard]] tracker::ServerOptions server_options_of(const ListenFlags& flags,
                                                       const Listening& listening,
                                                       std::uint16_t port);

/// Says on standard error what the owner should know: that there is no authentication, that the
/// certificate's time is over.
void warn_of(const Listening& listening);

/// Puts the certificate's new files into use, or says why the old ones stay.
void read_anew(tracker::TlsIdentity& identity);

}  // namespace tune::cli
