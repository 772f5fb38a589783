// Users over the routes of MLflow's basic-auth app: who is who, who may do what, and when that
// ends.

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/tracker/auth/users_api.h"

namespace tune::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string header_of(const Answer& answer, std::string_view name) {
    for (const auto& [key, value] : answer.response.headers)
        if (key == name) return value;
    return "";
}

// --- who asks ------------------------------------------------------------------------------------

TEST_F(UsersTest, EverybodyLogsIn) {
    const std::string id = experiment_of("bob", "e");
    const Json which = {{"experiment_id", id}};
    EXPECT_EQ(get("bob", "experiments/get", which).status, 200);
    for (const std::string& wrong :
         {std::string(), login("bob", "wrong password"), login("bob", ""), login("nobody", ""),
          login("nobody", password_of("bob")), login("", password_of("bob")),
          login("BOB", password_of("bob")), std::string("Bearer ") + password_of("bob"),
          std::string("Basic x"), std::string("Basic")}) {
        const Answer refused = send(request(Method::kGet, "experiments/get", which), wrong);
        EXPECT_EQ(refused.status, 401) << wrong;
        EXPECT_THAT(refused.message(), HasSubstr("You are not authenticated.")) << wrong;
        EXPECT_EQ(header_of(refused, "WWW-Authenticate"), "Basic realm=\"mlflow\"") << wrong;
    }
    EXPECT_EQ(get("owner", "experiments/get", which).status, 200) << "the owner needs no login";
}

TEST_F(UsersTest, ABrowsersScriptIsNotAskedByTheBrowser) {
    auto made = request(Method::kGet, "experiments/get", {{"experiment_id", "0"}});
    made->headers.emplace_back("Sec-Fetch-Site", "same-origin");
    EXPECT_EQ(header_of(api_.send(std::move(made)), "WWW-Authenticate"), "Bearer realm=\"tune\"");
}

TEST_F(UsersTest, ARememberedPasswordEndsWithItsChange) {
    const Json who = {{"username", "bob"}};
    EXPECT_EQ(get("bob", "users/get", who).status, 200);
    const std::string fresh = "another password";
    const Json change = {{"username", "bob"}, {"password", fresh}};
    EXPECT_EQ(call("ann", Method::kPatch, "users/update-password", change).status, 200);
    EXPECT_EQ(get("bob", "users/get", who).status, 401);
    EXPECT_EQ(send(request(Method::kGet, "users/get", who), login("bob", fresh)).status, 200);
    EXPECT_EQ(call("ann", Method::kDelete, "users/delete", who).status, 200);
    EXPECT_EQ(send(request(Method::kGet, "users/get", who), login("bob", fresh)).status, 401);
}

TEST_F(UsersTest, OnesOwnPasswordIsChangedByWhoKnowsIt) {
    const auto change = [this](const Json& fields) {
        return call("bob", Method::kPatch, "users/update-password", fields);
    };
    const std::string fresh = "another password";
    EXPECT_EQ(change({{"username", "bob"}, {"password", fresh}}).message(),
              "Current password is required when changing your own password.");
    EXPECT_EQ(
        change({{"username", "bob"}, {"password", fresh}, {"current_password", "x"}}).message(),
        "Current password does not match.");
    EXPECT_EQ(change({{"username", "bob"},
                      {"password", password_of("bob")},
                      {"current_password", password_of("bob")}})
                  .message(),
              "New password must differ from the current password.");
    EXPECT_EQ(
        change(
            {{"username", "bob"}, {"password", "short"}, {"current_password", password_of("bob")}})
            .message(),
        "Password must be at least 12 characters.");
    EXPECT_EQ(change({{"username", "eve"}, {"password", fresh}}).status, 403);
    EXPECT_EQ(
        change({{"username", "bob"}, {"password", fresh}, {"current_password", password_of("bob")}})
            .status,
        200);
    EXPECT_EQ(get("bob", "users/list", {}).status, 401);
}

