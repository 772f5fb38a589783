#pragma once
// The tracking application with users, over a real store and without the network.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/text/base64.h"
#include "tests/tracker/api/test_api.h"
#include "tracker/auth/local_gate.h"
#include "tracker/auth/users/user_routes.h"

namespace tune::tracker {

/// Knows nobody.
class NoAttempts final : public Authenticator {
public:
    [[nodiscard]] Principal authenticate(const Credentials&) const override {
        return AnonymousPrincipal{};
    }
    [[nodiscard]] Result<void> check_metrics(const Principal&, std::string_view,
                                             std::span<const Metric>) const override {
        return {};
    }
};

/// `ann` is an admin; `bob`, `eve` and `joe` are not.
class UsersTest : public ::testing::Test {
protected:
    static constexpr const char* kOwnerToken = "0123456789abcdef";
    static constexpr const char* kPassword = "correct horse battery";
    /// Of it, at a cost that lets many tests log in.
    static constexpr const char* kHash =
        "scrypt:1024:8:1$0123456789abcdef$"
        "c57b7a10017300e95e7b91e097c479fa42c0eac0c046345c306b66e9f649b1af"
        "b214427e430cc4559ba4635b2af9868b9cad7a10cf8532d92fc1a68bb076720d";

    explicit UsersTest(Permission default_permission = Permission::kRead,
                       Creators creators = Creators::kEverybody)
        : gate_(inner_, *tokens_, *api_.store, pool_, clock_, "tune_user_test",
                {.default_permission = default_permission, .creators = creators}) {
        add_user_routes(api_.router, {.store = *api_.store,
                                      .gate = gate_,
                                      .pool = pool_,
                                      .tokens = *tokens_,
                                      .clock = clock_});
        api_.router.set_authenticator(gate_);
        for (const char* name : {"ann", "bob", "eve", "joe"})
            EXPECT_TRUE(api_.store
                            ->execute(PermissionCommand(
                                CreateUser{name, kHash, std::string_view(name) == "ann"}))
                            .has_value());
    }

    static std::string password_of(const std::string&) { return kPassword; }
    static std::string login(const std::string& who, const std::string& password) {
        return "Basic " + base64(who + ":" + password);
    }
    /// What `who` sends: "owner", the name of a user, or "" for nobody.
    static std::string authorization(const std::string& who) {
        if (who.empty()) return "";
        if (who == "owner") return std::string("Bearer ") + kOwnerToken;
        return login(who, password_of(who));
    }

    static std::shared_ptr<Request> request(Method method, const std::string& path,
                                            const Json& fields) {
        auto made = std::make_shared<Request>();
        made->method = method;
        const std::string version = path.starts_with("users/p") || path.starts_with("users/r") ||
                                            path.starts_with("users/current/p") ||
                                            path.starts_with("roles/")
                                        ? "3.0"
                                        : "2.0";
        made->path = path.starts_with('/') ? path : "/api/" + version + "/mlflow/" + path;
        made->headers.emplace_back("Content-Type", "application/json");
        if (method != Method::kGet) {
            made->body = to_text(fields);
            return made;
        }
        for (const auto& [name, value] : fields.items())
            made->query.emplace_back(name,
                                     value.is_string() ? value.get<std::string>() : to_text(value));
        return made;
    }
    Answer send(std::shared_ptr<Request> made, const std::string& authorization) {
        if (!authorization.empty()) made->headers.emplace_back("Authorization", authorization);
        return api_.send(std::move(made));
    }
    Answer call(const std::string& who, Method method, const std::string& path,
                const Json& fields = Json::object()) {
        return send(request(method, path, fields), authorization(who));
    }
    Answer post(const std::string& who, const std::string& path, const Json& fields) {
        return call(who, Method::kPost, path, fields);
    }
    Answer get(const std::string& who, const std::string& path, const Json& fields) {
        return call(who, Method::kGet, path, fields);
    }

    std::string experiment_of(const std::string& who, const std::string& name) {
        return post(who, "experiments/create", {{"name", name}}).json.value("experiment_id", "");
    }
    std::string run_of(const std::string& who, const std::string& experiment_id) {
        const Answer made = post(who, "runs/create", {{"experiment_id", experiment_id}});
        return made.status == 200 ? made.json["run"]["info"]["run_id"].get<std::string>() : "";
    }
    void grant(const std::string& who, const std::string& type, const std::string& id,
               const std::string& permission) {
        const Answer done = post("owner", "users/permissions/grant",
                                 {{"username", who},
                                  {"resource_type", type},
                                  {"resource_id", id},
                                  {"permission", permission}});
        EXPECT_EQ(done.status, 200) << done.message();
    }

    TestApi api_;
    ManualClock clock_{1'000'000};
    PageLogin page_{kOwnerToken, ""};
    std::unique_ptr<TokenBook> tokens_ =
        TokenBook::open(api_.folder / "tokens.json", clock_).value();
    NoAttempts attempts_;
    AttemptLimits limits_{*api_.store, {}};
    LocalGate inner_{kOwnerToken, {page_, *tokens_, attempts_, limits_}, Guard::kClosed};
    PasswordPool pool_;
    UserGate gate_;
};

/// Where nothing is granted, nothing may be seen.
class ClosedUsersTest : public UsersTest {
protected:
    ClosedUsersTest() : UsersTest(Permission::kNone) {}
};

}  // namespace tune::tracker
