#include "tuner/cli/access/listening.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/system/address.h"
#include "base/text/time_text.h"

namespace tune::cli {
namespace {

/// Beyond loopback, who leaves out authentication or encryption says so by name.
Result<tracker::Guard> guard_of(const ListenFlags& flags, const std::string& address) {
    const bool is_off = flags.auth == "off";
    if (is_loopback(address))
        return is_off || flags.insecure_no_auth ? tracker::Guard::kOff : tracker::Guard::kLoopback;
    const std::string reached = "--host " + flags.host + " can be reached from other machines";
    if (is_off && !flags.insecure_no_auth)
        return Error{Code::kInvalidParameterValue,
                     reached +
                         ", from which anybody could run commands here: leave --auth off out, "
                         "or say --insecure-no-auth too"};
    if (flags.tls.certificate.empty() && !flags.insecure_no_tls)
        return Error{Code::kInvalidParameterValue,
                     reached +
                         ", and without TLS everybody on the way reads the tokens: give "
                         "--tls-cert and --tls-key, listen on loopback behind a proxy with TLS, "
                         "or say --insecure-no-tls"};
    return flags.insecure_no_auth ? tracker::Guard::kOff : tracker::Guard::kClosed;
}

/// Null: plain HTTP.
Result<std::shared_ptr<tracker::TlsIdentity>> identity_of(const ServerTls& tls) {
    if (tls.certificate.empty()) return std::shared_ptr<tracker::TlsIdentity>();
    return tracker::TlsIdentity::load({.certificate = tls.certificate,
                                       .key = tls.key,
                                       .client_authority = tls.client_authority,
                                       .is_client_required = tls.is_client_required});
}

std::string end_text(const tracker::TlsIdentity& identity) {
    return utc_text(identity.expires_s() * 1000, "%Y-%m-%d %H:%M UTC");
}

void warn_of_end(const tracker::TlsIdentity& identity) {
    if (identity.expires_s() * 1000 < SystemClock().now_ms())
        log_warning("the TLS certificate ended on " + end_text(identity) +
                    ": clients refuse it; replace its files, the server reads them by itself");
}

}  // namespace

Result<Listening> listening_of(const ListenFlags& flags) {
    TUNE_TRY(address, tracker::resolve_host(flags.host));
    TUNE_TRY(guard, guard_of(flags, address));
    TUNE_TRY(tls, identity_of(flags.tls));
    return Listening{.address = std::move(address), .guard = guard, .tls = std::move(tls)};
}

tracker::ServerOptions server_options_of(const ListenFlags& flags, const Listening& listening,
                                         std::uint16_t port) {
    return {.host = flags.host, .address = listening.address, .port = port, .tls = listening.tls};
}

void warn_of(const Listening& listening) {
    if (listening.guard == tracker::Guard::kOff)
        log_warning(
            "there is no authentication: whoever reaches this address, also other users of this "
            "machine, can start studies, and their commands run as the users of the agents");
    if (listening.tls) warn_of_end(*listening.tls);
}

void read_anew(tracker::TlsIdentity& identity) {
    if (const Result<void> read = identity.reload(); !read)
        return log_warning("the TLS certificate in use stays: " + read.error().message);
    log_info("the TLS certificate was read anew; it is valid until " + end_text(identity));
    warn_of_end(identity);
}

}  // namespace tune::cli
