// What the credential of an attempt may change, asked of every route that writes, behind every
// guard: about its own run, runs beneath it and what these made, and about those of a sibling, the
// next trial of the same study. What is allowed stands here by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <regex>
#include <set>

#include "tests/tuner/api/application.h"
#include "tracker/api/http/url.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using tracker::Access;
using tracker::Method;
using tracker::Request;
using tracker::Response;
using tracker::Route;

/// Of its own things. Everything else that writes is refused.
const std::set<std::string>& allowed_with_own() {
    static const std::set<std::string> routes = {
        "DELETE /api/2.0/mlflow-artifacts/artifacts/{path...}",
        "DELETE /api/2.0/mlflow/logged-models/{model_id}",
        "DELETE /api/2.0/mlflow/logged-models/{model_id}/tags/{tag_key...}",
        "DELETE /api/2.0/mlflow/model-versions/delete",
        "DELETE /api/2.0/mlflow/model-versions/delete-tag",
        "GET /api/2.0/tune/uploads/{upload_id}",
        "PATCH /api/2.0/mlflow/logged-models/{model_id}",
        "PATCH /api/2.0/mlflow/logged-models/{model_id}/tags",
        "PATCH /api/2.0/mlflow/model-versions/update",
        "POST /ajax-api/2.0/mlflow/upload-artifact",
        "POST /api/2.0/mlflow-artifacts/mpu/abort/{path...}",
        "POST /api/2.0/mlflow-artifacts/mpu/complete/{path...}",
        "POST /api/2.0/mlflow-artifacts/mpu/create/{path...}",
        "POST /api/2.0/mlflow/artifacts/presigned-upload-url",
        "POST /api/2.0/mlflow/experiments/create",
        "POST /api/2.0/mlflow/logged-models",
        "POST /api/2.0/mlflow/logged-models/{model_id}/params",
        "POST /api/2.0/mlflow/model-versions/create",
        "POST /api/2.0/mlflow/model-versions/set-tag",
        "POST /api/2.0/mlflow/model-versions/transition-stage",
        "POST /api/2.0/mlflow/registered-models/create",
        "POST /api/2.0/mlflow/runs/create",
        "POST /api/2.0/mlflow/runs/delete",
        "POST /api/2.0/mlflow/runs/delete-tag",
        "POST /api/2.0/mlflow/runs/log-batch",
        "POST /api/2.0/mlflow/runs/log-inputs",
        "POST /api/2.0/mlflow/runs/log-metric",
        "POST /api/2.0/mlflow/runs/log-model",
        "POST /api/2.0/mlflow/runs/log-parameter",
        "POST /api/2.0/mlflow/runs/outputs",
        "POST /api/2.0/mlflow/runs/restore",
        "POST /api/2.0/mlflow/runs/set-tag",
        "POST /api/2.0/mlflow/runs/update",
        "PUT /api/2.0/mlflow-artifacts/artifacts/{path...}",
    };
    return routes;
}

/// What names a sibling's things and yet touches none of them.
const std::set<std::string>& allowed_with_others() {
    static const std::set<std::string> routes = {
        "POST /api/2.0/mlflow/experiments/create",  // leads to its own
        "POST /api/2.0/mlflow/model-versions/create",
        "POST /api/2.0/mlflow/registered-models/create",
    };
    return routes;
}

/// Where users log in these take a grant, which attempts have none of.
const std::set<std::string>& refused_beside_users() {
    static const std::set<std::string> routes = {
        "DELETE /api/2.0/mlflow/model-versions/delete",
        "DELETE /api/2.0/mlflow/model-versions/delete-tag",
        "PATCH /api/2.0/mlflow/model-versions/update",
        "POST /api/2.0/mlflow/model-versions/create",
        "POST /api/2.0/mlflow/model-versions/set-tag",
        "POST /api/2.0/mlflow/model-versions/transition-stage",
        "POST /api/2.0/mlflow/registered-models/create",
    };
    return routes;
}

class AttemptLimitsTest : public ApplicationTest {
protected:
    /// A run, and what it made.
    struct Things {
        std::string run;
        std::string model;
        std::string version;
        std::string upload;
    };