TEST_F(UsersTest, AccountsAreTheAdmins) {
    const Json made = {{"username", "new"}, {"password", "a long password"}};
    EXPECT_EQ(post("bob", "users/create", made).status, 403);
    const Answer created = post("ann", "users/create", made);
    EXPECT_EQ(created.status, 200);
    EXPECT_EQ(created.json["user"]["username"], "new");
    EXPECT_EQ(created.json["user"]["is_admin"], false);
    EXPECT_FALSE(created.response.body.find("scrypt") != std::string::npos);
    const Answer twice = post("ann", "users/create", made);
    EXPECT_EQ(twice.code(), "RESOURCE_ALREADY_EXISTS");
    EXPECT_THAT(twice.message(), HasSubstr("User (username=new) already exists."));
    EXPECT_EQ(post("ann", "users/create", {{"username", "x"}, {"password", "short"}}).message(),
              "Password must be at least 12 characters.");
    EXPECT_EQ(
        post("ann", "users/create", {{"username", ""}, {"password", "a long password"}}).message(),
        "Username and password cannot be empty.");
    EXPECT_EQ(post("ann", "users/create", {{"username", "x"}, {"password", "password1234"}}).status,
              400)
        << "the password that older servers came with";
    EXPECT_EQ(get("ann", "users/get", {{"username", "missing"}}).message(),
              "User with username=missing not found");
    EXPECT_EQ(get("bob", "users/get", {{"username", "eve"}}).status, 403);
    EXPECT_EQ(get("bob", "users/current", {}).json["user"]["username"], "bob");
    EXPECT_EQ(call("ann", Method::kDelete, "users/delete", {{"username", "ann"}}).code(),
              "BAD_REQUEST");
    EXPECT_EQ(
        call("bob", Method::kPatch, "users/update-admin", {{"username", "bob"}, {"is_admin", true}})
            .status,
        403);
    EXPECT_EQ(call("owner", Method::kPatch, "users/update-admin",
                   {{"username", "ann"}, {"is_admin", false}})
                  .code(),
              "BAD_REQUEST")
        << "the last admin stays";
}

