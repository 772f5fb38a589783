// A request that is made again because its answer was lost: removal, rename, restore and quotas get
// the first answer, at the same moment, later, after a restart, and as a restricted user.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>

#include "base/text/percent.h"
#include "tests/tuner/study/world.h"
#include "tuner/api/routes.h"

namespace tune::tuner {
namespace {

using tracker::Method;

class Repeated : public ::testing::Test {
protected:
    Repeated() { add_routes(); }
    ~Repeated() override { world_.close(); }

    void add_routes() {
        router_ = std::make_unique<tracker::Router>();
        add_tuning_routes(*router_, {world_.studies(), world_.store()});
    }
    /// The server is started again over the same folder.
    void restart() {
        world_.close();
        world_.open();
        add_routes();
    }
    struct Given {
        int status = 0;
        Json body;
        bool is_replayed = false;
    };
    std::future<tracker::Response> begin(Method method, const std::string& path,
                                         const std::string& body, const std::string& key) {
        auto request = std::make_shared<tracker::Request>();
        request->method = method;
        request->raw_path = request->path = "/api/2.0/tune/" + path;
        request->headers = {{"Content-Type", "application/json"}};
        if (!key.empty()) request->headers.emplace_back("Idempotency-Key", key);
        request->body = body;
        request->principal = tracker::OwnerPrincipal{};
        auto promise = std::make_shared<std::promise<tracker::Response>>();
        auto future = promise->get_future();
        router_->dispatch(request,
                          [promise](tracker::Response response) { promise->set_value(response); });
        return future;
    }
    static Given end(std::future<tracker::Response> future) {
        const tracker::Response response = future.get();
        const Result<Json> json = parse_json(response.body);
        EXPECT_TRUE(json.has_value()) << response.body;
        Given given{response.status, json ? *json : Json(), false};
        for (const auto& [name, value] : response.headers)
            given.is_replayed = given.is_replayed || name == "Idempotent-Replayed";
        return given;
    }
    Given call(Method method, const std::string& path, const std::string& body,
               const std::string& key) {
        return end(begin(method, path, body, key));
    }
    void create(const std::string& name = "s") {
        const Given made = call(
            Method::kPost, "studies",
            R"({"name": ")" + name + R"(", "metric": "loss", "space": {"x": {"float": [0, 1]}}})",
            "");
        ASSERT_EQ(made.status, 200) << made.body;
    }
    Json study(const std::string& name) {
        return call(Method::kGet, "studies/" + name, "", "").body;
    }

