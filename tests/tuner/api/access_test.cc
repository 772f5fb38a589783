// Who may do what, over the whole application: every route is asked with every kind of credential,
// and the routes that start, stop or change what runs are listed here by hand, so that a new one
// cannot slip in with less than it needs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "base/system/file.h"
#include "tests/tuner/api/application.h"

namespace tune::tuner {
namespace {

using tracker::Access;
using tracker::Method;
using tracker::Request;
using tracker::Response;
using tracker::Route;

class AccessTest : public ApplicationTest {
protected:
    AccessTest() {
        EXPECT_TRUE(world_.create().has_value());
        EXPECT_TRUE(world_.register_agent("a").has_value());
    }

    /// 200 if the route would be called, else the status of the refusal.
    static int status_of(const tracker::Router& router, const Route& route,
                         const tracker::Fields& headers) {
        Request request;
        request.method = route.method;
        request.path = std::regex_replace(route.pattern, std::regex(R"(\{[^}]*\})"), "x");
        request.headers = headers;
        request.headers.emplace_back("Content-Type", "application/json");
        Response refusal;
        return router.resolve(request, refusal) != nullptr ? 200 : refusal.status;
    }
    int status_of(const Route& route, const tracker::Fields& headers) {
        return status_of(router_, route, headers);
    }
    static std::string name_of(const Route& route) {
        return std::string(tracker::method_name(route.method)) + " " + route.pattern;
    }