TEST_F(UsersTest, ManyLoginsAtOnceAreAllAnsweredOrPutOff) {
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    std::atomic<int> put_off{0};
    for (int i = 0; i < 24; ++i)
        threads.emplace_back([&, i] {
            auto asked = request(Method::kGet, "users/current", {});
            asked->remote_address = "10.0.0.1";
            const std::string who = i % 2 == 0 ? "bob" : "eve";
            const Answer answer = send(std::move(asked), login(who, password_of(who)));
            (answer.status == 200 ? right : put_off) += 1;
            EXPECT_TRUE(answer.status == 200 || answer.status == 429) << answer.status;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GE(right, static_cast<int>(kHashesWaitingPerClientMax));
    EXPECT_EQ(right + put_off, 24);
}

// --- the page ------------------------------------------------------------------------------------

TEST_F(UsersTest, ThePageLogsInAndOut) {
    EXPECT_EQ(api_.call(Method::kGet, "/api/2.0/tune/login").json["auth"], "basic");
    const auto log_in = [this](const std::string& password) {
        return api_.call(Method::kPost, "/api/2.0/tune/login",
                         to_text({{"username", "bob"}, {"password", password}}));
    };
    EXPECT_EQ(log_in("wrong password").status, 401);
    const Answer in = log_in(password_of("bob"));
    ASSERT_EQ(in.status, 200);
    const std::string set = header_of(in, "Set-Cookie");
    EXPECT_THAT(set, HasSubstr("; HttpOnly"));
    EXPECT_THAT(set, HasSubstr("; SameSite=Strict"));
    const std::string cookie = set.substr(0, set.find(';'));
    const auto current = [&](const std::string& sent) {
        auto asked = request(Method::kGet, "users/current", {});
        asked->headers.emplace_back("Cookie", sent);
        return api_.send(std::move(asked));
    };
    EXPECT_EQ(current("x=1; " + cookie).json["user"]["username"], "bob");
    EXPECT_EQ(current(cookie).status, 200) << "and when it is remembered";
    EXPECT_EQ(current(cookie.substr(0, cookie.size() - 1) + "x").status, 401);
    auto out = request(Method::kPost, "/api/2.0/tune/logout", Json::object());
    out->headers.emplace_back("Cookie", cookie);
    const Answer gone = api_.send(std::move(out));
    EXPECT_EQ(gone.status, 200);
    EXPECT_THAT(header_of(gone, "Set-Cookie"), HasSubstr("Max-Age=0"));
    EXPECT_EQ(current(cookie).status, 401) << "also for who kept the cookie";
}

TEST_F(UsersTest, ASessionEndsWithItsTimeAndWithThePassword) {
    const auto log_in = [this] {
        const Answer in =
            api_.call(Method::kPost, "/api/2.0/tune/login",
                      to_text({{"username", "bob"}, {"password", password_of("bob")}}));
        const std::string set = header_of(in, "Set-Cookie");
        return set.substr(0, set.find(';'));
    };
    const auto status = [this](const std::string& cookie) {
        auto asked = request(Method::kGet, "users/current", {});
        asked->headers.emplace_back("Cookie", cookie);
        return api_.send(std::move(asked)).status;
    };
    const std::string first = log_in();
    EXPECT_EQ(status(first), 200);
    clock_.advance_ms(kSessionLife_ms + kSessionTrusted_ms);
    EXPECT_EQ(status(first), 401);
    const std::string second = log_in();
    EXPECT_EQ(status(second), 200);
    EXPECT_EQ(call("ann", Method::kPatch, "users/update-password",
                   {{"username", "bob"}, {"password", "another password"}})
                  .status,
              200);
    EXPECT_EQ(status(second), 401);
}

TEST_F(UsersTest, AUsersTokenActsAsTheUserWithinItsScope) {
    const std::string tokens = "/api/2.0/tune/users/current/tokens";
    const std::string mine = experiment_of("bob", "mine");
    const auto made = [&](const char* scope) {
        return post("bob", tokens, {{"scope", scope}}).json.value("secret", "");
    };
    const std::string reads = "Bearer " + made("read");
    const std::string acts = "Bearer " + made("user");
    const Json which = {{"experiment_id", mine}};
    EXPECT_EQ(send(request(Method::kGet, "experiments/get", which), reads).status, 200);
    EXPECT_EQ(send(request(Method::kPost, "runs/create", which), reads).status, 403);
    EXPECT_EQ(send(request(Method::kPost, "runs/create", which), acts).status, 200);
    EXPECT_EQ(send(request(Method::kGet, "users/current", {}), acts).json["user"]["username"],
              "bob");
    const std::string eves = experiment_of("eve", "hers");
    EXPECT_EQ(send(request(Method::kPost, "runs/create", {{"experiment_id", eves}}), acts).status,
              403);
    EXPECT_EQ(send(request(Method::kPost, tokens, {{"scope", "user"}}), acts).status, 403)
        << "a token makes no other";
    const Answer listed = call("bob", Method::kGet, tokens);
    ASSERT_EQ(listed.json["tokens"].size(), 2U);
    EXPECT_TRUE(call("eve", Method::kGet, tokens).json["tokens"].empty());
    const std::string id = listed.json["tokens"][0]["token_id"];
    EXPECT_EQ(call("eve", Method::kDelete, tokens + "/" + id).status, 404);
    EXPECT_EQ(call("bob", Method::kDelete, tokens + "/" + id).status, 200);
    EXPECT_EQ(send(request(Method::kGet, "experiments/get", which), reads).status, 401);
    call("ann", Method::kDelete, "users/delete", {{"username", "bob"}});
    EXPECT_EQ(send(request(Method::kGet, "experiments/get", which), acts).status, 401)
        << "it ends with the user";
}

// --- what they may do ----------------------------------------------------------------------------

TEST_F(UsersTest, WhoMakesItManagesIt) {
    const std::string id = experiment_of("bob", "mine");
    const std::string run = run_of("bob", id);
    ASSERT_FALSE(run.empty());
    const Json metric = {{"run_id", run}, {"key", "m"}, {"value", 1.0}, {"timestamp", 1}};
    EXPECT_EQ(post("bob", "runs/log-metric", metric).status, 200);
    EXPECT_EQ(post("eve", "runs/log-metric", metric).status, 403);
    EXPECT_EQ(post("eve", "runs/log-metric", metric).message(), "Permission denied");
    EXPECT_EQ(get("eve", "runs/get", {{"run_id", run}}).status, 200) << "READ by default";
    grant("eve", "experiment", id, "EDIT");
    EXPECT_EQ(post("eve", "runs/log-metric", metric).status, 200);
    EXPECT_EQ(post("eve", "runs/delete", {{"run_id", run}}).status, 403) << "takes MANAGE";
    EXPECT_EQ(post("bob", "runs/delete", {{"run_id", run}}).status, 200);
    EXPECT_EQ(post("ann", "runs/restore", {{"run_id", run}}).status, 200);
    EXPECT_EQ(post("eve", "experiments/delete", {{"experiment_id", id}}).status, 403);
}

TEST_F(UsersTest, WhatIsNotThereIsAsClosedAsWhatMayNotBeSeen) {
    EXPECT_EQ(get("bob", "runs/get", {{"run_id", std::string(32, 'a')}}).status, 403);
    EXPECT_EQ(get("ann", "runs/get", {{"run_id", std::string(32, 'a')}}).status, 404);
    EXPECT_EQ(get("bob", "experiments/get-by-name", {{"experiment_name", "none"}}).status, 404)
        << "mlflow.set_experiment asks whether a name is free";
    EXPECT_EQ(get("bob", "runs/get", {}).status, 400);
}

TEST_F(UsersTest, AMetricOfAModelTouchesTheModelsExperiment) {
    const std::string theirs = experiment_of("eve", "hers");
    const Answer model = post("eve", "logged-models", {{"experiment_id", theirs}, {"name", "m"}});
    const std::string model_id = model.json["model"]["info"]["model_id"];
    const std::string run = run_of("bob", experiment_of("bob", "mine"));
    Json metric = {{"key", "m"}, {"value", 1.0}, {"timestamp", 1}, {"model_id", model_id}};
    EXPECT_EQ(post("bob", "runs/log-batch", {{"run_id", run}, {"metrics", {metric}}}).status, 403);
    metric["run_id"] = run;
    EXPECT_EQ(post("bob", "runs/log-metric", metric).status, 403);
    metric.erase("model_id");
    metric["modelId"] = model_id;
    EXPECT_EQ(post("bob", "runs/log-metric", metric).status, 403) << "by either spelling";
    EXPECT_EQ(post("bob", "runs/outputs",
                   {{"run_id", run}, {"models", {{{"model_id", model_id}, {"step", 0}}}}})
                  .status,
              403);
    grant("bob", "experiment", theirs, "EDIT");
    EXPECT_EQ(post("bob", "runs/log-metric", metric).status, 200);
}

TEST_F(UsersTest, TwoFieldsOfOneNameDoNotHideWhatIsTouched) {
    const std::string theirs = run_of("eve", experiment_of("eve", "hers"));
    const std::string mine = run_of("bob", experiment_of("bob", "mine"));
    for (const std::string& body : {R"({"run_id":")" + mine + R"(","run_id":")" + theirs +
                                        R"(","key":"k","value":1,"timestamp":1})",
                                    R"({"run_id":")" + mine + R"(","runId":")" + theirs +
                                        R"(","key":"k","value":1,"timestamp":1})",
                                    R"({"run_uuid":")" + mine + R"(","run_id":")" + theirs +
                                        R"(","key":"k","value":1,"timestamp":1})"}) {
        auto asked = request(Method::kPost, "runs/log-metric", {});
        asked->body = body;
        const int status = send(std::move(asked), authorization("bob")).status;
        EXPECT_TRUE(status == 403 || status == 400) << status << " " << body;
    }
    EXPECT_TRUE(
        get("eve", "runs/get", {{"run_id", theirs}}).json["run"]["data"]["metrics"].empty());
}

