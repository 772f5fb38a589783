#pragma once
// The whole server in this process: store, artifacts, studies, routes and, once listen() was
// called, the network. `tune server` is this and a signal; `tune run` has one beside its agent; the
// other verbs use one without network to look into a folder that no server holds.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tracker/alerts/alert_engine.h"
#include "tracker/api/http/router.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/api/ui/live_events.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/auth/attempt_limits.h"
#include "tracker/auth/local_gate.h"
#include "tracker/auth/page_login.h"
#include "tracker/auth/users/password_pool.h"
#include "tracker/auth/users/user_gate.h"
#include "tracker/http/http_stats.h"
#include "tracker/http/server.h"
#include "tracker/maintenance/maintenance.h"
#include "tracker/store/store.h"
#include "tracker/webhooks/webhook_service.h"
#include "tuner/api/attempt_authenticator.h"
#include "tuner/api/live_studies.h"
#include "tuner/study/registry/studies.h"

namespace tune::cli {

/// Users log in (`--auth basic`).
struct UserOptions {
    tracker::Permission default_permission = tracker::Permission::kRead;
    tracker::Creators creators = tracker::Creators::kEverybody;
    tracker::Creators study_creators = tracker::Creators::kEverybody;
    /// Of the first admin, where there is none yet; empty: one is made up.
    std::string admin_password = {};
};

struct LocalServerOptions {
    std::filesystem::path data;
    std::string only_study = {};  ///< agents get trials of this study only
    std::int64_t heartbeat_ms = tuner::kHeartbeat_ms;
    std::int64_t lease_ttl_ms = tuner::kLeaseTtl_ms;
    std::string static_prefix = {};  ///< "/tracking": before every path
    bool is_https = false;           ///< the page's cookie goes through TLS only
    tracker::DeliveryOptions webhooks = {};
    tracker::Guard guard = tracker::Guard::kLoopback;
    std::optional<UserOptions> users = {};
};

class LocalServer {
public:
    /// Opens the folder. Errors: those of Store::open and ArtifactStore::open; kResourceConflict
    /// means that another process holds it (see url_of_holder).
    [[nodiscard]] static Result<std::unique_ptr<LocalServer>> open(LocalServerOptions options);
    /// Stops.
    ~LocalServer();
    LocalServer(const LocalServer&) = delete;
    LocalServer& operator=(const LocalServer&) = delete;

    /// Begins to answer. Errors: those of Server::start (port in use).
    [[nodiscard]] Result<void> listen(tracker::ServerOptions options);

    [[nodiscard]] tracker::Router& router() { return router_; }
    [[nodiscard]] tracker::EventHub& hub() { return hub_; }
    /// REQUIRES: listen() succeeded.
    [[nodiscard]] std::string url() const { return server_->url() + options_.static_prefix; }

    /// The address of the page with a code that makes one browser the owner's. REQUIRES: as url().
    [[nodiscard]] std::string page_url() { return url() + "/?code=" + new_page_code(); }
    /// The code, which any address of the page takes. Works once.
    [[nodiscard]] std::string new_page_code() { return login_->new_code(); }

    /// The password that open() made up for the first admin; empty where it did not. To be shown
    /// once.
    [[nodiscard]] const std::string& made_up_password() const { return made_up_password_; }

    /// Ends agents' long-polls, lets running requests finish, closes the store. Idempotent.
    void stop();

private:
    [[nodiscard]] Result<void> open_gate();
    [[nodiscard]] Result<void> make_first_admin();
    void add_user_routes();
    void add_stats();
    void announce();

    explicit LocalServer(LocalServerOptions options)
        : options_(std::move(options)),
          hub_(clock_),
          live_events_(hub_, clock_),
          live_studies_(hub_) {}

    LocalServerOptions options_;
    SystemClock clock_;
    tracker::EventHub hub_;
    tracker::LiveEvents live_events_;
    tuner::LiveStudies live_studies_;
    std::unique_ptr<tracker::Store> store_;
    std::unique_ptr<tracker::ArtifactStore> artifacts_;
    std::unique_ptr<tracker::Maintenance> maintenance_;
    std::unique_ptr<tuner::Studies> studies_;
    std::unique_ptr<tracker::WebhookService> webhooks_;
    std::unique_ptr<tracker::AlertEngine> alerts_;
    std::shared_ptr<tracker::HttpStatistics> http_ = std::make_shared<tracker::HttpStatistics>();
    std::optional<tuner::AttemptAuthenticator> attempts_;
    std::optional<tracker::PageLogin> login_;
    std::unique_ptr<tracker::TokenBook> tokens_;
    std::optional<tracker::AttemptLimits> limits_;
    std::optional<tracker::LocalGate> gate_;
    std::optional<tracker::PasswordPool> passwords_;
    std::optional<tracker::UserGate> users_;
    std::string made_up_password_;
    tracker::Router router_;
    std::unique_ptr<tracker::Server> server_;
    bool announced_ = false;
};

/// The address that the server which holds this folder has written there; nothing if there is none
/// or it was left by a server that has ended.
[[nodiscard]] std::optional<std::string> url_of_holder(const std::filesystem::path& data);

/// The one study that it gives trials of, where it is a `tune run`; else none.
[[nodiscard]] std::optional<std::string> study_of_holder(const std::filesystem::path& data);

}  // namespace tune::cli
