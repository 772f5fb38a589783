// Every route, asked with every kind of user about things of somebody else. What each needs stands
// here by hand, so that a new route cannot come without a decision, nor an old one lose its own:
// the holes of MLflow's servers were calls that nobody had thought of (deletion of artifacts by
// readers, CVE-2024-4263; parts of uploads, CVE-2026-2651; jobs without a login, CVE-2026-0545 and
// CVE-2026-2652).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <regex>

#include "base/text/base64.h"
#include "tests/tuner/api/application.h"
#include "tracker/store/permissions/permission_commands.h"

namespace tune::tuner {
namespace {

using tracker::Access;
using tracker::Method;
using tracker::Permission;
using tracker::Request;
using tracker::Response;
using tracker::Route;

/// o: everybody; u: any user; n: any user but one that was denied the name; r, e, m: who may read,
/// edit, manage the thing; s: the user it names; w: who manages the workspace; a: admins.
const std::map<std::string, char>& expected() {
    static const std::map<std::string, char> needs = {
        {"GET /api/2.0/tune/login", 'o'},
        {"POST /api/2.0/tune/login", 'o'},
        {"POST /api/2.0/tune/logout", 'o'},
        {"PUT /api/2.0/tune/uploads/{upload_id}/parts/{part_number}", 'o'},
        {"GET /api/3.0/mlflow/server-info", 'o'},
        {"GET /api/docs", 'o'},
        {"GET /api/openapi.json", 'o'},
        {"GET /health", 'o'},
        {"GET /version", 'o'},
        {"POST /api/2.0/mlflow/experiments/create", 'u'},
        {"GET /api/2.0/mlflow/experiments/search", 'u'},
        {"POST /api/2.0/mlflow/experiments/search", 'u'},
        {"POST /api/2.0/mlflow/logged-models/search", 'u'},
        {"GET /api/2.0/mlflow/model-versions/search", 'u'},
        {"POST /api/2.0/mlflow/registered-models/create", 'n'},
        {"GET /api/2.0/mlflow/registered-models/search", 'u'},
        {"POST /api/2.0/mlflow/runs/search", 'u'},
        {"GET /api/2.0/mlflow/users/current", 'u'},
        {"GET /api/2.0/mlflow/users/list", 'u'},
        {"GET /api/2.0/tune/schema", 'u'},
        {"GET /api/2.0/tune/studies", 'u'},
        {"GET /api/2.0/tune/users/current/tokens", 'u'},
        {"POST /api/2.0/tune/users/current/tokens", 'u'},
        {"DELETE /api/2.0/tune/users/current/tokens/{token_id}", 'u'},
        {"GET /api/3.0/mlflow/users/current/permissions", 'u'},
        {"GET /api/ui/events", 'u'},
        {"GET /api/ui/experiments", 'u'},
        {"GET /ajax-api/2.0/mlflow/logged-models/{model_id}/artifacts/files", 'r'},
        {"GET /api/2.0/mlflow-artifacts/artifacts", 'r'},
        {"GET /api/2.0/mlflow-artifacts/artifacts/{path...}", 'r'},
        {"GET /api/2.0/mlflow-artifacts/presigned/{path...}", 'r'},
        {"GET /api/2.0/mlflow/artifacts/list", 'r'},
        {"POST /api/2.0/mlflow/artifacts/presigned-download-url", 'r'},
        {"GET /api/2.0/mlflow/experiments/get", 'r'},
        {"GET /api/2.0/mlflow/experiments/get-by-name", 'r'},
        {"POST /api/2.0/mlflow/experiments/search-datasets", 'r'},
        {"GET /api/2.0/mlflow/logged-models/{model_id}", 'r'},
        {"GET /api/2.0/mlflow/logged-models/{model_id}/artifacts/directories", 'r'},
        {"GET /api/2.0/mlflow/metrics/get-history", 'r'},
        {"GET /api/2.0/mlflow/metrics/get-history-bulk", 'r'},
        {"GET /api/2.0/mlflow/metrics/get-history-bulk-interval", 'r'},
        {"GET /api/2.0/mlflow/model-versions/get", 'r'},
        {"GET /api/2.0/mlflow/model-versions/get-download-uri", 'r'},
        {"GET /api/2.0/mlflow/registered-models/alias", 'r'},
        {"GET /api/2.0/mlflow/registered-models/get", 'r'},
        {"GET /api/2.0/mlflow/registered-models/get-latest-versions", 'r'},
        {"POST /api/2.0/mlflow/registered-models/get-latest-versions", 'r'},
        {"GET /api/2.0/mlflow/runs/get", 'r'},
        {"GET /api/2.0/tune/metrics/get-history-buckets", 'r'},
        {"GET /api/2.0/tune/studies/{name}", 'r'},
        {"GET /api/2.0/tune/studies/{name}/importance", 'r'},
        {"GET /api/2.0/tune/studies/{name}/trials", 'r'},
        {"GET /api/2.0/tune/studies/{name}/trials/{number}", 'r'},
        {"GET /api/2.0/tune/uploads", 'r'},
        {"GET /api/ui/experiments/{experiment_id}/runs", 'r'},
        {"GET /api/ui/series", 'r'},
        {"GET /get-artifact", 'r'},
        {"GET /model-versions/get-artifact", 'r'},
        {"POST /ajax-api/2.0/mlflow/upload-artifact", 'e'},
        {"PUT /api/2.0/mlflow-artifacts/artifacts/{path...}", 'e'},
        {"POST /api/2.0/mlflow-artifacts/mpu/abort/{path...}", 'e'},
        {"POST /api/2.0/mlflow-artifacts/mpu/complete/{path...}", 'e'},
        {"POST /api/2.0/mlflow-artifacts/mpu/create/{path...}", 'e'},
        {"POST /api/2.0/mlflow/artifacts/presigned-upload-url", 'e'},
        {"POST /api/2.0/mlflow/experiments/delete-experiment-tag", 'e'},
        {"POST /api/2.0/mlflow/experiments/set-experiment-tag", 'e'},
        {"POST /api/2.0/mlflow/experiments/update", 'e'},
        {"POST /api/2.0/mlflow/logged-models", 'e'},
        {"PATCH /api/2.0/mlflow/logged-models/{model_id}", 'e'},
        {"POST /api/2.0/mlflow/logged-models/{model_id}/params", 'e'},
        {"PATCH /api/2.0/mlflow/logged-models/{model_id}/tags", 'e'},
        {"POST /api/2.0/mlflow/model-versions/create", 'e'},
        {"POST /api/2.0/mlflow/model-versions/set-tag", 'e'},
        {"POST /api/2.0/mlflow/model-versions/transition-stage", 'e'},
        {"PATCH /api/2.0/mlflow/model-versions/update", 'e'},
        {"DELETE /api/2.0/mlflow/registered-models/delete-tag", 'e'},
        {"POST /api/2.0/mlflow/registered-models/alias", 'e'},
        {"POST /api/2.0/mlflow/registered-models/rename", 'e'},
        {"POST /api/2.0/mlflow/registered-models/set-tag", 'e'},
        {"PATCH /api/2.0/mlflow/registered-models/update", 'e'},
        {"POST /api/2.0/mlflow/runs/create", 'e'},
        {"POST /api/2.0/mlflow/runs/delete-tag", 'e'},
        {"POST /api/2.0/mlflow/runs/log-batch", 'e'},
        {"POST /api/2.0/mlflow/runs/log-inputs", 'e'},
        {"POST /api/2.0/mlflow/runs/log-metric", 'e'},
        {"POST /api/2.0/mlflow/runs/log-model", 'e'},
        {"POST /api/2.0/mlflow/runs/log-parameter", 'e'},
        {"POST /api/2.0/mlflow/runs/outputs", 'e'},
        {"POST /api/2.0/mlflow/runs/set-tag", 'e'},
        {"POST /api/2.0/mlflow/runs/update", 'e'},
        {"POST /api/2.0/tune/studies", 'e'},
        {"POST /api/2.0/tune/studies/{name}/ask", 'e'},
        {"POST /api/2.0/tune/studies/{name}/enqueue", 'e'},
        {"POST /api/2.0/tune/studies/{name}/pause", 'e'},
        {"POST /api/2.0/tune/studies/{name}/priority", 'e'},
        {"POST /api/2.0/tune/studies/{name}/rename", 'e'},
        {"POST /api/2.0/tune/studies/{name}/renew", 'e'},
        {"GET /api/2.0/tune/studies/{name}/replay", 'e'},
        {"POST /api/2.0/tune/studies/{name}/report", 'e'},
        {"POST /api/2.0/tune/studies/{name}/resume", 'e'},
        {"POST /api/2.0/tune/studies/{name}/stop", 'e'},
        {"POST /api/2.0/tune/studies/{name}/tell", 'e'},
        {"GET /api/2.0/tune/uploads/{upload_id}", 'e'},
        {"DELETE /api/2.0/mlflow-artifacts/artifacts/{path...}", 'm'},
        {"POST /api/2.0/mlflow/experiments/delete", 'm'},
        {"POST /api/2.0/mlflow/experiments/permissions/create", 'm'},
        {"DELETE /api/2.0/mlflow/experiments/permissions/delete", 'm'},
        {"GET /api/2.0/mlflow/experiments/permissions/get", 'm'},
        {"PATCH /api/2.0/mlflow/experiments/permissions/update", 'm'},
        {"POST /api/2.0/mlflow/experiments/restore", 'm'},
        {"DELETE /api/2.0/mlflow/logged-models/{model_id}", 'm'},
        {"DELETE /api/2.0/mlflow/logged-models/{model_id}/tags/{tag_key...}", 'm'},
        {"DELETE /api/2.0/mlflow/model-versions/delete", 'm'},
        {"DELETE /api/2.0/mlflow/model-versions/delete-tag", 'm'},
        {"DELETE /api/2.0/mlflow/registered-models/alias", 'm'},
        {"DELETE /api/2.0/mlflow/registered-models/delete", 'm'},
        {"POST /api/2.0/mlflow/registered-models/permissions/create", 'm'},
        {"DELETE /api/2.0/mlflow/registered-models/permissions/delete", 'm'},
        {"GET /api/2.0/mlflow/registered-models/permissions/get", 'm'},
        {"PATCH /api/2.0/mlflow/registered-models/permissions/update", 'm'},
        {"POST /api/2.0/mlflow/runs/delete", 'm'},
        {"POST /api/2.0/mlflow/runs/restore", 'm'},
        {"DELETE /api/2.0/tune/studies/{name}", 'm'},
        {"POST /api/2.0/tune/studies/{name}/restore", 'm'},
        {"POST /api/3.0/mlflow/users/permissions/grant", 'm'},
        {"POST /api/3.0/mlflow/users/permissions/revoke", 'm'},
        {"GET /api/2.0/mlflow/users/get", 's'},
        {"PATCH /api/2.0/mlflow/users/update-password", 's'},
        {"GET /api/3.0/mlflow/users/permissions/get", 's'},
        {"GET /api/3.0/mlflow/users/permissions/list", 's'},
        {"GET /api/3.0/mlflow/users/roles/list", 's'},
        {"POST /api/3.0/mlflow/roles/assign", 'w'},
        {"POST /api/3.0/mlflow/roles/create", 'w'},
        {"DELETE /api/3.0/mlflow/roles/delete", 'w'},
        {"GET /api/3.0/mlflow/roles/get", 'w'},
        {"GET /api/3.0/mlflow/roles/list", 'w'},
        {"POST /api/3.0/mlflow/roles/permissions/add", 'w'},
        {"GET /api/3.0/mlflow/roles/permissions/list", 'w'},
        {"DELETE /api/3.0/mlflow/roles/permissions/remove", 'w'},
        {"PATCH /api/3.0/mlflow/roles/permissions/update", 'w'},
        {"DELETE /api/3.0/mlflow/roles/unassign", 'w'},
        {"PATCH /api/3.0/mlflow/roles/update", 'w'},
        {"GET /api/3.0/mlflow/roles/users/list", 'w'},
        {"POST /api/2.0/mlflow/users/create", 'a'},
        {"DELETE /api/2.0/mlflow/users/delete", 'a'},
        {"PATCH /api/2.0/mlflow/users/update-admin", 'a'},
        {"GET /api/2.0/mlflow/webhooks", 'a'},
        {"POST /api/2.0/mlflow/webhooks", 'a'},
        {"DELETE /api/2.0/mlflow/webhooks/{webhook_id}", 'a'},
        {"GET /api/2.0/mlflow/webhooks/{webhook_id}", 'a'},
        {"PATCH /api/2.0/mlflow/webhooks/{webhook_id}", 'a'},
        {"POST /api/2.0/mlflow/webhooks/{webhook_id}/test", 'a'},
        {"POST /api/2.0/tune/agents/register", 'a'},
        {"POST /api/2.0/tune/agents/{id}/attempts/{run_id}/{attempt}/finish", 'a'},
        {"POST /api/2.0/tune/agents/{id}/heartbeat", 'a'},
        {"POST /api/2.0/tune/agents/{id}/lease", 'a'},
        {"POST /api/2.0/tune/agents/{id}/poll", 'a'},
        {"POST /api/2.0/tune/agents/{id}/report", 'a'},
        {"GET /api/2.0/tune/alerts", 'a'},
        {"POST /api/2.0/tune/alerts", 'a'},
        {"DELETE /api/2.0/tune/alerts/{alert_id}", 'a'},
        {"GET /api/2.0/tune/backups", 'a'},
        {"POST /api/2.0/tune/backups", 'a'},
        {"DELETE /api/2.0/tune/backups/{name}", 'a'},
        {"GET /api/2.0/tune/backups/{name}", 'a'},
        {"POST /api/2.0/tune/gc", 'a'},
        {"POST /api/2.0/tune/imports", 'a'},
        {"GET /api/2.0/tune/job", 'a'},
        {"GET /api/2.0/tune/queue", 'a'},
        {"GET /api/2.0/tune/quotas", 'a'},
        {"POST /api/2.0/tune/quotas", 'a'},
        {"DELETE /api/2.0/tune/quotas/{user}", 'a'},
        {"POST /api/2.0/tune/page-codes", 'a'},
        {"GET /api/2.0/tune/tokens", 'a'},
        {"POST /api/2.0/tune/tokens", 'a'},
        {"DELETE /api/2.0/tune/tokens/{token_id}", 'a'},
        {"GET /api/2.0/tune/webhooks", 'a'},
        {"POST /api/2.0/tune/webhooks", 'a'},
        {"DELETE /api/2.0/tune/webhooks/{webhook_id}", 'a'},
        {"GET /api/2.0/tune/webhooks/{webhook_id}", 'a'},
        {"PATCH /api/2.0/tune/webhooks/{webhook_id}", 'a'},
        {"POST /api/2.0/tune/webhooks/{webhook_id}/test", 'a'},
        {"GET /metrics", 'a'},
    };
    return needs;
}

class PermissionsTest : public ApplicationTest {
protected:
    static constexpr const char* kPassword = "a long password";
    /// Of it, at a cost that lets many requests log in.
    static constexpr const char* kHash =
        "scrypt:1024:8:1$0123456789abcdef$"
        "9d450513728ce10d6e775b308fe159b7a2d2074cc7673fa099ea7dde42c87282"
        "88fb97efecd5471765cdf6c84c1c5917da8a8e51ff276f47660c6edbba689b6e";
    static constexpr const char* kModel = "a model of vic";
    static constexpr const char* kStudy = "vics-study";