TEST_F(UsersTest, AGrantOrDenialCountsFromItsAnswerOn) {
    const std::string id = experiment_of("eve", "hers");
    const std::string run = run_of("eve", id);
    const auto reads = [&] { return get("bob", "runs/get", {{"run_id", run}}).status; };
    EXPECT_EQ(reads(), 200);
    grant("bob", "experiment", id, "DENY");
    EXPECT_EQ(reads(), 403);
    const Json which = {{"username", "bob"}, {"resource_type", "experiment"}, {"resource_id", id}};
    EXPECT_EQ(post("owner", "users/permissions/grant",
                   {{"username", "bob"},
                    {"resource_type", "experiment"},
                    {"resource_id", id},
                    {"permission", "READ"}})
                  .code(),
              "RESOURCE_ALREADY_EXISTS");
    EXPECT_EQ(post("owner", "users/permissions/revoke", which).status, 200);
    EXPECT_EQ(reads(), 200);
    EXPECT_EQ(post("owner", "users/permissions/revoke", which).code(), "RESOURCE_DOES_NOT_EXIST");
    grant("bob", "experiment", "*", "DENY");
    EXPECT_EQ(reads(), 403);
    grant("bob", "experiment", id, "MANAGE");
    EXPECT_EQ(reads(), 403) << "a denial of all beats a grant of one";
}

