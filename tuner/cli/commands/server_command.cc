// `tune server`: options into a server, and the loop until a signal ends it.
//
// Beyond loopback nothing is open by omission: a server without authentication or encryption has to
// be asked for by name, otherwise it does not start. Certificates are read again when their files
// change; a new one that is not usable is reported and the old one stays.

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/system/file.h"
#include "base/text/text.h"
#include "base/version.h"
#include "tracker/http/tls/tls_identity.h"
#include "tuner/cli/access/listening.h"
#include "tuner/cli/local_server.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/config/study_config.h"

namespace tune::cli {

static_assert(ServerCommand{}.connections_per_client == tracker::kConnectionsPerClientMax);
namespace {

Result<tracker::DeliveryOptions> webhook_options(const ServerCommand& options) {
    TUNE_TRY(timeout_ms, tuner::parse_duration_ms(options.webhook_timeout));
    TUNE_TRY(backoff_ms, tuner::parse_duration_ms(options.webhook_backoff));
    constexpr std::int64_t kMax_ms = 600'000;
    if (timeout_ms <= 0 || timeout_ms > kMax_ms || backoff_ms < 0 || backoff_ms > kMax_ms)
        return Error{Code::kInvalidParameterValue,
                     "--webhook-timeout and --webhook-backoff must be at most 10 minutes, and the "
                     "timeout above 0"};
    tracker::DeliveryOptions webhooks;
    webhooks.post.policy = {.allow_private = options.webhook_allow_private,
                            .allow_http = options.webhook_allow_http};
    webhooks.post.timeout_ms = static_cast<int>(timeout_ms);
    webhooks.post.ca_file = options.webhook_ca;
    webhooks.retries_max = options.webhook_retries;
    webhooks.backoff_ms = static_cast<int>(backoff_ms);
    return webhooks;
}

/// The first admin's password: of the file, or of the environment; empty without either.
Result<std::string> admin_password(const ServerCommand& options) {
    if (!options.admin_password_file.empty()) {
        TUNE_TRY(text, read_file(options.admin_password_file, 4096));
        const std::string_view password = trimmed(text);
        if (password.empty())
            return Error{Code::kInvalidParameterValue,
                         options.admin_password_file + " holds no password"};
        return std::string(password);
    }
    const char* const given = std::getenv("TUNE_ADMIN_PASSWORD");
    return std::string(given != nullptr ? given : "");
}

Result<std::optional<UserOptions>> user_options(const ServerCommand& options) {
    if (options.listen.auth != "basic") return std::optional<UserOptions>();
    if (options.listen.insecure_no_auth)
        return Error{Code::kInvalidParameterValue,
                     "--auth basic and --insecure-no-auth exclude each other; leave one out"};
    TUNE_TRY(password, admin_password(options));
    const auto creators_of = [](const std::string& word) {
        if (word == "admins") return tracker::Creators::kAdmins;
        return word == "granted" ? tracker::Creators::kGranted : tracker::Creators::kEverybody;
    };
    return std::optional(UserOptions{
        .default_permission =
            tracker::permission_of(options.default_permission).value_or(tracker::Permission::kNone),
        .creators = creators_of(options.creators),
        .study_creators = creators_of(options.study_creators),
        .admin_password = std::move(password)});
}

Result<LocalServerOptions> server_options(const ServerCommand& options,
                                          const Listening& listening) {
    TUNE_TRY(heartbeat_ms, tuner::parse_duration_ms(options.heartbeat));
    TUNE_TRY(lease_ttl_ms, tuner::parse_duration_ms(options.lease_ttl));
    if (heartbeat_ms <= 0 || lease_ttl_ms <= heartbeat_ms)
        return Error{Code::kInvalidParameterValue,
                     "--lease-ttl must be longer than --heartbeat, and both above 0"};
    TUNE_TRY(webhooks, webhook_options(options));
    TUNE_TRY(users, user_options(options));
    return LocalServerOptions{.data = options.data,
                              .heartbeat_ms = heartbeat_ms,
                              .lease_ttl_ms = lease_ttl_ms,
                              .static_prefix = options.static_prefix,
                              .is_https = listening.tls != nullptr,
                              .webhooks = std::move(webhooks),
                              .guard = listening.guard,
                              .users = std::move(users)};
}

/// Until a signal ends it; reads a certificate that changes.
void serve(Interrupts& interrupts, tracker::TlsIdentity* identity) {
    constexpr int kLook_ms = 1000;
    for (;;) {
        const Interrupts::Event event = interrupts.wait(identity != nullptr ? kLook_ms : -1);
        if (event == Interrupts::Event::kSignal) return;
        if (identity == nullptr) continue;
        if (event == Interrupts::Event::kHangup || identity->has_changed()) read_anew(*identity);
    }
}

}  // namespace

int run_server(const ServerCommand& options) {
    Interrupts interrupts(options.listen.tls.certificate.empty() ? Interrupts::Hangup::kEnds
                                                                 : Interrupts::Hangup::kIsApart);
    outlive_log_readers();
    const Result<Listening> listening = listening_of(options.listen);
    if (!listening) return fail(listening.error(), options.json);
    Result<LocalServerOptions> local_options = server_options(options, *listening);
    if (!local_options) return fail(local_options.error(), options.json);
    const auto server = LocalServer::open(std::move(local_options).value());
    if (!server) {
        static_cast<void>(fail(server.error(), options.json));
        return kExitFailed;
    }
    tracker::ServerOptions http = server_options_of(options.listen, *listening, options.port);
    http.threads = options.threads;
    http.allowed_hosts = options.allowed_hosts;
    http.allowed_origins = options.allowed_origins;
    http.connections_per_client_max = options.connections_per_client;
    http.connections_max = options.connections;
    if (const Result<void> listens = (*server)->listen(std::move(http)); !listens) {
        static_cast<void>(fail(listens.error(), options.json));
        return kExitFailed;
    }
    // Before the line that says it is ready: who waits for that line has then seen these.
    warn_of(*listening);
    const std::string& made_up = (*server)->made_up_password();
    Json started = {
        {"url", (*server)->url()}, {"page", (*server)->page_url()}, {"data", options.data}};
    if (!made_up.empty()) started["admin_password"] = made_up;
    if (options.json)
        print(to_text(started) + "\n");
    else
        print(std::string("tune ") + kVersion + " listening on " + (*server)->url() +
              " (data: " + options.data + ")\npage: " + (*server)->page_url() +
              " (works once; `tune open` prints another)\n");
    if (!options.json && !made_up.empty())
        print("first start with users: the password of 'admin' is " + made_up +
              " (shown this once)\n");
    serve(interrupts, listening->tls.get());
    (*server)->stop();
    return kExitOk;
}

}  // namespace tune::cli
