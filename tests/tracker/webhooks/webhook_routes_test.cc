// The routes of webhooks, without the network but for what they send.

#include "tracker/webhooks/webhook_routes.h"

#include "tests/tracker/api/test_api.h"
#include "tests/tracker/webhooks/receiver.h"

#include <gtest/gtest.h>

namespace tune::tracker::webhook_routes_test {
namespace {

const Json kModelCreated = {{"entity", "REGISTERED_MODEL"}, {"action", "CREATED"}};
const Json kRunCreated = {{"entity", "RUN"}, {"action", "CREATED"}};
constexpr const char* kSeeDocs = " See the API docs for more information about request parameters.";

class WebhookRoutesTest : public testing::Test {
protected:
    WebhookRoutesTest() {
        DeliveryOptions options;
        options.post.policy = {.allow_private = true, .allow_http = true};
        service_ = WebhookService::open(*api_.store, api_.clock, options).value();
        service_->start();
        add_webhook_routes(api_.router, *api_.store, *service_);
    }
    ~WebhookRoutesTest() override {
        service_->stop();
        api_.store->stop();
    }

    static Json fields(const std::string& name = "hook", const Json& event = kModelCreated) {
        return {{"name", name}, {"url", "https://1.1.1.1/hook"}, {"events", {event}}};
    }
    Answer call(Method method, const std::string& path, const Json& body = Json::object(),
                const std::string& face = "mlflow") {
        return api_.call(method, "/api/2.0/" + face + "/webhooks" + path,
                         method == Method::kGet ? "" : body.dump());
    }
    Answer post(const Json& body, const std::string& face = "mlflow") {
        return call(Method::kPost, "", body, face);
    }
    std::string made(const Json& body, const std::string& face = "mlflow") {
        const Answer answer = post(body, face);
        EXPECT_EQ(answer.status, 200) << answer.message();
        return answer.json["webhook"]["webhook_id"];
    }