    tracker::LocalGate gate_{
        kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kLoopback};
    tracker::LocalGate off_{kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kOff};
    tracker::LocalGate closed_{
        kToken, {login_, *tokens_, attempts_, limits_}, tracker::Guard::kClosed};
};

TEST_F(AccessTest, EveryRouteAsksEverybodyForWhatItNeeds) {
    router_.set_authenticator(gate_);
    const std::string set_cookie = login_.redeem(login_.new_code());
    const std::string cookie = set_cookie.substr(0, set_cookie.find(';'));
    const std::string attempt = "Bearer " + world_.lease_with_token("a")->leases.at(0).token;
    const std::vector<std::pair<std::string, tracker::Fields>> strangers = {
        {"nobody", {}},
        {"a wrong token", {{"Authorization", std::string("Bearer x") + kToken}}},
        {"half a token", {{"Authorization", "Bearer 0123456789abcde"}}},
        {"a token without its scheme", {{"Authorization", kToken}}},
        {"a login", {{"Authorization", "Basic YWRtaW46cGFzc3dvcmQxMjM0"}}},
        {"an attempt nobody knows",
         {{"Authorization", "Bearer tune-attempt.0123456789abcdef0123456789abcdef.1.00"}}},
        {"a forged cookie", {{"Cookie", cookie.substr(0, cookie.size() - 1) + "x"}}},
        {"the token as a cookie", {{"Cookie", cookie.substr(0, cookie.find('=')) + "=" + kToken}}},
    };
    int closed = 0;
    for (const Route& route : router_.routes()) {
        const bool is_closed = route.access.access() > Access::kWrite;
        closed += is_closed ? 1 : 0;
        for (const auto& [who, headers] : strangers)
            EXPECT_EQ(status_of(route, headers), is_closed ? 401 : 200)
                << who << " " << name_of(route);
        EXPECT_EQ(status_of(route, {{"Authorization", attempt}}), is_closed ? 403 : 200)
            << "an attempt " << name_of(route);
        EXPECT_EQ(status_of(route, {{"Authorization", std::string("Bearer ") + kToken}}), 200)
            << "the owner " << name_of(route);
        EXPECT_EQ(status_of(route, {{"Cookie", "a=b; " + cookie + "; c=d"}}), 200)
            << "the page " << name_of(route);
    }
    EXPECT_GT(closed, 30);
}

TEST_F(AccessTest, WhatChangesWhatRunsIsTheOwners) {
    std::map<Access, std::set<std::string>> found;
    for (const Route& route : router_.routes()) {
        if (route.pattern.starts_with("/ajax-api/")) {
            const std::string twin = "/api" + route.pattern.substr(9);
            for (const Route& other : router_.routes()) {
                if (other.pattern != twin || other.method != route.method) continue;
                EXPECT_EQ(other.access.access(), route.access.access()) << name_of(route);
            }
            continue;
        }
        found[route.access.access()].insert(name_of(route));
    }
    const std::string tune = "/api/2.0/tune/";
    const std::string v2 = "/api/2.0/mlflow/";
    const std::string v3 = "/api/3.0/mlflow/";
    const std::string users = v2 + "users/";
    EXPECT_EQ(found[Access::kRun],
              (std::set<std::string>{"POST " + tune + "studies",
                                     "GET " + tune + "studies/{name}/replay",
                                     "POST " + tune + "studies/{name}/ask",
                                     "POST " + tune + "studies/{name}/report",
                                     "POST " + tune + "studies/{name}/renew",
                                     "POST " + tune + "studies/{name}/tell",
                                     "POST " + tune + "studies/{name}/enqueue",
                                     "POST " + tune + "studies/{name}/pause",
                                     "POST " + tune + "studies/{name}/resume",
                                     "POST " + tune + "studies/{name}/stop",
                                     "POST " + tune + "studies/{name}/rename",
                                     "POST " + tune + "studies/{name}/priority",
                                     "POST " + tune + "studies/{name}/restore",
                                     "DELETE " + tune + "studies/{name}",
                                     "POST " + tune + "users/current/tokens",
                                     "GET " + tune + "users/current/tokens",
                                     "DELETE " + tune + "users/current/tokens/{token_id}",
                                     "GET " + users + "get",
                                     "GET " + users + "list",
                                     "GET " + users + "current",
                                     "PATCH " + users + "update-password",
                                     "POST " + v3 + "users/permissions/grant",
                                     "POST " + v3 + "users/permissions/revoke",
                                     "GET " + v3 + "users/permissions/get",
                                     "GET " + v3 + "users/permissions/list",
                                     "GET " + v3 + "users/current/permissions",
                                     "GET " + v3 + "users/roles/list",
                                     "POST " + v3 + "roles/create",
                                     "GET " + v3 + "roles/get",
                                     "GET " + v3 + "roles/list",
                                     "PATCH " + v3 + "roles/update",
                                     "DELETE " + v3 + "roles/delete",
                                     "POST " + v3 + "roles/permissions/add",
                                     "PATCH " + v3 + "roles/permissions/update",
                                     "DELETE " + v3 + "roles/permissions/remove",
                                     "GET " + v3 + "roles/permissions/list",
                                     "POST " + v3 + "roles/assign",
                                     "DELETE " + v3 + "roles/unassign",
                                     "GET " + v3 + "roles/users/list",
                                     "POST " + v2 + "experiments/permissions/create",
                                     "GET " + v2 + "experiments/permissions/get",
                                     "PATCH " + v2 + "experiments/permissions/update",
                                     "DELETE " + v2 + "experiments/permissions/delete",
                                     "POST " + v2 + "registered-models/permissions/create",
                                     "GET " + v2 + "registered-models/permissions/get",
                                     "PATCH " + v2 + "registered-models/permissions/update",
                                     "DELETE " + v2 + "registered-models/permissions/delete"}));
    EXPECT_EQ(found[Access::kAgent],
              (std::set<std::string>{
                  "POST " + tune + "agents/register", "POST " + tune + "agents/{id}/lease",
                  "POST " + tune + "agents/{id}/poll", "POST " + tune + "agents/{id}/heartbeat",
                  "POST " + tune + "agents/{id}/report",
                  "POST " + tune + "agents/{id}/attempts/{run_id}/{attempt}/finish"}));
    EXPECT_EQ(found[Access::kAdmin],
              (std::set<std::string>{
                  "POST " + tune + "page-codes", "POST " + tune + "gc", "POST " + tune + "backups",
                  "POST " + tune + "imports", "GET " + tune + "backups/{name}",
                  "DELETE " + tune + "backups/{name}", "POST " + tune + "tokens",
                  "GET " + tune + "tokens", "DELETE " + tune + "tokens/{token_id}",
                  "POST " + tune + "quotas", "DELETE " + tune + "quotas/{user}",
                  "POST " + users + "create", "PATCH " + users + "update-admin",
                  "DELETE " + users + "delete"}));
    EXPECT_EQ(found[Access::kOpen],
              (std::set<std::string>{"GET /health", "GET /version", "GET /api/openapi.json",
                                     "GET /api/docs", "GET /api/3.0/mlflow/server-info",
                                     "GET " + tune + "login", "POST " + tune + "login",
                                     "POST " + tune + "logout"}));
    EXPECT_EQ(found[Access::kByUrl],
              (std::set<std::string>{"PUT " + tune + "uploads/{upload_id}/parts/{part_number}"}));
    for (const std::string& read : found[Access::kRead])
        EXPECT_TRUE(read.starts_with("GET ") || read.starts_with("POST /api/2.0/mlflow/")) << read;
    for (const std::string& write : found[Access::kWrite])
        EXPECT_FALSE(write.starts_with("GET ")) << write;
}

TEST_F(AccessTest, WithoutAGateTheRestIsClosed) {
    const tracker::Router& bare = router_;
    for (const Route& route : bare.routes())
        EXPECT_EQ(status_of(bare, route, {}), route.access.access() > Access::kWrite ? 401 : 200)
            << name_of(route);
}

TEST_F(AccessTest, BeyondLoopbackNothingIsOpenButThePage) {
    router_.set_authenticator(closed_);
    const std::string attempt = "Bearer " + world_.lease_with_token("a")->leases.at(0).token;
    for (const Route& route : router_.routes()) {
        const Access access = route.access.access();
        const bool is_open = access == Access::kOpen || access == Access::kByUrl;
        EXPECT_EQ(status_of(route, {}), is_open ? 200 : 401) << name_of(route);
        EXPECT_EQ(status_of(route, {{"Authorization", "Basic YTpi"}}), is_open ? 200 : 401)
            << name_of(route);
        EXPECT_EQ(status_of(route, {{"Authorization", attempt}}),
                  access <= Access::kWrite ? 200 : 403)
            << name_of(route);
        EXPECT_EQ(status_of(route, {{"Authorization", std::string("Bearer ") + kToken}}), 200)
            << name_of(route);
    }
}

/// Of attempts that are over no secret is kept: such a token proves nothing.
TEST_F(AccessTest, BeyondLoopbackAnAttemptThatIsOverReadsNothing) {
    router_.set_authenticator(closed_);
    const std::string current = world_.lease_with_token("a")->leases.at(0).token;
    std::string made_up = current;
    made_up.back() = made_up.back() == '0' ? '1' : '0';
    for (const Route& route : router_.routes()) {
        const Access access = route.access.access();
        const bool is_open = access == Access::kOpen || access == Access::kByUrl;
        EXPECT_EQ(status_of(route, {{"Authorization", "Bearer " + made_up}}), is_open ? 200 : 409)
            << name_of(route);
    }
    router_.set_authenticator(gate_);
    for (const Route& route : router_.routes())
        EXPECT_EQ(status_of(route, {{"Authorization", "Bearer " + made_up}}),
                  route.access.access() <= Access::kWrite ? 200 : 409)
            << name_of(route);
}

TEST_F(AccessTest, ATokenReachesAsFarAsItsScope) {
    router_.set_authenticator(gate_);
    for (const char* scope : {"read", "agent", "user"}) {
        const Access most = *tracker::scope_of(scope);
        const auto made = tokens_->create(scope, most, 1000);
        ASSERT_TRUE(made.has_value());
        const tracker::Fields sent = {{"Authorization", "Bearer " + made->token}};
        for (const Route& route : router_.routes()) {
            const Access access = route.access.access();
            const bool may = access <= most || access == Access::kByUrl;
            EXPECT_EQ(status_of(route, sent), may ? 200 : 403) << scope << " " << name_of(route);
            tracker::Fields changed = sent;
            changed[0].second.back() = changed[0].second.back() == '0' ? '1' : '0';
            EXPECT_EQ(status_of(route, changed), status_of(route, {})) << name_of(route);
        }
    }
    EXPECT_FALSE(tracker::scope_of("admin"));
}

TEST_F(AccessTest, ATokenEndsWhenItExpiresOrIsRevoked) {
    const auto brief = tokens_->create("brief", Access::kRead, 1000);
    const auto lasting = tokens_->create("lasting", Access::kRun, 0);
    ASSERT_TRUE(brief && lasting);
    EXPECT_EQ(tokens_->find(brief->token)->name, "brief");
    const auto again = tracker::TokenBook::open(folder_ / "tokens.json", token_clock_).value();
    EXPECT_EQ(again->find(lasting->token)->most, Access::kRun) << "after a restart";
    const std::string stored = read_file(folder_ / "tokens.json").value();
    EXPECT_EQ(stored.find(lasting->token), std::string::npos);
    EXPECT_EQ(stored.find(lasting->token.substr(lasting->token.rfind('-') + 1)), std::string::npos);
    token_clock_.advance_ms(1000);
    EXPECT_FALSE(tokens_->find(brief->token));
    EXPECT_EQ(tokens_->list().size(), 1U);
    EXPECT_TRUE(tokens_->revoke(lasting->info.id).has_value());
    EXPECT_FALSE(tokens_->find(lasting->token));
    EXPECT_EQ(tokens_->revoke(lasting->info.id).error().code, Code::kResourceDoesNotExist);
    EXPECT_FALSE(tracker::TokenBook::open(folder_ / "tokens.json", token_clock_)
                     .value()
                     ->find(lasting->token));
}

TEST_F(AccessTest, SwitchedOffEverybodyMayDoEverything) {
    router_.set_authenticator(off_);
    for (const Route& route : router_.routes())
        EXPECT_EQ(status_of(route, {}), 200) << name_of(route);
}

/// What another site's page can send without asking: forms, plain text, nothing.
TEST_F(AccessTest, WhatChangesWhatRunsIsSaidToBeJson) {
    router_.set_authenticator(gate_);
    int checked = 0;
    for (const Route& route : router_.routes()) {
        if (route.body != tracker::Body::kJson || route.access.access() <= Access::kWrite) continue;
        ++checked;
        for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                                 "multipart/form-data; boundary=application/json", "text/json"}) {
            Request request;
            request.method = route.method;
            request.path = std::regex_replace(route.pattern, std::regex(R"(\{[^}]*\})"), "x");
            request.headers.emplace_back("Authorization", std::string("Bearer ") + kToken);
            if (*type != '\0') request.headers.emplace_back("Content-Type", type);
            Response refusal;
            EXPECT_EQ(router_.resolve(request, refusal), nullptr) << type << " " << name_of(route);
            EXPECT_EQ(refusal.status, 400) << type << " " << name_of(route);
        }
    }
    EXPECT_GT(checked, 30);
    Request request;
    request.method = Method::kPost;
    request.path = "/api/2.0/tune/studies";
    request.headers = {{"Authorization", std::string("Bearer ") + kToken},
                       {"Content-Type", "Application/JSON; charset=utf-8"}};
    Response refusal;
    EXPECT_NE(router_.resolve(request, refusal), nullptr);
}

TEST_F(AccessTest, ACodeOpensThePageOnce) {
    const std::string code = login_.new_code();
    EXPECT_TRUE(login_.redeem("").empty());
    EXPECT_TRUE(login_.redeem(code.substr(1)).empty());
    const std::string cookie = login_.redeem(code);
    for (const char* word : {"HttpOnly", "SameSite=Strict", "Path=/"})
        EXPECT_THAT(cookie, ::testing::HasSubstr(word));
    EXPECT_TRUE(login_.redeem(code).empty());
    const std::string sent = cookie.substr(0, cookie.find(';'));
    EXPECT_TRUE(login_.is_known(sent));
    EXPECT_TRUE(tracker::PageLogin(kToken, "").is_known(sent)) << "a server that starts again";
    EXPECT_FALSE(tracker::PageLogin("another", "").is_known(sent));
    for (std::size_t i = 0; i <= tracker::kPageCodesMax; ++i) static_cast<void>(login_.new_code());
    const std::string last = login_.new_code();
    EXPECT_FALSE(login_.redeem(last).empty());
}

}  // namespace
}  // namespace tune::tuner
