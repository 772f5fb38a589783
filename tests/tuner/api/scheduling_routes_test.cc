// Bad bodies of the routes of priority, quota and fair share: each is refused with what was wrong,
// and changes nothing.

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/text/base64.h"
#include "base/text/percent.h"
#include "tests/tuner/api/application.h"

namespace tune::tuner {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using tracker::Method;

class SchedulingRoutes : public ApplicationTest {
protected:
    void SetUp() override { ASSERT_TRUE(world_.create().has_value()); }

    struct Given {
        int status = 0;
        Json body;
        [[nodiscard]] std::string message() const { return body.value("message", ""); }
    };
    Given call(Method method, const std::string& path, const std::string& body = "",
               const std::string& authorization = std::string("Bearer ") + kToken) {
        auto request = std::make_shared<tracker::Request>();
        request->method = method;
        request->raw_path = "/api/2.0/tune/" + path;
        request->path = percent_decode(request->raw_path);
        request->headers = {{"Content-Type", "application/json"}, {"Authorization", authorization}};
        request->body = body;
        std::promise<tracker::Response> answer;
        router_.dispatch(request, [&answer](tracker::Response response) {
            answer.set_value(std::move(response));
        });
        const tracker::Response response = answer.get_future().get();
        return {response.status, parse_json(response.body).value()};
    }
    Given post(const std::string& path, const std::string& body) {
        return call(Method::kPost, path, body);
    }
    int priority() {
        int priority = 0;
        EXPECT_TRUE(
            world_.studies()
                .read("s", [&](const Study& study) { priority = study.definition().priority(); })
                .has_value());
        return priority;
    }
    Json quotas() { return call(Method::kGet, "quotas").body["users"]; }