    PermissionsTest() {
        router_.set_authenticator(users_);
        for (const char* name : {"vic", "denied", "reader", "editor", "manager", "admin"})
            run(tracker::CreateUser{name, kHash, std::string_view(name) == "admin"});
        make_things();
        grant("denied", Permission::kDeny);
        grant("editor", Permission::kEdit);
        grant("manager", Permission::kManage);
    }

    tracker::Outcome run(tracker::PermissionCommand command) {
        auto done = world_.store().execute(tracker::Command(std::move(command)));
        EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().message);
        return done ? std::move(*done) : tracker::Outcome();
    }
    void grant(const char* who, Permission permission) {
        run(tracker::GrantPermission{who, "experiment", experiment_, permission});
        run(tracker::GrantPermission{who, "registered_model", kModel, permission});
    }

    void make_things() {
        tracker::Store& store = world_.store();
        const auto experiment =
            store.execute(tracker::CreateExperiment{.name = kStudy, .owner_id = 1}).value();
        const auto id = std::get<tracker::ExperimentId>(experiment);
        experiment_ = std::to_string(id);
        const auto made_run = store.execute(tracker::CreateRun{.experiment_id = id}).value();
        run_ = std::get<tracker::Run>(made_run).info.run_id;
        const auto model = store.execute(tracker::CreateLoggedModel{.experiment_id = id}).value();
        model_ = std::get<tracker::LoggedModel>(model).model_id;
        EXPECT_TRUE(store
                        .execute(tracker::RegistryCommand(
                            tracker::CreateRegisteredModel{.name = kModel, .owner_id = 1}))
                        .has_value());
        const auto upload =
            artifacts_->multipart().create(experiment_ + "/" + run_ + "/artifacts/f", 1);
        EXPECT_TRUE(upload.has_value());
        if (upload) upload_ = upload->id;
    }

