#pragma once
// Every route of `tune server`, in process over a World: what the tests of all routes ask.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/id.h"
#include "tests/tuner/study/world.h"
#include "tracker/alerts/alert_routes.h"
#include "tracker/api/app.h"
#include "tracker/api/ops/maintenance_routes.h"
#include "tracker/api/ops/openapi.h"
#include "tracker/api/ops/prometheus.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/artifacts/multipart_uploads.h"
#include "tracker/auth/local_gate.h"
#include "tracker/auth/token_routes.h"
#include "tracker/auth/users/user_routes.h"
#include "tracker/webhooks/webhook_routes.h"
#include "tuner/api/attempt_authenticator.h"
#include "tuner/api/routes.h"
#include "tuner/cli/transfer/import_job.h"

namespace tune::tuner {

/// A new route of the server is added here too, and is then in the description, in the lists of who
/// may do what and behind the fence of attempts.
class ApplicationTest : public ::testing::Test {
protected:
    static constexpr const char* kToken = "0123456789abcdef";

    ApplicationTest() {
        tracker::Store& store = world_.store();
        add_tuning_routes(router_, {world_.studies(), store});
        tracker::add_tracking_routes(router_, {store, *artifacts_, hub_}, {});
        tracker::add_maintenance_routes(router_, *maintenance_, *artifacts_);
        cli::add_import_route(router_, *maintenance_, store, world_.studies(), *artifacts_,
                              folder_);
        tracker::add_webhook_routes(router_, store, *webhooks_);
        tracker::add_alert_routes(router_, store, *alerts_);
        tracker::add_metrics_route(router_, store, {});
        tracker::add_openapi_routes(router_, parts_);
        tracker::add_page_login_routes(router_, login_);
        tracker::add_token_routes(router_, store, *tokens_);
        tracker::add_user_routes(router_, {.store = store,
                                           .gate = users_,
                                           .pool = passwords_,
                                           .tokens = *tokens_,
                                           .clock = token_clock_});
    }
    ~ApplicationTest() override {
        maintenance_.reset();
        world_.close();
        artifacts_.reset();
        std::filesystem::remove_all(folder_);
    }

    World world_;
    SystemClock clock_;
    tracker::EventHub hub_{clock_};
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("application-" + random_hex(8));
    std::unique_ptr<tracker::ArtifactStore> artifacts_ =
        tracker::ArtifactStore::open(folder_ / "artifacts").value();
    std::unique_ptr<tracker::Maintenance> maintenance_ =
        std::make_unique<tracker::Maintenance>(world_.store(), *artifacts_, folder_, clock_);
    std::unique_ptr<tracker::WebhookService> webhooks_ =
        tracker::WebhookService::open(world_.store(), clock_, {}).value();
    std::unique_ptr<tracker::AlertEngine> alerts_ =
        tracker::AlertEngine::open(world_.store(), hub_, clock_).value();
    AttemptAuthenticator attempts_{world_.studies().credentials()};
    tracker::PageLogin login_{kToken, ""};
    ManualClock token_clock_{1'000'000};
    std::unique_ptr<tracker::TokenBook> tokens_ =
        tracker::TokenBook::open(folder_ / "tokens.json", token_clock_).value();
    std::string path_of_upload(const std::string& id) const {
        const auto upload = artifacts_->multipart().find(id);
        return upload ? upload->path : std::string();
    }
    tracker::AttemptLimits limits_{world_.store(),
                                   [this](const std::string& id) { return path_of_upload(id); }};
    tracker::LocalGate closed_to_others_{
        kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kClosed};
    tracker::PasswordPool passwords_;
    tracker::UserGate users_{
        closed_to_others_,
        *tokens_,
        world_.store(),
        passwords_,
        token_clock_,
        "tune_user_test",
        {.experiment_of_study =
             [this](const std::string& name, bool or_erased) {
                 return world_.studies().experiment_of(name, or_erased);
             },
         .path_of_upload = [this](const std::string& id) { return path_of_upload(id); }}};
    std::vector<tracker::OpenApiPart> parts_ = {tracker::tracking_openapi(), tuning_openapi()};
    tracker::Router router_;
};

}  // namespace tune::tuner