TEST_F(UsersTest, WhoManagesItGivesRightsOnIt) {
    const std::string id = experiment_of("bob", "mine");
    const Json to_eve = {{"username", "eve"},
                         {"resource_type", "experiment"},
                         {"resource_id", id},
                         {"permission", "MANAGE"}};
    EXPECT_EQ(post("eve", "users/permissions/grant", to_eve).status, 403);
    EXPECT_EQ(post("bob", "users/permissions/grant", to_eve).status, 200);
    const Json question = {
        {"username", "eve"}, {"resource_type", "experiment"}, {"resource_id", id}};
    EXPECT_EQ(get("eve", "users/permissions/get", question).json,
              (Json{{"allowed", true}, {"permission", "MANAGE"}}));
    EXPECT_EQ(get("joe", "users/permissions/get", question).status, 403);
    const Json all = {{"username", "eve"},
                      {"resource_type", "experiment"},
                      {"resource_id", "*"},
                      {"permission", "READ"}};
    EXPECT_EQ(post("bob", "users/permissions/grant", all).status, 403);
    for (const auto& [field, value, message] :
         {std::tuple("resource_type", "gadget", "Invalid resource type 'gadget'"),
          std::tuple("permission", "OWN", "Invalid permission 'OWN'. Valid permissions are:"),
          std::tuple("permission", "NO_PERMISSIONS", "Resource-level grants accept only: ('DENY',"),
          std::tuple("resource_type", "workspace", "is not supported by the per-user permission"),
          std::tuple("username", "nobody", "User with username=nobody not found")}) {
        Json wrong = to_eve;
        wrong[field] = value;
        EXPECT_THAT(post("ann", "users/permissions/grant", wrong).message(), HasSubstr(message));
    }
}

TEST_F(UsersTest, ClientsBefore317GrantBySingleResources) {
    const std::string id = experiment_of("bob", "mine");
    Json fields = {{"experiment_id", id}, {"username", "eve"}, {"permission", "NO_PERMISSIONS"}};
    const Answer made = post("bob", "experiments/permissions/create", fields);
    EXPECT_EQ(made.status, 200) << made.message();
    EXPECT_EQ(made.json["experiment_permission"]["permission"], "NO_PERMISSIONS");
    EXPECT_EQ(get("eve", "experiments/get", {{"experiment_id", id}}).status, 403);
    fields["permission"] = "EDIT";
    EXPECT_EQ(call("bob", Method::kPatch, "experiments/permissions/update", fields).status, 200);
    EXPECT_FALSE(run_of("eve", id).empty());
    const Json which = {{"experiment_id", id}, {"username", "eve"}};
    EXPECT_EQ(get("bob", "experiments/permissions/get", which)
                  .json["experiment_permission"]["permission"],
              "EDIT");
    EXPECT_EQ(get("eve", "experiments/permissions/get", which).status, 403);
    EXPECT_EQ(call("bob", Method::kDelete, "experiments/permissions/delete", which).status, 200);
    EXPECT_TRUE(run_of("eve", id).empty());
    EXPECT_EQ(post("bob", "registered-models/create", {{"name", "m"}}).status, 200);
    EXPECT_EQ(post("bob", "registered-models/permissions/create",
                   {{"name", "m"}, {"username", "eve"}, {"permission", "EDIT"}})
                  .status,
              200);
    EXPECT_EQ(call("eve", Method::kPatch, "registered-models/update",
                   {{"name", "m"}, {"description", "d"}})
                  .status,
              200);
}