    AttemptLimitsTest() {
        EXPECT_TRUE(world_.create().has_value());
        EXPECT_TRUE(world_.register_agent("a").has_value());
        const Lease own = world_.lease_with_token("a")->leases.at(0);
        const Lease other = world_.lease_with_token("a")->leases.at(0);
        token_ = "Bearer " + own.token;
        experiment_ = own.experiment_id;
        EXPECT_TRUE(world_.store()
                        .execute(tracker::RegistryCommand(
                            tracker::CreateRegisteredModel{.name = "m", .owner_id = 0}))
                        .has_value());
        own_ = things_of(own.run_id);
        sibling_ = things_of(other.run_id);
        child_ = things_of(make_run(own.run_id));
        grandchild_ = things_of(make_run(child_.run));
        nobodys_ = things_of(make_run(""));
    }

    std::string make_run(const std::string& parent) {
        tracker::CreateRun command{.experiment_id = std::stoll(experiment_)};
        if (!parent.empty()) command.tags = {{"mlflow.parentRunId", parent}};
        const auto made = world_.store().execute(std::move(command)).value();
        return std::get<tracker::Run>(made).info.run_id;
    }
    Things things_of(const std::string& run) {
        tracker::Store& store = world_.store();
        const auto model = store
                               .execute(tracker::CreateLoggedModel{
                                   .experiment_id = std::stoll(experiment_), .source_run_id = run})
                               .value();
        const auto version = store
                                 .execute(tracker::RegistryCommand(tracker::CreateModelVersion{
                                     .name = "m", .source = "s3://bucket/model", .run_id = run}))
                                 .value();
        return {
            .run = run,
            .model = std::get<tracker::LoggedModel>(model).model_id,
            .version = std::to_string(std::get<tracker::ModelVersion>(version).version),
            .upload =
                artifacts_->multipart().create(experiment_ + "/" + run + "/artifacts/f", 1)->id};
    }

    std::shared_ptr<Request> request_for(const Route& route, const Things& things) const {
        auto request = std::make_shared<Request>();
        request->method = route.method;
        request->path = route.pattern;
        const auto put = [&](const std::string& name, const std::string& value) {
            if (const auto at = request->path.find("{" + name + "}"); at != std::string::npos)
                request->path.replace(at, name.size() + 2, value);
        };
        put("experiment_id", experiment_);
        put("model_id", things.model);
        put("upload_id", things.upload);
        put("path...", experiment_ + "/" + things.run + "/artifacts/f");
        request->path = std::regex_replace(request->path, std::regex(R"(\{[^}]*\})"), "1");
        request->headers = {{"Content-Type", "application/json"}, {"Authorization", token_}};
        Json fields = {{"experiment_id", experiment_},
                       {"run_id", things.run},
                       {"run_uuid", things.run},
                       {"model_id", things.model},
                       {"source_run_id", things.run},
                       {"name", "m"},
                       {"version", things.version},
                       {"source", "s3://bucket/model"},
                       {"path", "x"},
                       {"alias", "best"}};
        if (request->path.ends_with("/registered-models/create")) fields["name"] = "new";
        if (route.method == Method::kGet || route.body == tracker::Body::kStream) {
            for (const auto& [name, value] : fields.items())
                request->query.emplace_back(name, value.get<std::string>());
            return request;
        }
        fields["models"] = {{{"model_id", things.model}}};
        fields["tags"] = {{{"key", "mlflow.parentRunId"}, {"value", things.run}}};
        request->body = to_text(fields);
        return request;
    }