    void make_study() {
        EXPECT_TRUE(world_.create(std::string(R"("study": ")") + kStudy + "\"").has_value());
    }

    std::string path_of(const Route& route) const {
        std::string path = route.pattern;
        const auto put = [&path](const std::string& name, const std::string& value) {
            if (const std::size_t at = path.find("{" + name + "}"); at != std::string::npos)
                path.replace(at, name.size() + 2, value);
        };
        put("experiment_id", experiment_);
        put("model_id", model_);
        put("upload_id", upload_);
        put("path...", experiment_ + "/" + run_ + "/artifacts/f");
        put("name", kStudy);
        return std::regex_replace(path, std::regex(R"(\{[^}]*\})"), "1");
    }

    /// Names all of vic's things in every field that any route knows.
    std::shared_ptr<Request> request_for(const Route& route) const {
        auto request = std::make_shared<Request>();
        request->method = route.method;
        request->path = path_of(route);
        request->headers.emplace_back("Content-Type", "application/json");
        Json fields = {{"experiment_id", experiment_},
                       {"experiment_name", kStudy},
                       {"run_id", run_},
                       {"run_uuid", run_},
                       {"model_id", model_},
                       {"username", "vic"},
                       {"resource_type", "experiment"},
                       {"resource_id", experiment_},
                       {"name", kModel},
                       {"path", experiment_ + "/x"},
                       {"topics", "run:" + run_},
                       {"source", "s3://bucket/model"}};
        if (request->path.ends_with("/tune/studies")) fields["name"] = kStudy;
        if (request->path.find("/experiments/permissions") != std::string::npos)
            fields.erase("resource_type");
        if (request->path.find("/registered-models/permissions") != std::string::npos)
            for (const char* other : {"resource_type", "experiment_id"}) fields.erase(other);
        if (route.method == Method::kGet || route.body == tracker::Body::kStream) {
            for (const auto& [name, value] : fields.items())
                request->query.emplace_back(name, value.get<std::string>());
            for (const char* list : {"run_ids", "experiment_ids"})
                request->query.emplace_back(list, list[0] == 'r' ? run_ : experiment_);
            return request;
        }
        fields["experiment_ids"] = {experiment_};
        fields["run_ids"] = {run_};
        request->body = to_text(fields);
        return request;
    }