    World world_;
    std::unique_ptr<tracker::Router> router_;
};

TEST_F(Repeated, ARemovalIsMadeOnceAndNotOnTheStudyThatTookTheNameSince) {
    create();
    EXPECT_FALSE(call(Method::kDelete, "studies/s", "", "k").is_replayed);
    const Given again = call(Method::kDelete, "studies/s", "", "k");
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_TRUE(again.is_replayed);
    EXPECT_EQ(again.body, Json::object());
    create();
    EXPECT_EQ(call(Method::kDelete, "studies/s", "", "k").status, 200);
    EXPECT_EQ(study("s")["name"], "s") << "another study, which the late repeat must not touch";
    EXPECT_EQ(call(Method::kDelete, "studies/none", "", "l").status, 404);
    EXPECT_EQ(call(Method::kDelete, "studies/none", "", "l").status, 404) << "nothing is recorded";
    EXPECT_EQ(call(Method::kDelete, "studies/s", "", "").status, 200) << "without a key as ever";
    EXPECT_EQ(call(Method::kDelete, "studies/s", "", "").status, 404);
}

TEST_F(Repeated, ARenameAnswersAsTheFirst) {
    create();
    const Given first = call(Method::kPost, "studies/s/rename", R"({"name": "t"})", "k");
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(first.body["name"], "t");
    const Given again = call(Method::kPost, "studies/s/rename", R"({"name": "t"})", "k");
    EXPECT_EQ(again.status, 200);
    EXPECT_TRUE(again.is_replayed);
    EXPECT_EQ(again.body, first.body);
    const Given other = call(Method::kPost, "studies/s/rename", R"({"name": "u"})", "k");
    EXPECT_EQ(other.status, 400);
    EXPECT_THAT(other.body.value("message", ""),
                ::testing::HasSubstr("'k' was used for another request"));
    EXPECT_EQ(call(Method::kPost, "studies/s/rename", R"({"name": "t"})", "").status, 404);
    EXPECT_EQ(call(Method::kPost, "studies/t/rename", R"({"name": "t"})", "same").status, 200);
}

TEST_F(Repeated, ARestoreAnswersAsTheFirst) {
    create();
    ASSERT_EQ(call(Method::kDelete, "studies/s", "", "").status, 200);
    const Given first = call(Method::kPost, "studies/s/restore", "{}", "k");
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(first.body["name"], "s");
    const Given again = call(Method::kPost, "studies/s/restore", "{}", "k");
    EXPECT_TRUE(again.is_replayed);
    EXPECT_EQ(again.body, first.body);
    EXPECT_EQ(call(Method::kPost, "studies/s/restore", "{}", "").status, 400) << "it is there";
}

TEST_F(Repeated, ARestoreOfAnExperimentThatWasDeletedElsewhere) {
    create();
    const std::int64_t id = std::stoll(study("s")["experiment_id"].get<std::string>());
    ASSERT_TRUE(world_.store().execute(tracker::DeleteExperiment{id}).has_value());
    Given first;
    do  // until the deletion was observed
        first = call(Method::kPost, "studies/s/restore", "{}", "k");
    while (first.status == 400);
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_NE(first.body["state"], "deleted");
    EXPECT_EQ(call(Method::kPost, "studies/s/restore", "{}", "k").body, first.body);
}

TEST_F(Repeated, AQuotaIsRemovedOnce) {
    ASSERT_EQ(call(Method::kPost, "quotas", R"({"user": "ann", "slots": 2})", "").status, 200);
    const Given first = call(Method::kDelete, "quotas/ann", "", "k");
    ASSERT_EQ(first.status, 200) << first.body;
    const Given again = call(Method::kDelete, "quotas/ann", "", "k");
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_TRUE(again.is_replayed);
    for (const Json& user : again.body["users"]) EXPECT_FALSE(user.contains("quota")) << user;
    EXPECT_EQ(call(Method::kDelete, "quotas/ann", "", "").status, 404);
}

TEST_F(Repeated, AfterARestartToo) {
    create("a");
    create("b");
    create("c");
    const Given removed = call(Method::kDelete, "studies/a", "", "d");
    const Given renamed = call(Method::kPost, "studies/b/rename", R"({"name": "t"})", "n");
    static_cast<void>(call(Method::kDelete, "studies/c", "", ""));
    const Given restored = call(Method::kPost, "studies/c/restore", "{}", "r");
    ASSERT_EQ(restored.status, 200) << restored.body;
    restart();
    const auto expect_repeat = [](const Given& again, const Given& first) {
        EXPECT_EQ(again.status, 200) << again.body;
        EXPECT_TRUE(again.is_replayed);
        EXPECT_EQ(again.body, first.body);
    };
    expect_repeat(call(Method::kDelete, "studies/a", "", "d"), removed);
    expect_repeat(call(Method::kPost, "studies/b/rename", R"({"name": "t"})", "n"), renamed);
    expect_repeat(call(Method::kPost, "studies/c/restore", "{}", "r"), restored);
}

TEST_F(Repeated, AtTheSameMomentItIsMadeOnce) {
    constexpr int kAtOnce = 16;
    create();
    std::vector<std::future<tracker::Response>> answers;
    for (int i = 0; i < kAtOnce; ++i)
        answers.push_back(begin(Method::kPost, "studies/s/rename", R"({"name": "t"})", "k"));
    int made = 0;
    for (auto& answer : answers) {
        const Given given = end(std::move(answer));
        EXPECT_EQ(given.status, 200) << given.body;
        EXPECT_EQ(given.body["name"], "t");
        made += given.is_replayed ? 0 : 1;
    }
    EXPECT_EQ(made, 1);
}

TEST_F(Repeated, BadKeysAreRefusedBeforeAnythingChanges) {
    create();
    for (const std::string& key : {std::string(256, 'k'), std::string("a b")})
        EXPECT_EQ(call(Method::kDelete, "studies/s", "", key).status, 400) << key;
    EXPECT_EQ(study("s")["name"], "s");
}

}  // namespace
}  // namespace tune::tuner