TEST_F(UsersTest, ARoleIsSharedAndEndsForAll) {
    const std::string id = experiment_of("eve", "hers");
    const Json named = {{"workspace", "default"}, {"name", "team"}};
    EXPECT_EQ(post("bob", "roles/create", named).status, 403);
    const Answer made = post("ann", "roles/create", named);
    ASSERT_EQ(made.status, 200) << made.message();
    const std::int64_t role = made.json["role"]["id"];
    EXPECT_EQ(post("ann", "roles/create", named).code(), "RESOURCE_ALREADY_EXISTS");
    EXPECT_EQ(
        post("ann", "roles/create", {{"workspace", "default"}, {"name", "__user_1__"}}).status,
        400);
    EXPECT_EQ(post("ann", "roles/permissions/add",
                   {{"role_id", role},
                    {"resource_type", "experiment"},
                    {"resource_pattern", id},
                    {"permission", "EDIT"}})
                  .status,
              200);
    for (const char* who : {"bob", "joe"})
        EXPECT_EQ(post("ann", "roles/assign", {{"username", who}, {"role_id", role}}).status, 200);
    EXPECT_FALSE(run_of("bob", id).empty());
    EXPECT_FALSE(run_of("joe", id).empty());
    EXPECT_EQ(get("ann", "roles/users/list", {{"role_id", role}}).json["assignments"].size(), 2U);
    EXPECT_EQ(get("bob", "users/roles/list", {{"username", "bob"}}).json["roles"][0]["name"],
              "team");
    EXPECT_EQ(
        call("ann", Method::kDelete, "roles/unassign", {{"username", "joe"}, {"role_id", role}})
            .status,
        200);
    EXPECT_TRUE(run_of("joe", id).empty());
    EXPECT_EQ(call("ann", Method::kDelete, "roles/delete", {{"role_id", role}}).status, 200);
    EXPECT_TRUE(run_of("bob", id).empty());
}

TEST_F(UsersTest, ANameThatIsGivenAgainCarriesNoRights) {
    EXPECT_EQ(post("bob", "registered-models/create", {{"name", "m"}}).status, 200);
    grant("eve", "registered_model", "m", "EDIT");
    EXPECT_EQ(post("bob", "registered-models/rename", {{"name", "m"}, {"new_name", "n"}}).status,
              200);
    const auto edits = [this](const char* who, const char* name) {
        return call(who, Method::kPatch, "registered-models/update",
                    {{"name", name}, {"description", "d"}})
            .status;
    };
    EXPECT_EQ(edits("bob", "n"), 200) << "rights follow the name";
    EXPECT_EQ(edits("eve", "n"), 200);
    EXPECT_EQ(call("bob", Method::kDelete, "registered-models/delete", {{"name", "n"}}).status,
              200);
    EXPECT_EQ(post("joe", "registered-models/create", {{"name", "n"}}).status, 200);
    EXPECT_EQ(edits("bob", "n"), 403);
    EXPECT_EQ(edits("eve", "n"), 403);
    EXPECT_EQ(edits("joe", "n"), 200);
}