    /// 200 if the route's handler would run, else the status of the refusal. Without running it:
    /// one that deletes would end the test.
    int decide(const Route& route, const std::string& authorization) {
        auto request = request_for(route);
        if (!authorization.empty()) request->headers.emplace_back("Authorization", authorization);
        Response refusal;
        const Route* found = router_.resolve(*request, refusal);
        if (found == nullptr) return refusal.status;
        const Access access = route.access.access();
        if (access == Access::kOpen || access == Access::kByUrl) return 200;
        std::optional<Result<void>> may = users_.admit_now(*request, route.access);
        if (!may) {
            std::promise<Result<void>> decided;
            users_.admit(request, route.access,
                         [&](Result<void> result) { decided.set_value(std::move(result)); });
            may = decided.get_future().get();
        }
        return *may ? 200 : tracker::error_response(may->error()).status;
    }

    /// The status of the answer. Of an upload: of the refusal of its first bytes, else 200.
    int dispatched(const Route& route, const std::string& authorization) {
        auto request = request_for(route);
        request->headers.emplace_back("Authorization", authorization);
        std::promise<int> answered;
        if (route.body != tracker::Body::kStream) {
            router_.dispatch(
                request, [&](const Response& response) { answered.set_value(response.status); });
            return answered.get_future().get();
        }
        Response refusal;
        const Route* const found = router_.resolve(*request, refusal);
        if (found == nullptr) return refusal.status;
        const auto sink = found->open_sink(request);
        if (!sink) return tracker::error_response(sink.error()).status;
        (*sink)->write("x", [&](const Result<void>& written) {
            answered.set_value(written ? 200 : tracker::error_response(written.error()).status);
        });
        return answered.get_future().get();
    }