    /// Not what a route wants, whichever it is.
    static std::vector<std::string> broken_bodies() {
        return {"",
                "{",
                R"({"priority": 5)",
                R"({"user": "ann", "slots": 1)",
                "[]",
                "null",
                "5",
                "\"priority\"",
                "{\"priority\": 5}}",
                "{\"priority\": \xff}",
                std::string("{\"priority\": 5}\0", 16),
                "{\"user\": \"" + std::string(1, '\xc3') + "\"}",
                std::string(100'000, '['),
                "{\"x\": " + std::string(100'000, '9') + "}"};
    }

    void SetUpGate() { router_.set_authenticator(users_); }
};

TEST_F(SchedulingRoutes, ABrokenBodyChangesNothing) {
    SetUpGate();
    for (const std::string& body : broken_bodies())
        for (const char* path : {"studies/s/priority", "quotas"}) {
            const Given refused = post(path, body);
            EXPECT_EQ(refused.status, 400) << path << " " << body.substr(0, 40) << refused.body;
            EXPECT_FALSE(refused.message().empty());
        }
    EXPECT_EQ(priority(), 0);
    for (const Json& user : quotas()) EXPECT_FALSE(user.contains("quota")) << user;
}

TEST_F(SchedulingRoutes, APriorityIsAWholeNumberInItsRange) {
    SetUpGate();
    for (const char* value :
         {"1001", "-1001", "1.5", "1e3", "\"5\"", "true", "null", "[1]", "{}", "2147483648",
          "9223372036854775807", "9223372036854775808", "18446744073709551615",
          "18446744073709551616", "-9223372036854775809", "1e400"}) {
        const Given refused =
            post("studies/s/priority", std::string(R"({"priority": )") + value + "}");
        EXPECT_EQ(refused.status, 400) << value << refused.body;
        EXPECT_THAT(refused.message(), AnyOf(HasSubstr("-1000..1000"), HasSubstr("JSON"))) << value;
    }
    EXPECT_EQ(post("studies/s/priority", "{}").status, 400);
    EXPECT_EQ(post("studies/s/priority", R"({"Priority": 5})").status, 400);
    EXPECT_EQ(priority(), 0);
    for (int twice = 0; twice < 2; ++twice)
        EXPECT_EQ(post("studies/s/priority", R"({"priority": -1000})").body["priority"], -1000);
    EXPECT_EQ(post("studies/none/priority", R"({"priority": 5})").status, 404);
    EXPECT_EQ(post("studies/s%2Fs/priority", R"({"priority": 5})").status, 404);
    EXPECT_EQ(priority(), -1000);
}

TEST_F(SchedulingRoutes, AQuotaNamesAUserAndWholeNumbers) {
    SetUpGate();
    const auto refuse = [&](const std::string& body, const char* words) {
        const Given refused = post("quotas", body);
        EXPECT_EQ(refused.status, 400) << body.substr(0, 60) << refused.body;
        EXPECT_THAT(refused.message(), HasSubstr(words)) << body.substr(0, 60);
    };
    refuse("{}", "field 'user'");
    for (const char* user : {"5", "null", "\"\"", "[]", "true"})
        refuse(std::string(R"({"slots": 1, "user": )") + user + "}", "field 'user'");
    refuse(R"({"user": ")" + std::string(100'000, 'u') + R"(", "slots": 1})", "field 'user'");
    refuse(R"({"user": "ann", "solts": 1})", "unknown key 'solts'");
    for (const char* field : {"slots", "gpus", "priority"})
        for (const char* value : {"\"1\"", "1.5", "true", "[]", "{}", "4294967297",
                                  "9223372036854775808", "18446744073709551615"})
            refuse(std::string(R"({"user": "ann", ")") + field + "\": " + value + "}", field);
    for (const char* field : {"slots", "gpus"})
        refuse(std::string(R"({"user": "ann", ")") + field + "\": -1}", field);
    refuse(R"({"user": "ann", "priority": 1001})", "-1000..1000");
    for (const Json& user : quotas()) EXPECT_FALSE(user.contains("quota")) << user;
}

TEST_F(SchedulingRoutes, AQuotaIsSetTwiceAndRemovedOnce) {
    SetUpGate();
    EXPECT_EQ(call(Method::kDelete, "quotas/ann").status, 404) << "a user without a quota";
    for (int twice = 0; twice < 2; ++twice)
        EXPECT_EQ(post("quotas", R"({"user": "ann", "slots": 0, "gpus": null})").status, 200);
    const Given removed = call(Method::kDelete, "quotas/ann");
    EXPECT_EQ(removed.status, 200) << removed.body;
    EXPECT_EQ(call(Method::kDelete, "quotas/ann").status, 404);
    EXPECT_EQ(call(Method::kDelete, "quotas/" + std::string(50'000, 'u')).status, 404);
    EXPECT_EQ(call(Method::kDelete, "quotas/%00").status, 404);
}

TEST_F(SchedulingRoutes, ManyAtOnceEndAsOneOfThem) {
    SetUpGate();
    constexpr int kThreads = 8;
    std::atomic<int> refused = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const std::string number = std::to_string(t + 1);
            for (int i = 0; i < 20; ++i) {
                if (post("studies/s/priority", "{\"priority\": " + number + "}").status != 200)
                    ++refused;
                if (post("quotas", R"({"user": "ann", "slots": )" + number + "}").status != 200)
                    ++refused;
                const int gone = call(Method::kDelete, "quotas/bob").status;
                if (gone != 404) ++refused;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(refused, 0);
    EXPECT_GE(priority(), 1);
    EXPECT_LE(priority(), kThreads);
    int limits = 0;
    for (const Json& user : quotas())
        if (user["user"] == "ann") limits = user["quota"]["slots"].get<int>();
    EXPECT_GE(limits, 1);
    world_.reopen();
    int again = 0;
    EXPECT_TRUE(world_.studies()
                    .read("s", [&](const Study& study) { again = study.definition().priority(); })
                    .has_value());
    EXPECT_GE(again, 1) << "what was answered last is on disk";
}

TEST_F(SchedulingRoutes, WithoutPermissionNothingIsReadOrChanged) {
    SetUpGate();
    constexpr const char* kHash =
        "scrypt:1024:8:1$0123456789abcdef$"
        "9d450513728ce10d6e775b308fe159b7a2d2074cc7673fa099ea7dde42c87282"
        "88fb97efecd5471765cdf6c84c1c5917da8a8e51ff276f47660c6edbba689b6e";
    ASSERT_TRUE(
        world_.store()
            .execute(tracker::PermissionCommand(tracker::CreateUser{"reader", kHash, false}))
            .has_value());
    const std::string reader = "Basic " + base64("reader:a long password");
    for (const std::string& who : {std::string(), reader}) {
        const int status = who.empty() ? 401 : 403;
        EXPECT_EQ(call(Method::kPost, "studies/s/priority", R"({"priority": 5})", who).status,
                  status);
        EXPECT_EQ(call(Method::kPost, "quotas", R"({"user": "reader"})", who).status, status);
        EXPECT_EQ(call(Method::kDelete, "quotas/reader", "", who).status, status);
        EXPECT_EQ(call(Method::kGet, "quotas", "", who).status, status);
        EXPECT_EQ(call(Method::kGet, "queue", "", who).status, status);
        // Nobody learns by a bad body what there is.
        EXPECT_EQ(call(Method::kPost, "studies/none/priority", "{", who).status, status);
    }
    EXPECT_EQ(priority(), 0);
}

}  // namespace
}  // namespace tune::tuner