    /// 200 if the route's handler would run, else the status of the refusal.
    int decide(const tracker::Authenticator& gate, const Route& route, const Things& things) {
        auto request = request_for(route, things);
        router_.set_authenticator(gate);
        Response refusal;
        if (router_.resolve(*request, refusal) == nullptr) return refusal.status;
        std::optional<Result<void>> may = gate.admit_now(*request, route.access);
        if (!may) {
            std::promise<Result<void>> decided;
            gate.admit(request, route.access,
                       [&](Result<void> result) { decided.set_value(std::move(result)); });
            may = decided.get_future().get();
        }
        return *may ? 200 : tracker::error_response(may->error()).status;
    }
    /// The routes that let the attempt change these things.
    std::set<std::string> open_to(const tracker::Authenticator& gate, const Things& things) {
        std::set<std::string> open;
        for (const Route& route : router_.routes()) {
            const tracker::Needs& needs = route.access;
            const bool changes = needs.is_write() || needs.least() > tracker::Permission::kRead;
            if (!changes || needs.access() == Access::kByUrl || needs.access() > Access::kWrite)
                continue;
            const std::string name =
                std::string(tracker::method_name(route.method)) + " " + route.pattern;
            const int status = decide(gate, route, things);
            EXPECT_TRUE(status == 200 || status == 403) << status << " " << name;
            const bool is_twin = route.pattern.starts_with("/ajax-api/") &&
                                 !route.pattern.ends_with("/upload-artifact");
            if (is_twin) {
                const std::string first = std::string(tracker::method_name(route.method)) +
                                          " /api" + route.pattern.substr(9);
                EXPECT_EQ(open.contains(first), status == 200) << name;
            } else if (status == 200) {
                open.insert(name);
            }
        }
        return open;
    }

    Response answer(const std::string& call, const Json& body, const std::string& credential) {
        auto request = std::make_shared<Request>();
        request->method = Method::kPost;
        request->path = request->raw_path = "/api/2.0/mlflow/" + call;
        request->headers.emplace_back("Content-Type", "application/json");
        if (!credential.empty()) request->headers.emplace_back("Authorization", credential);
        request->body = to_text(body);
        auto promise = std::make_shared<std::promise<Response>>();
        auto future = promise->get_future();
        router_.dispatch(request, [promise](Response response) { promise->set_value(response); });
        return future.get();
    }
    int post(const std::string& call, const Json& body) {
        return answer(call, body, token_).status;
    }
    static Json metric(const std::string& run, const std::string& model = "") {
        Json fields = {{"run_id", run}, {"key", "note"}, {"value", 1.5}, {"timestamp", 1}};
        if (!model.empty()) fields["model_id"] = model;
        return fields;
    }

    tracker::LocalGate loopback_{
        kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kLoopback};
    tracker::LocalGate off_{kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kOff};
    tracker::LocalGate closed_{
        kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kClosed};
    std::string token_;
    std::string experiment_;
    Things own_;
    Things sibling_;
    Things child_;
    Things grandchild_;
    Things nobodys_;
};

TEST_F(AttemptLimitsTest, EveryRouteThatWritesKeepsItToItsRun) {
    for (const tracker::LocalGate* gate : {&loopback_, &closed_, &off_}) {
        for (const Things* things : {&own_, &child_, &grandchild_})
            EXPECT_EQ(open_to(*gate, *things), allowed_with_own()) << things->run;
        for (const Things* things : {&sibling_, &nobodys_})
            EXPECT_EQ(open_to(*gate, *things), allowed_with_others()) << things->run;
    }
}

TEST_F(AttemptLimitsTest, BesideUsersItIsNoneOfThemEither) {
    const auto without = [](std::set<std::string> routes) {
        for (const std::string& refused : refused_beside_users()) routes.erase(refused);
        return routes;
    };
    for (const Things* things : {&own_, &child_, &grandchild_})
        EXPECT_EQ(open_to(users_, *things), without(allowed_with_own())) << things->run;
    for (const Things* things : {&sibling_, &nobodys_})
        EXPECT_EQ(open_to(users_, *things), without(allowed_with_others())) << things->run;
}