    static std::string login(const std::string& who, const std::string& password = kPassword) {
        return "Basic " + base64(who + ":" + password);
    }
    static std::string name_of(const Route& route) {
        return std::string(tracker::method_name(route.method)) + " " + route.pattern;
    }

    std::string experiment_;
    std::string run_;
    std::string model_;
    std::string upload_;
};

TEST_F(PermissionsTest, EveryRouteAsksEveryUserForWhatItNeeds) {
    struct Asker {
        const char* name;
        const char* may;  ///< of the letters
    };
    const std::vector<Asker> askers = {
        {"denied", "ou"},      {"reader", "ounr"}, {"editor", "ounre"},
        {"manager", "ounrem"}, {"vic", "ounrems"}, {"admin", "ounremswa"},
    };
    make_study();
    std::size_t seen = 0;
    for (const Route& route : router_.routes()) {
        std::string name = name_of(route);
        // Both prefixes lead to one declaration; AccessTest compares them.
        if (const std::size_t ajax = name.find(" /ajax-api/"); ajax != std::string::npos) {
            const std::string twin = name.substr(0, ajax) + " /api/" + name.substr(ajax + 11);
            if (expected().contains(twin)) name = twin;
        }
        const auto need = expected().find(name);
        if (need == expected().end()) {
            ADD_FAILURE() << "say here what this route needs: " << name;
            continue;
        }
        ++seen;
        const int closed = need->second == 'o' ? 200 : 401;
        EXPECT_EQ(decide(route, ""), closed) << "nobody: " << name;
        for (const Asker& asker : askers) {
            const bool may = std::string_view(asker.may).find(need->second) != std::string::npos;
            EXPECT_EQ(decide(route, login(asker.name)), may ? 200 : 403)
                << asker.name << ": " << name;
        }
        EXPECT_EQ(decide(route, std::string("Bearer ") + kToken), 200) << "the owner: " << name;
    }
    EXPECT_GT(seen, 200U);
}

/// As the server runs it, handler and all.
TEST_F(PermissionsTest, NoRouteAnswersAWrongCredential) {
    ASSERT_TRUE(world_.create(R"("study": "other")").has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto changed = [](std::string token) {
        token.back() = token.back() == '0' ? '1' : '0';
        return token;
    };
    const std::string attempt = world_.lease_with_token("a")->leases.at(0).token;
    const std::string agents = tokens_->create("rack", Access::kAgent, 0)->token;
    const std::string ended = tokens_->create("ended", Access::kRun, 1)->token;
    token_clock_.advance_ms(2);
    const std::vector<std::pair<std::string, int>> wrong = {
        {login("admin", "a wrong password"), 401},
        {login("manager", kPassword + std::string(1, 'x')), 401},
        {login("manager", ""), 401},
        {"Basic " + base64("manager"), 401},
        {"Basic !", 401},
        {std::string("Bearer ") + kPassword, 401},
        {"Bearer " + changed(kToken), 401},
        {kToken, 401},
        {"Bearer " + changed(agents), 401},
        {"Bearer " + ended, 401},
        {"Bearer tune-attempt." + run_ + ".1.00000000000000000000000000000000", 401},
        {"Bearer " + changed(attempt), 409},
    };
    std::size_t seen = 0;
    for (const Route& route : router_.routes()) {
        const Access access = route.access.access();
        if (access == Access::kOpen || access == Access::kByUrl) continue;
        ++seen;
        for (const auto& [credential, status] : wrong)
            EXPECT_EQ(dispatched(route, credential), status) << credential << " " << name_of(route);
    }
    EXPECT_GT(seen, 300U);
    EXPECT_EQ(dispatched(router_.routes().front(), login("nobody")),
              expected().at(name_of(router_.routes().front())) == 'o' ? 200 : 401);
}

TEST_F(PermissionsTest, AnAttemptWritesInItsStudysExperimentOnly) {
    EXPECT_TRUE(world_.create().has_value());
    EXPECT_TRUE(world_.register_agent("a").has_value());
    const std::string attempt = "Bearer " + world_.lease_with_token("a")->leases.at(0).token;
    make_study();
    for (const Route& route : router_.routes()) {
        if (route.pattern.starts_with("/ajax-api/")) continue;
        const char need = expected().at(name_of(route));
        // It is led to its own experiment, whatever it names.
        const bool is_led = route.access.subject() == tracker::Subject::kMadeExperiment;
        const bool makes = route.access.subject() == tracker::Subject::kMadeModel;
        const bool may =
            (std::string_view("our").find(need) != std::string_view::npos && !makes) || is_led;
        const bool reaches = route.access.access() <= Access::kWrite;
        EXPECT_EQ(decide(route, attempt), may && reaches ? 200 : 403) << name_of(route);
    }
}

}  // namespace
}  // namespace tune::tuner