TEST_F(UsersTest, NobodyReachesOthersFilesThroughAnExperimentOfTheirOwn) {
    const std::string theirs = experiment_of("eve", "hers");
    grant("bob", "experiment", theirs, "DENY");
    const Json wanted = {{"name", "trick"}, {"artifact_location", "mlflow-artifacts:/" + theirs}};
    EXPECT_EQ(post("bob", "experiments/create", wanted).status, 403);
    EXPECT_EQ(post("ann", "experiments/create", wanted).status, 200);
    const std::string run = run_of("eve", theirs);
    const std::string base = "/api/2.0/mlflow-artifacts/";
    for (const std::string& path : {theirs + "/" + run + "/artifacts/f", "./" + theirs + "/f",
                                    "0/../" + theirs + "/f", std::string("x")}) {
        const int status = call("bob", Method::kGet, base + "artifacts/" + path).status;
        EXPECT_TRUE(status == 403 || status == 400) << status << " " << path;
        EXPECT_NE(call("bob", Method::kDelete, base + "artifacts/" + path).status, 200);
    }
    EXPECT_EQ(get("bob", base + "artifacts", {{"path", ""}}).status, 403) << "the root is all";
    EXPECT_EQ(post("bob", base + "mpu/create/" + theirs + "/" + run + "/artifacts",
                   {{"path", "f"}, {"num_parts", 1}})
                  .status,
              403);
}

// --- searches ------------------------------------------------------------------------------------

TEST_F(ClosedUsersTest, ASearchFindsWhatMayBeReadInFullPages) {
    std::vector<std::string> mine;
    for (int i = 0; i < 12; ++i) {
        const std::string name = "e" + std::to_string(100 + i);
        const std::string id = experiment_of(i % 3 == 0 ? "bob" : "eve", name);
        if (i % 3 == 0) mine.push_back(name);
    }
    std::vector<std::string> found;
    Json query = {{"max_results", 2}, {"order_by", {"name ASC"}}};
    int pages = 0;
    for (;;) {
        const Answer page = post("bob", "experiments/search", query);
        ASSERT_EQ(page.status, 200) << page.message();
        ++pages;
        const Json items = page.json.value("experiments", Json::array());
        for (const Json& item : items) found.push_back(item["name"]);
        const std::string next = page.json.value("next_page_token", "");
        if (next.empty()) break;
        EXPECT_EQ(items.size(), 2U) << "a page that is not the last is full";
        query["page_token"] = next;
    }
    EXPECT_EQ(found, mine);
    EXPECT_LE(pages, 3);
    EXPECT_EQ(post("ann", "experiments/search", {{"max_results", 100}}).json["experiments"].size(),
              13U);
    EXPECT_FALSE(
        post("joe", "experiments/search", {{"max_results", 100}}).json.contains("experiments"));
}

TEST_F(ClosedUsersTest, RunsAndModelsOfOthersAreNotFound) {
    const std::string mine = experiment_of("bob", "mine");
    const std::string theirs = experiment_of("eve", "hers");
    const std::string run = run_of("bob", mine);
    run_of("eve", theirs);
    const auto found = [this](const Json& ids) {
        const Json runs = post("bob", "runs/search", {{"experiment_ids", ids}}).json;
        return runs.value("runs", Json::array()).size();
    };
    EXPECT_EQ(found({mine, theirs}), 1U);
    EXPECT_EQ(found({theirs}), 0U);
    EXPECT_EQ(post("bob", "logged-models/search", {{"experiment_ids", {theirs}}}).status, 200);
    for (const char* who : {"bob", "eve"})
        EXPECT_EQ(
            post(who, "registered-models/create", {{"name", std::string("of ") + who}}).status,
            200);
    const Json models = get("bob", "registered-models/search", {}).json["registered_models"];
    ASSERT_EQ(models.size(), 1U);
    EXPECT_EQ(models[0]["name"], "of bob");
    for (const char* who : {"bob", "eve"})
        EXPECT_EQ(post(who, "model-versions/create",
                       {{"name", std::string("of ") + who}, {"source", "s3://bucket/m"}})
                      .status,
                  200);
    EXPECT_EQ(get("bob", "model-versions/search", {}).json["model_versions"].size(), 1U);
    EXPECT_EQ(get("ann", "model-versions/search", {}).json["model_versions"].size(), 2U);
    const Answer experiments = call("bob", Method::kGet, "/api/ui/experiments");
    ASSERT_EQ(experiments.json["experiments"].size(), 1U);
    EXPECT_EQ(experiments.json["experiments"][0]["name"], "mine");
    EXPECT_EQ(call("bob", Method::kGet, "/api/ui/experiments/" + theirs + "/runs").status, 403);
    EXPECT_EQ(get("bob", "/api/ui/series", {{"run_ids", run}, {"metric", "m"}}).status, 200);
}

