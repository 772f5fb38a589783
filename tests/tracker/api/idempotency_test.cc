// The header Idempotency-Key on routes that change the store.

#include <gtest/gtest.h>

#include "tests/tracker/api/test_api.h"

namespace tune::tracker {
namespace {

class IdempotencyTest : public testing::Test {
protected:
    Answer post(const std::string& path, const std::string& body, const std::string& key) {
        auto request = std::make_shared<Request>();
        request->method = Method::kPost;
        request->path = request->raw_path = "/api/2.0/mlflow/" + path;
        request->headers = {{"Content-Type", "application/json"}, {"idempotency-key", key}};
        request->body = body;
        return api_.send(std::move(request));
    }

    static bool is_replayed(const Answer& answer) {
        for (const auto& [name, value] : answer.response.headers)
            if (name == "Idempotent-Replayed") return value == "true";
        return false;
    }

    TestApi api_;
};

TEST_F(IdempotencyTest, ARepeatedCreateIsOneRun) {
    const std::string body = R"({"experiment_id": "0", "start_time": 5})";
    const Answer first = post("runs/create", body, "k-1");
    const Answer second = post("runs/create", body, "k-1");
    EXPECT_EQ(first.status, 200);
    EXPECT_FALSE(is_replayed(first));
    EXPECT_TRUE(is_replayed(second));
    EXPECT_EQ(first.response.body, second.response.body);
    EXPECT_NE(post("runs/create", body, "k-2").response.body, first.response.body);
    const Answer found = api_.post("runs/search", {{"experiment_ids", {"0"}}, {"max_results", 10}});
    EXPECT_EQ(found.json["runs"].size(), 2u);
}

TEST_F(IdempotencyTest, EveryKindOfWriteIsCovered) {
    const std::string run = api_.create_run();
    const std::string metric =
        R"({"run_id": ")" + run + R"(", "key": "m", "value": 1, "timestamp": 1, "step": 1})";
    EXPECT_FALSE(is_replayed(post("runs/log-metric", metric, "m")));
    EXPECT_TRUE(is_replayed(post("runs/log-metric", metric, "m")));
    const std::string experiment = R"({"name": "e"})";
    const Answer made = post("experiments/create", experiment, "e");
    const Answer again = post("experiments/create", experiment, "e");
    EXPECT_EQ(again.status, 200) << again.message();
    EXPECT_EQ(made.json, again.json);
    const std::string model = R"({"experiment_id": "0", "name": "lm"})";
    EXPECT_EQ(post("logged-models", model, "l").json, post("logged-models", model, "l").json);
    const std::string registered = R"({"name": "rm"})";
    EXPECT_EQ(post("registered-models/create", registered, "r").status, 200);
    EXPECT_EQ(post("registered-models/create", registered, "r").status, 200);
    const std::string version = R"({"name": "rm", "source": "s3://b/m"})";
    EXPECT_EQ(post("model-versions/create", version, "v").json,
              post("model-versions/create", version, "v").json);
}

TEST_F(IdempotencyTest, AKeyWithAnotherRequestIsRefused) {
    EXPECT_EQ(post("runs/create", R"({"experiment_id": "0"})", "k").status, 200);
    const Answer other = post("runs/create", R"({"experiment_id": "0", "start_time": 1})", "k");
    EXPECT_EQ(other.status, 400);
    EXPECT_EQ(other.code(), "INVALID_PARAMETER_VALUE");
    EXPECT_NE(other.message().find("'k' was used for another request"), std::string::npos);
    EXPECT_EQ(post("logged-models", R"({"experiment_id": "0"})", "k").status, 400);
}

TEST_F(IdempotencyTest, BadKeysAreRefused) {
    for (const std::string& key :
         {std::string(), std::string(256, 'k'), std::string("a b"), std::string("\xc3\xa4"),
          std::string("a\0b", 3), std::string("\x7f")}) {
        const Answer answer = post("runs/create", R"({"experiment_id": "0"})", key);
        EXPECT_EQ(answer.status, 400) << key;
        EXPECT_EQ(answer.code(), "INVALID_PARAMETER_VALUE");
    }
    const Answer found = api_.post("runs/search", {{"experiment_ids", {"0"}}, {"max_results", 10}});
    EXPECT_FALSE(found.json.contains("runs"));
}

TEST_F(IdempotencyTest, ARefusedRequestIsTriedAnew) {
    const std::string body = R"({"experiment_id": "77"})";
    EXPECT_EQ(post("runs/create", body, "k").status, 404);
    EXPECT_EQ(post("runs/create", body, "k").status, 404);
    EXPECT_EQ(post("runs/create", R"({"experiment_id": "0"})", "k").status, 200);
}

}  // namespace
}  // namespace tune::tracker