    TestApi api_;
    std::unique_ptr<WebhookService> service_;
};

TEST_F(WebhookRoutesTest, CreatesAndAnswersAsMlflowDoes) {
    Json body = fields();
    body["events"].push_back({{"entity", "MODEL_VERSION"}, {"action", "CREATED"}});
    body["events"].push_back(kModelCreated);
    body["description"] = "d";
    body["secret"] = "s3cret";
    body["status"] = "DISABLED";
    const Answer answer = post(body);
    ASSERT_EQ(answer.status, 200) << answer.message();
    EXPECT_EQ(answer.response.body.find("s3cret"), std::string::npos);
    const Json webhook = answer.json["webhook"];
    EXPECT_EQ(webhook["name"], "hook");
    EXPECT_EQ(webhook["description"], "d");
    EXPECT_EQ(webhook["status"], "DISABLED");
    EXPECT_EQ(webhook["events"],
              (Json{{{"entity", "MODEL_VERSION"}, {"action", "CREATED"}}, kModelCreated}));
    EXPECT_EQ(webhook["creation_timestamp"], webhook["last_updated_timestamp"]);
    const std::string id = webhook["webhook_id"];
    EXPECT_EQ(call(Method::kGet, "/" + id).json["webhook"], webhook);
    EXPECT_EQ(call(Method::kGet, "").json["webhooks"], Json::array({webhook}));
    EXPECT_FALSE(service_->book().find(id)->secret.empty());
    const Answer ajax = api_.call(Method::kGet, "/ajax-api/2.0/mlflow/webhooks/" + id);
    EXPECT_EQ(ajax.json["webhook"], webhook);
}

TEST_F(WebhookRoutesTest, RefusesInMlflowsOrder) {
    const auto message = [&](const Json& body) {
        const Answer answer = post(body);
        EXPECT_EQ(answer.status, 400);
        EXPECT_EQ(answer.code(), "INVALID_PARAMETER_VALUE");
        return answer.message();
    };
    const auto missing = [](const std::string& name) {
        return "Missing value for required parameter '" + name + "'." + kSeeDocs;
    };
    EXPECT_EQ(message(Json::object()), missing("name"));
    EXPECT_EQ(message({{"name", "-"}}), missing("url"));
    EXPECT_EQ(message({{"name", "-"}, {"url", "x"}}), missing("events"));
    EXPECT_EQ(message({{"name", "-"}, {"url", "x"}, {"events", Json::array()}}),
              "Webhook name '-' is invalid. It must start and end with a letter or digit, be less "
              "than 63 characters long, and contain only letters, digits, dots (.), underscores "
              "(_), and hyphens (-).");
    EXPECT_EQ(message({{"name", "a"}, {"url", "x"}, {"events", Json::array()}}),
              "Invalid webhook URL scheme: ''. Allowed schemes are: https, http.");
    EXPECT_EQ(message({{"name", "a"}, {"url", "https://1.1.1.1"}, {"events", Json::array()}}),
              "Webhook events must be a non-empty list of WebhookEvent objects: [].");
    EXPECT_EQ(message(fields("-", {{"entity", "REGISTERED_MODEL"}, {"action", "DELETED"}})),
              "Invalid action 'deleted' for entity 'registered_model'. Valid actions are: "
              "['created']");
    EXPECT_EQ(message({{"name", 5}, {"url", "x"}, {"events", Json::array()}}),
              std::string("Invalid value 5 for parameter 'name' supplied:  Hint: Value was of type "
                          "'int'.") +
                  kSeeDocs);
    for (const Json& bad : {Json("x"), Json{"x"}, Json{Json::object()}, Json{{{"entity", 99}}},
                            Json{{{"entity", "FOO"}, {"action", "CREATED"}}}, Json(5)}) {
        Json body = fields();
        body["events"] = bad;
        message(body);
    }
    Json body = fields();
    body["status"] = "FOO";
    message(body);
    body = fields();
    body["secret"] = std::string(kSecretBytesMax + 1, 'x');
    message(body);
    body = fields();
    body["description"] = std::string(kDescriptionBytesMax + 1, 'x');
    message(body);
    EXPECT_EQ(service_->book().size(), 0u);
}

TEST_F(WebhookRoutesTest, NamesAreMlflows) {
    for (const std::string& name :
         std::vector<std::string>{"a", "A.b_c-9", "0", std::string(63, 'a')})
        EXPECT_EQ(post(fields(name)).status, 200) << name;
    for (const std::string& name : std::vector<std::string>{
             "-a", "a-", ".a", "a b", "a\n", "\xc3\xa4", "a/b", std::string(64, 'a')})
        EXPECT_EQ(post(fields(name)).status, 400) << name;
}

TEST_F(WebhookRoutesTest, PatchDistinguishesAbsentFromEmpty) {
    Json body = fields();
    body["description"] = "d";
    body["secret"] = "k";
    const std::string id = made(body);
    const auto patch = [&](const Json& changes) {
        const Answer answer = call(Method::kPatch, "/" + id, changes);
        EXPECT_EQ(answer.status, 200) << answer.message();
        return answer.json["webhook"];
    };
    EXPECT_EQ(patch(Json::object())["description"], "d");
    EXPECT_EQ(patch({{"name", ""}, {"url", ""}, {"events", Json::array()}})["name"], "hook");
    EXPECT_EQ(service_->book().find(id)->secret, "k");
    EXPECT_FALSE(patch({{"description", ""}, {"secret", ""}}).contains("description"));
    EXPECT_EQ(service_->book().find(id)->secret, "");
    const Json changed = patch({{"name", "n2"},
                                {"status", "DISABLED"},
                                {"events", {{{"entity", "PROMPT"}, {"action", "CREATED"}}}}});
    EXPECT_EQ(changed["name"], "n2");
    EXPECT_EQ(changed["status"], "DISABLED");
    EXPECT_EQ(changed["events"][0]["entity"], "PROMPT");
    EXPECT_EQ(call(Method::kPatch, "/" + id, {{"url", "bad"}}).status, 400);
    EXPECT_EQ(call(Method::kPatch, "/" + id, {{"name", "-"}}).status, 400);
}

TEST_F(WebhookRoutesTest, WhatIsNotThereIs404) {
    const std::string id = made(fields());
    EXPECT_EQ(call(Method::kDelete, "/" + id).response.body, "{}");
    for (const std::string& gone : {id, std::string("nosuch"), std::string("%2e%2e")}) {
        for (const Method method : {Method::kGet, Method::kPatch, Method::kDelete})
            EXPECT_EQ(call(method, "/" + gone).status, 404);
        EXPECT_EQ(call(Method::kPost, "/" + gone + "/test").status, 404);
    }
    const Answer answer = call(Method::kGet, "/nosuch");
    EXPECT_EQ(answer.code(), "RESOURCE_DOES_NOT_EXIST");
    EXPECT_EQ(answer.message(), "Webhook with ID nosuch not found.");
}

TEST_F(WebhookRoutesTest, ListsPageByPage) {
    EXPECT_EQ(call(Method::kGet, "").response.body, "{}");
    std::set<std::string> ids;
    for (int i = 0; i < 25; ++i) ids.insert(made(fields()));
    std::set<std::string> seen;
    std::string token;
    int pages = 0;
    do {
        const Answer page = call(Method::kGet, "?max_results=10&page_token=" + token);
        ASSERT_EQ(page.status, 200);
        std::int64_t last = std::numeric_limits<std::int64_t>::max();
        for (const Json& one : page.json["webhooks"]) {
            EXPECT_LE(one["creation_timestamp"], last) << "newest first";
            last = one["creation_timestamp"];
            EXPECT_TRUE(seen.insert(one["webhook_id"]).second);
        }
        token = page.json.value("next_page_token", "");
        ++pages;
    } while (!token.empty());
    EXPECT_EQ(seen, ids);
    EXPECT_EQ(pages, 3);
    EXPECT_EQ(call(Method::kGet, "?max_results=0").status, 200);
    for (const std::string bad :
         {"max_results=-1", "max_results=1001", "max_results=x", "page_token=bad"})
        EXPECT_EQ(call(Method::kGet, "?" + bad).status, 400) << bad;
}

TEST_F(WebhookRoutesTest, EventsOfRunsAreOnlyOnOurOwnFace) {
    EXPECT_EQ(post(fields("a", kRunCreated)).status, 400);
    Json body = fields("both", kRunCreated);
    body["events"].push_back(kModelCreated);
    const std::string both = made(body, "tune");
    const std::string runs = made(fields("runs", kRunCreated), "tune");
    const Json list = call(Method::kGet, "").json;
    ASSERT_EQ(list["webhooks"].size(), 1u);
    EXPECT_EQ(list["webhooks"][0]["events"], Json::array({kModelCreated}));
    EXPECT_EQ(call(Method::kGet, "/" + runs).status, 404);
    EXPECT_EQ(call(Method::kDelete, "/" + runs).status, 404);
    EXPECT_EQ(call(Method::kGet, "", {}, "tune").json["webhooks"].size(), 2u);
    // MLflow's client replaces the events that it sees.
    const Json other = {{"entity", "PROMPT"}, {"action", "CREATED"}};
    EXPECT_EQ(call(Method::kPatch, "/" + both, {{"events", {other}}}).status, 200);
    EXPECT_EQ(call(Method::kGet, "/" + both, {}, "tune").json["webhook"]["events"],
              (Json{other, kRunCreated}));
}

TEST_F(WebhookRoutesTest, ATestReportsWhatTheReceiverAnswered) {
    Receiver receiver;
    Json body = fields();
    body["url"] = receiver.url();
    body["secret"] = "k";
    const std::string id = made(body);
    Answer answer = call(Method::kPost, "/" + id + "/test");
    EXPECT_EQ(answer.json["result"],
              (Json{{"success", true}, {"response_status", 200}, {"response_body", "ok"}}));
    EXPECT_EQ(Json::parse(receiver.wait_for(1)[0].body)["data"]["name"], "example_model");
    receiver.answer_next(503);
    answer = call(Method::kPost, "/" + id + "/test",
                  {{"event", {{"entity", "MODEL_VERSION_TAG"}, {"action", "SET"}}}});
    EXPECT_EQ(answer.json["result"],
              (Json{{"success", false}, {"response_status", 503}, {"response_body", "no"}}));
    EXPECT_EQ(Json::parse(receiver.wait_for(2)[1].body)["entity"], "model_version_tag");
    EXPECT_EQ(call(Method::kPost, "/" + id + "/test",
                   {{"event", {{"entity", "PROMPT"}, {"action", "SET"}}}})
                  .status,
              400);
    ASSERT_EQ(call(Method::kPatch, "/" + id, {{"url", "http://127.0.0.1:1/"}}).status, 200);
    answer = call(Method::kPost, "/" + id + "/test");
    EXPECT_EQ(answer.json["result"]["success"], false);
    EXPECT_EQ(
        answer.json["result"]["error_message"].get<std::string>().find("Failed to test webhook: "),
        0u);
}

TEST_F(WebhookRoutesTest, ThereAreAtMostAThousand) {
    for (std::size_t i = 0; i < kWebhooksMax; ++i) {
        WebhookFields one{.name = "hook", .url = "https://1.1.1.1/"};
        one.events = {{{1, 1}}};
        ASSERT_TRUE(service_->create(std::move(one)));
    }
    const Answer answer = post(fields());
    EXPECT_EQ(answer.status, 429);
    EXPECT_EQ(answer.code(), "RESOURCE_EXHAUSTED");
    EXPECT_EQ(call(Method::kGet, "?max_results=1000").json["webhooks"].size(), kWebhooksMax);
}

}  // namespace
}  // namespace tune::tracker::webhook_routes_test