TEST_F(ClosedUsersTest, AVersionIsMadeOfWhatItsMakerMayRead) {
    const std::string run = run_of("eve", experiment_of("eve", "hers"));
    EXPECT_EQ(post("bob", "registered-models/create", {{"name", "m"}}).status, 200);
    const Json version = {{"name", "m"}, {"source", "runs:/" + run + "/model"}, {"run_id", run}};
    EXPECT_EQ(post("bob", "model-versions/create", version).status, 403);
    EXPECT_EQ(post("eve", "registered-models/create", {{"name", "n"}}).status, 200);
    EXPECT_EQ(post("eve", "model-versions/create", {{"name", "n"}, {"source", "s3://b/x"}}).status,
              200);
    EXPECT_EQ(
        post("bob", "model-versions/create", {{"name", "m"}, {"source", "models:/n/1"}}).status,
        403);
    grant("bob", "registered_model", "n", "READ");
    EXPECT_EQ(
        post("bob", "model-versions/create", {{"name", "m"}, {"source", "models:/n/1"}}).status,
        200);
}

TEST_F(ClosedUsersTest, LiveEventsOfOthersAreLeftOut) {
    const std::string mine = experiment_of("bob", "mine");
    const std::string theirs = experiment_of("eve", "hers");
    const Answer stream =
        get("bob", "/api/ui/events",
            {{"topics", "experiments,experiment:" + mine + ",experiment:" + theirs}});
    ASSERT_EQ(stream.status, 200);
    EXPECT_TRUE(api_.hub.wanted("experiment:" + mine));
    EXPECT_FALSE(api_.hub.wanted("experiment:" + theirs));
    EXPECT_TRUE(api_.hub.wanted("experiments")) << "of which bob gets what bob may see";
    EXPECT_EQ(get("joe", "/api/ui/events", {{"topics", "experiment:" + theirs}}).status, 200);
}

TEST_F(ClosedUsersTest, AnUploadWaitsUntilItIsKnownWhoSendsIt) {
    const std::string mine = experiment_of("owner", "theirs");
    const std::string path =
        "/api/2.0/mlflow-artifacts/artifacts/" + mine + "/" + std::string(32, 'a') + "/artifacts/f";
    const auto upload = [&](const std::string& who) {
        auto sent = request(Method::kPut, path, Json::object());
        sent->body.clear();
        sent->headers.emplace_back("Authorization", authorization(who));
        Response refusal;
        const Route* route = api_.router.resolve(*sent, refusal);
        if (route == nullptr) return refusal.status;
        Result<std::unique_ptr<BodySink>> sink = route->open_sink(sent);
        if (!sink) return error_response(sink.error()).status;
        std::promise<Result<void>> written;
        (*sink)->write("bytes", [&](Result<void> done) { written.set_value(std::move(done)); });
        const Result<void> done = written.get_future().get();
        if (!done) return error_response(done.error()).status;
        std::promise<int> status;
        (*sink)->finish([&](const Response& response) { status.set_value(response.status); });
        return status.get_future().get();
    };
    EXPECT_EQ(upload(""), 401);
    EXPECT_EQ(upload("bob"), 403);
    grant("bob", "experiment", mine, "EDIT");
    EXPECT_EQ(upload("bob"), 200);
    EXPECT_EQ(call("bob", Method::kDelete, path).status, 403) << "takes MANAGE (CVE-2024-4263)";
    EXPECT_EQ(call("ann", Method::kDelete, path).status, 200);
}

}  // namespace
}  // namespace tune::tracker