TEST_F(AttemptLimitsTest, ItLogsToItsRunsAndToNoOthers) {
    router_.set_authenticator(loopback_);
    for (const Things* things : {&own_, &child_, &grandchild_}) {
        EXPECT_EQ(post("runs/log-metric", metric(things->run)), 200);
        EXPECT_EQ(post("runs/log-metric", metric(things->run, things->model)), 200);
        EXPECT_EQ(post("runs/log-metric", metric(things->run, sibling_.model)), 403);
        const Json row = {{"key", "b"}, {"value", 1.5}, {"timestamp", 1}, {"step", 0}};
        EXPECT_EQ(post("runs/log-batch", {{"run_id", things->run}, {"metrics", {row}}}), 200);
        // It says that it has used a model of somebody else's.
        EXPECT_EQ(post("runs/log-inputs",
                       {{"run_id", things->run}, {"models", {{{"model_id", sibling_.model}}}}}),
                  200);
    }
    for (const Things* things : {&sibling_, &nobodys_}) {
        const Response refused = answer("runs/log-metric", metric(things->run), token_);
        EXPECT_EQ(refused.status, 403);
        EXPECT_THAT(refused.body, HasSubstr("of run " + own_.run + " writes to this run"));
        EXPECT_THAT(refused.body, HasSubstr("run " + things->run + " is none of these"));
        EXPECT_EQ(answer("runs/log-metric", metric(things->run), "").status, 200)
            << "on loopback, as with MLflow's own server";
    }
    const std::string nowhere(32, '0');
    EXPECT_EQ(post("runs/log-metric", metric(nowhere)), 404);
}

TEST_F(AttemptLimitsTest, NoRunIsTakenOver) {
    router_.set_authenticator(loopback_);
    EXPECT_EQ(post("runs/set-tag",
                   {{"run_id", sibling_.run}, {"key", "mlflow.parentRunId"}, {"value", own_.run}}),
              403);
    EXPECT_EQ(post("runs/log-metric", metric(sibling_.run)), 403);
    // Its own child that it gives away is no child of its any more.
    EXPECT_EQ(
        post("runs/set-tag",
             {{"run_id", child_.run}, {"key", "mlflow.parentRunId"}, {"value", sibling_.run}}),
        200);
    EXPECT_EQ(post("runs/log-metric", metric(child_.run)), 403);
    EXPECT_EQ(post("runs/log-metric", metric(grandchild_.run)), 403);
    // Runs within each other end the search.
    const std::string loop = make_run("");
    ASSERT_TRUE(
        world_.store().execute(tracker::SetTag{loop, {"mlflow.parentRunId", loop}}).has_value());
    EXPECT_EQ(post("runs/log-metric", metric(loop)), 403);
}

TEST_F(AttemptLimitsTest, WhatItMakesIsBeneathItsRun) {
    router_.set_authenticator(closed_);
    const auto made =
        parse_json(answer("runs/create", {{"experiment_id", experiment_}}, token_).body);
    ASSERT_TRUE(made.has_value());
    const std::string run = (*made)["run"]["info"]["run_id"];
    EXPECT_THAT((*made)["run"]["data"]["tags"].dump(), HasSubstr(own_.run));
    EXPECT_EQ(post("runs/log-metric", metric(run)), 200);
    const auto model = parse_json(
        answer("logged-models", {{"experiment_id", experiment_}, {"name", "net"}}, token_).body);
    ASSERT_TRUE(model.has_value());
    EXPECT_EQ((*model)["model"]["info"]["source_run_id"], own_.run);
    EXPECT_EQ(post("runs/log-metric", metric(run, (*model)["model"]["info"]["model_id"])), 200);
    const auto other = std::get<tracker::ExperimentId>(
        world_.store().execute(tracker::CreateExperiment{.name = "other"}).value());
    EXPECT_EQ(post("runs/create", {{"experiment_id", std::to_string(other)}}), 403);
    EXPECT_EQ(post("logged-models", {{"experiment_id", std::to_string(other)}}), 403);
}

TEST_F(AttemptLimitsTest, AVersionThatTakesAStageOverIsNotItsToMove) {
    router_.set_authenticator(loopback_);
    Json move = {{"name", "m"}, {"version", own_.version}, {"stage", "Production"}};
    EXPECT_EQ(post("model-versions/transition-stage", move), 200);
    move["archive_existing_versions"] = true;
    EXPECT_EQ(post("model-versions/transition-stage", move), 403);
}

TEST_F(AttemptLimitsTest, OfAnAttemptThatIsOverNothingIsLeft) {
    world_.advance_ms(World::kTtl_ms);
    for (const tracker::LocalGate* gate : {&loopback_, &closed_, &off_}) {
        router_.set_authenticator(*gate);
        EXPECT_EQ(post("runs/log-metric", metric(own_.run)), 409);
        EXPECT_EQ(post("runs/log-metric", metric(sibling_.run)), 409);
    }
}

}  // namespace
}  // namespace tune::tuner
