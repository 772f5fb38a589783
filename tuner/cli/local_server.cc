// Opens the parts in the order of their dependencies and adds their routes. stop() first answers
// the agents' polls, then lets requests finish, then stops alerts, webhooks and the store. The
// address is written into the folder once the server listens and removed first when it stops, so
// that who finds it can connect.

#include "tuner/cli/local_server.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/crypto/digest.h"
#include "base/crypto/password.h"
#include "base/id.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/text/hex.h"
#include "tracker/alerts/alert_routes.h"
#include "tracker/api/app.h"
#include "tracker/api/ops/maintenance_routes.h"
#include "tracker/api/ops/prometheus.h"
#include "tracker/artifacts/multipart_uploads.h"
#include "tracker/auth/token_file.h"
#include "tracker/auth/token_routes.h"
#include "tracker/auth/users/user_routes.h"
#include "tracker/client/local_servers.h"
#include "tracker/store/permissions/read_permissions.h"
#include "tracker/webhooks/webhook_routes.h"
#include "tuner/api/routes.h"
#include "tuner/cli/transfer/import_job.h"
#include "tuner/interop/optuna/optuna_writes.h"
#include "tuner/study/journal/erased_studies.h"
#include "web/assets.h"

namespace tune::cli {
namespace {

std::filesystem::path address_file(const std::filesystem::path& data) {
    return data / "server.json";
}

std::optional<std::string> address_field(const std::filesystem::path& data, const char* key) {
    const Result<std::string> text = read_file(address_file(data), 4096);
    if (!text) return std::nullopt;
    const Result<Json> address = parse_json(*text);
    if (!address || !address->is_object() || !address->contains(key) ||
        !(*address)[key].is_string())
        return std::nullopt;
    return (*address)[key].get<std::string>();
}

std::vector<tracker::WebAsset> page() {
    std::vector<tracker::WebAsset> files;
    for (const web::Asset& asset : web::assets())
        files.push_back(
            {asset.path, asset.bytes, asset.gzip, asset.content_type, asset.etag, asset.immutable});
    return files;
}

}  // namespace

Result<std::unique_ptr<LocalServer>> LocalServer::open(LocalServerOptions options) {
    std::unique_ptr<LocalServer> local(new LocalServer(std::move(options)));
    const std::filesystem::path& data = local->options_.data;
    TUNE_TRY(store, tracker::Store::open({.directory = data, .clock = &local->clock_}));
    TUNE_TRY(artifacts, tracker::ArtifactStore::open(data / "artifacts"));
    local->store_ = std::move(store);
    local->artifacts_ = std::move(artifacts);
    TUNE_TRY(undone, tuner::undo_imports(*local->store_));
    for (const std::string& study : undone)
        log_warning("the import of the study '" + study + "' broke off and was undone");
    local->store_->add_observer(&local->live_events_);
    TUNE_TRY(webhooks, tracker::WebhookService::open(*local->store_, local->clock_,
                                                     local->options_.webhooks));
    local->webhooks_ = std::move(webhooks);
    TUNE_TRY(alerts, tracker::AlertEngine::open(*local->store_, local->hub_, local->clock_));
    local->alerts_ = std::move(alerts);
    std::optional<tracker::Permission> by_default;
    if (local->options_.users) by_default = local->options_.users->default_permission;
    TUNE_TRY(studies, tuner::Studies::open({.store = local->store_.get(),
                                            .clock = &local->clock_,
                                            .listener = &local->live_studies_,
                                            .heartbeat_ms = local->options_.heartbeat_ms,
                                            .lease_ttl_ms = local->options_.lease_ttl_ms,
                                            .only_study = local->options_.only_study,
                                            .default_permission = by_default}));
    local->studies_ = std::move(studies);
    local->live_studies_.start(*local->studies_);
    TUNE_TRY_VOID(local->open_gate());
    tuner::add_tuning_routes(local->router_, {*local->studies_, *local->store_});
    tracker::add_webhook_routes(local->router_, *local->store_, *local->webhooks_);
    tracker::add_alert_routes(local->router_, *local->store_, *local->alerts_);
    local->add_stats();
    tracker::add_tracking_routes(
        local->router_, {*local->store_, *local->artifacts_, local->hub_},
        {.assets = page(),
         .static_prefix = local->options_.static_prefix,
         .redeem_page_code =
             [login = &*local->login_](std::string_view code) { return login->redeem(code); },
         .users_log_in = local->options_.users.has_value()});
    tracker::add_page_login_routes(local->router_, *local->login_);
    tracker::add_token_routes(local->router_, *local->store_, *local->tokens_);
    local->add_user_routes();
    local->maintenance_ = std::make_unique<tracker::Maintenance>(*local->store_, *local->artifacts_,
                                                                 data, local->clock_);
    local->maintenance_->set_after_collection([store = local->store_.get()]() -> Result<void> {
        TUNE_TRY_VOID(tuner::forget_purged_studies(*store));
        return {};
    });
    tracker::add_maintenance_routes(local->router_, *local->maintenance_, *local->artifacts_);
    add_import_route(local->router_, *local->maintenance_, *local->store_, *local->studies_,
                     *local->artifacts_, data);
    tracker::add_openapi_routes(local->router_,
                                {tracker::tracking_openapi(), tuner::tuning_openapi()});
    return local;
}

Result<void> LocalServer::open_gate() {
    TUNE_TRY(token, tracker::own_token(options_.data));
    TUNE_TRY(tokens, tracker::TokenBook::open(options_.data / "tokens.json", clock_));
    tokens_ = std::move(tokens);
    tokens_->on_revoked([this] { live_events_.review_readers(); });
    attempts_.emplace(studies_->credentials());
    login_.emplace(token, options_.static_prefix, options_.is_https);
    // Browsers do not keep ports apart: the name keeps two servers of a machine apart.
    const std::string mark = hex_encode(hmac_sha256(token, "session cookie name")).substr(0, 8);
    const bool has_users = options_.users.has_value();
    const auto path_of_upload = [this](const std::string& id) {
        const auto upload = artifacts_->multipart().find(id);
        return upload ? upload->path : std::string();
    };
    limits_.emplace(*store_, path_of_upload);
    gate_.emplace(std::move(token),
                  tracker::LocalGate::Parts{*login_, *tokens_, *attempts_, *limits_},
                  has_users ? tracker::Guard::kClosed : options_.guard);
    passwords_.emplace();
    tracker::UserGateOptions options;
    if (has_users) {
        options.default_permission = options_.users->default_permission;
        options.creators = options_.users->creators;
        options.study_creators = options_.users->study_creators;
    }
    options.experiment_of_study = [this](const std::string& name, bool or_erased) {
        return studies_->experiment_of(name, or_erased);
    };
    options.path_of_upload = path_of_upload;
    users_.emplace(*gate_, *tokens_, *store_, *passwords_, clock_, "tune_user_" + mark,
                   std::move(options));
    if (has_users) {
        router_.set_authenticator(*users_);
        return make_first_admin();
    }
    router_.set_authenticator(*gate_);
    return {};
}

/// There is no shipped password: the first start takes one, or makes one up.
Result<void> LocalServer::make_first_admin() {
    TUNE_TRY(known, store_->snapshot([](tracker::sqlite::Connection& connection) {
        return tracker::list_users(connection);
    }));
    if (!known.empty()) return {};
    std::string password = options_.users->admin_password;
    if (password.empty()) password = made_up_password_ = random_hex(10);
    if (const Result<void> checked = tracker::check_new_password(password); !checked)
        return Error{checked.error().code,
                     "the password of the first admin: " + checked.error().message};
    TUNE_TRY(hash, hash_password(password));
    TUNE_TRY_VOID(store_->execute(
        tracker::PermissionCommand(tracker::CreateUser{"admin", std::move(hash), true})));
    return {};
}

void LocalServer::add_user_routes() {
    tracker::add_user_routes(router_, {.store = *store_,
                                       .gate = *users_,
                                       .pool = *passwords_,
                                       .tokens = *tokens_,
                                       .clock = clock_,
                                       .is_on = options_.users.has_value(),
                                       .cookie_path = options_.static_prefix,
                                       .is_https = options_.is_https});
}

void LocalServer::add_stats() {
    tracker::add_metrics_route(
        router_, *store_,
        {tracker::write_process_metrics,
         [this](tracker::PrometheusText& out) { http_->write(out); },
         [this](tracker::PrometheusText& out) { tracker::write_store_metrics(out, *store_); },
         [this](tracker::PrometheusText& out) { tracker::write_hub_metrics(out, hub_); },
         [this](tracker::PrometheusText& out) {
             tracker::write_webhook_metrics(out, *webhooks_);
             tracker::write_alert_metrics(out, *alerts_);
         }});
}

Result<void> LocalServer::listen(tracker::ServerOptions options) {
    options.statistics = http_;
    TUNE_TRY(server, tracker::Server::listen(std::move(options), router_));
    server_ = std::move(server);
    announce();
    server_->serve();
    studies_->warm_up();
    webhooks_->start();
    alerts_->start();
    return {};
}

/// Before the first answer, so that no client is refused for a token that it could not find yet.
void LocalServer::announce() {
    Json address = {{"url", url()}, {"pid", getpid()}};
    if (!options_.only_study.empty()) address["study"] = options_.only_study;
    const Result<void> written = write_file_atomic(address_file(options_.data), to_text(address));
    if (!written) log_warning("other programs cannot find this server: " + written.error().text());
    announced_ = written.has_value();
    const Result<void> findable = tracker::announce_server(url(), options_.data);
    if (!findable)
        log_warning("other programs do not find the token of this server (" +
                    findable.error().message + "); give it to them as TUNE_TOKEN");
}

LocalServer::~LocalServer() {
    stop();
}

void LocalServer::stop() {
    if (announced_) {
        std::error_code ignored;
        std::filesystem::remove(address_file(options_.data), ignored);
        announced_ = false;
    }
    if (server_) tracker::withdraw_server(url());
    if (studies_) studies_->drain();
    if (maintenance_) maintenance_->stop();
    if (server_) server_->stop();
    passwords_.reset();  // its jobs ask the store
    live_studies_.stop();
    if (alerts_) alerts_->stop();
    if (webhooks_) webhooks_->stop();
    if (store_) store_->stop();
    if (studies_) studies_->stop();
}

std::optional<std::string> url_of_holder(const std::filesystem::path& data) {
    return address_field(data, "url");
}

std::optional<std::string> study_of_holder(const std::filesystem::path& data) {
    return address_field(data, "study");
}

}  // namespace tune::cli
