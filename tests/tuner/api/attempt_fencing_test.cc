// Attempt credentials over the whole application: every route that writes refuses an attempt that
// is over, reads stay open, and a script's set_experiment leads to its study's experiment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/text/percent.h"
#include "tests/tuner/api/application.h"
#include "tracker/api/http/url.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using tracker::Method;
using tracker::Request;
using tracker::Response;

class AttemptFencingTest : public ApplicationTest {
protected:
    AttemptFencingTest() {
        router_.set_authenticator(attempts_);
        EXPECT_TRUE(world_.create().has_value());
        EXPECT_TRUE(world_.register_agent("a").has_value());
    }

    struct Answered {
        int status = 0;
        Json body;
    };

    static std::shared_ptr<Request> request(Method method, const std::string& path,
                                            const std::string& authorization,
                                            const std::string& body) {
        auto made = std::make_shared<Request>();
        const std::size_t query = path.find('?');
        made->method = method;
        made->raw_path = path.substr(0, query);
        made->path = percent_decode(made->raw_path);
        if (query != std::string::npos) made->query = tracker::parse_query(path.substr(query + 1));
        made->headers.emplace_back("Content-Type", "application/json");
        if (!authorization.empty()) made->headers.emplace_back("Authorization", authorization);
        made->body = body;
        return made;
    }
    Answered send(const std::shared_ptr<Request>& made) {
        auto promise = std::make_shared<std::promise<Response>>();
        auto future = promise->get_future();
        router_.dispatch(made, [promise](Response response) { promise->set_value(response); });
        const Response response = future.get();
        const Result<Json> json = parse_json(response.body);
        return {response.status, json ? *json : Json()};
    }
    Answered post(const std::string& call, const Json& body, const std::string& token = "") {
        return send(request(Method::kPost, "/api/2.0/mlflow/" + call,
                            token.empty() ? "" : "Bearer " + token, to_text(body)));
    }
    Answered get(const std::string& call, const std::string& token = "") {
        return send(request(Method::kGet, "/api/2.0/mlflow/" + call,
                            token.empty() ? "" : "Bearer " + token, ""));
    }
    Answered log(const std::string& run_id, double value, const std::string& token = "") {
        return post("runs/log-metric",
                    {{"run_id", run_id}, {"key", "loss"}, {"value", value}, {"timestamp", 1}},
                    token);
    }
    /// An attempt whose lease is over, and the one that follows it.
    std::pair<Lease, Lease> supersede() {
        Lease first = world_.lease_with_token("a")->leases.at(0);
        world_.advance_ms(World::kTtl_ms);
        EXPECT_TRUE(world_.register_agent("b").has_value());
        Lease second = world_.lease_with_token("b")->leases.at(0);
        EXPECT_EQ(second.run_id, first.run_id);
        return {std::move(first), std::move(second)};
    }
    std::string tag_of(const std::string& run_id, const std::string& key) {
        const auto run = world_.store().get_run(run_id);
        for (const tracker::Tag& tag : run->tags)
            if (tag.key == key) return tag.value;
        return {};
    }
};

/// A path that the route's pattern matches.
std::string path_of(const tracker::Route& route) {
    return std::regex_replace(route.pattern, std::regex(R"(\{[^}]*\})"), "x");
}

TEST_F(AttemptFencingTest, EveryRouteThatWritesRefusesAnAttemptThatIsOver) {
    const std::string stale = "Bearer " + supersede().first.token;
    int checked = 0;
    for (const tracker::Route& route : router_.routes()) {
        if (!tracker::is_write(route)) continue;
        const std::string name =
            std::string(tracker::method_name(route.method)) + " " + route.pattern;
        ++checked;
        const auto made = request(route.method, path_of(route), stale, "{}");
        if (route.body == tracker::Body::kStream) {
            Response refusal;
            ASSERT_NE(router_.resolve(*made, refusal), nullptr) << name;
            const auto sink = route.open_sink(made);
            ASSERT_FALSE(sink.has_value()) << name;
            EXPECT_EQ(sink.error().code, Code::kResourceConflict) << name;
            continue;
        }
        const Answered answered = send(made);
        EXPECT_EQ(answered.status, 409) << name;
        EXPECT_EQ(answered.body.value("error_code", ""), "RESOURCE_CONFLICT") << name;
        EXPECT_THAT(answered.body.value("message", ""), HasSubstr("is not the current one"))
            << name;
    }
    EXPECT_GT(checked, 80);
}

TEST_F(AttemptFencingTest, OnlySearchesArePostsThatRead) {
    std::set<std::string> reads;
    for (const tracker::Route& route : router_.routes()) {
        const bool is_safe = route.method == Method::kGet || route.method == Method::kHead ||
                             route.method == Method::kOptions;
        if (!is_safe && !tracker::is_write(route) && route.pattern.starts_with("/api/"))
            reads.insert(route.pattern);
    }
    EXPECT_EQ(reads, (std::set<std::string>{"/api/2.0/mlflow/artifacts/presigned-download-url",
                                            "/api/2.0/mlflow/experiments/search",
                                            "/api/2.0/mlflow/experiments/search-datasets",
                                            "/api/2.0/mlflow/logged-models/search",
                                            "/api/2.0/mlflow/registered-models/get-latest-versions",
                                            "/api/2.0/mlflow/runs/search", "/api/2.0/tune/login",
                                            "/api/2.0/tune/logout"}));
}

TEST_F(AttemptFencingTest, TheOldHolderCannotDecideTheTrial) {
    const auto [old, current] = supersede();
    EXPECT_EQ(log(old.run_id, -999, old.token).status, 409);
    const Answered open = log(old.run_id, -999);
    EXPECT_EQ(open.status, 409) << "it may have dropped its credential";
    EXPECT_THAT(open.body["message"].get<std::string>(),
                HasSubstr("an earlier attempt may still be running"));
    const Json row = {{"key", "loss"}, {"value", -999}, {"timestamp", 1}};
    EXPECT_EQ(post("runs/log-batch", {{"run_id", old.run_id}, {"metrics", {row}}}).status, 409);
    Json spelled = row;
    spelled["timestamp"] = "1";  // a form that the fast parser leaves to the slow one
    EXPECT_EQ(post("runs/log-batch", {{"run_id", old.run_id}, {"metrics", {spelled}}}).status, 409);
    EXPECT_EQ(log(current.run_id, 0.5, current.token).status, 200);
    ASSERT_TRUE(world_.finish("b", token(current), {.request_id = "f"}).has_value());
    EXPECT_EQ(world_.trial(0).value, 0.5);
}

TEST_F(AttemptFencingTest, WhoHasShownItsCredentialDoesNotDecideWithoutIt) {
    const Lease lease = world_.lease_with_token("a")->leases.at(0);
    EXPECT_EQ(log(lease.run_id, 0.5).status, 200) << "a script that knows no tokens";
    EXPECT_EQ(log(lease.run_id, 0.4, lease.token).status, 200);
    EXPECT_EQ(log(lease.run_id, -999).status, 409);
    const Json note = {{"run_id", lease.run_id}, {"key", "note"}, {"value", 1}, {"timestamp", 1}};
    EXPECT_EQ(post("runs/log-metric", note).status, 200);
}

TEST_F(AttemptFencingTest, WithoutACredentialMlflowStaysAsItIs) {
    const auto [old, current] = supersede();
    const std::string& run_id = current.run_id;
    EXPECT_EQ(post("runs/set-tag", {{"run_id", run_id}, {"key", "seen"}, {"value", "1"}}).status,
              200);
    EXPECT_EQ(post("runs/log-metric",
                   {{"run_id", run_id}, {"key", "note"}, {"value", 1}, {"timestamp", 1}})
                  .status,
              200);
    const auto with = [&](const std::string& authorization) {
        return send(request(Method::kPost, "/api/2.0/mlflow/runs/set-tag", authorization,
                            to_text({{"run_id", run_id}, {"key", "k"}, {"value", "v"}})))
            .status;
    };
    EXPECT_EQ(with("Bearer of-a-proxy"), 200);
    EXPECT_EQ(with("Basic YW5uOnNlY3JldA=="), 200);
    EXPECT_EQ(with("bearer " + current.token), 200);
    EXPECT_EQ(with("bearer " + old.token), 409) << "schemes are compared without their case";
}

TEST_F(AttemptFencingTest, AStaleAttemptReadsOn) {
    const auto [old, current] = supersede();
    EXPECT_EQ(get("runs/get?run_id=" + old.run_id, old.token).status, 200);
    EXPECT_EQ(post("runs/search", {{"experiment_ids", {old.experiment_id}}}, old.token).status,
              200);
    ASSERT_EQ(post("experiments/create", {{"name", "mine"}}).status, 200);
    EXPECT_EQ(
        get("experiments/get-by-name?experiment_name=mine", old.token).body["experiment"]["name"],
        "mine");
}

TEST_F(AttemptFencingTest, AnUploadThatOutlivesItsAttemptIsNotMadeVisible) {
    const Lease lease = world_.lease_with_token("a")->leases.at(0);
    const std::string path = "/api/2.0/mlflow-artifacts/artifacts/" + lease.experiment_id + "/" +
                             lease.run_id + "/artifacts/model.bin";
    const auto made = request(Method::kPut, path, "Bearer " + lease.token, "");
    Response refusal;
    const tracker::Route* const route = router_.resolve(*made, refusal);
    ASSERT_NE(route, nullptr);
    auto sink = route->open_sink(made);
    ASSERT_TRUE(sink.has_value()) << sink.error().text();
    std::promise<void> written;
    (*sink)->write("bytes", [&written](const Result<void>&) { written.set_value(); });
    written.get_future().get();
    world_.advance_ms(World::kTtl_ms);
    std::promise<int> answered;
    (*sink)->finish([&answered](Response response) { answered.set_value(response.status); });
    EXPECT_EQ(answered.get_future().get(), 409);
    const auto read = request(Method::kGet, path, "", "");
    EXPECT_EQ(send(read).status, 404);
}

TEST_F(AttemptFencingTest, SetExperimentLeadsToTheStudysExperiment) {
    const Lease lease = world_.lease_with_token("a")->leases.at(0);
    const Json own = get("experiments/get-by-name?experiment_name=s").body["experiment"];
    ASSERT_EQ(own["experiment_id"], lease.experiment_id);
    EXPECT_EQ(get("experiments/get-by-name?experiment_name=s", lease.token).body["experiment"],
              own);
    EXPECT_EQ(tag_of(lease.run_id, "tune.requested_experiment"), "") << "it asked for its own";

    const std::string other =
        post("experiments/create", {{"name", "other"}}).body["experiment_id"].get<std::string>();
    for (const char* asked : {"other", "never-made"})
        EXPECT_EQ(get("experiments/get-by-name?experiment_name=" + std::string(asked), lease.token)
                      .body["experiment"],
                  own)
            << asked;
    world_.store().wait_for_observers();
    EXPECT_EQ(world_.journal().empty(), false);  // and with it all that was submitted before
    EXPECT_EQ(tag_of(lease.run_id, "tune.requested_experiment"), "never-made");
    EXPECT_EQ(get("experiments/get?experiment_id=" + other, lease.token).body["experiment"], own);
    EXPECT_EQ(post("experiments/create", {{"name", "never-made"}}, lease.token).body,
              (Json{{"experiment_id", lease.experiment_id}}));
    EXPECT_EQ(get("experiments/get-by-name?experiment_name=never-made").status, 404)
        << "none was made";
    const auto found = post("experiments/search", {{"max_results", 10}}, lease.token).body;
    EXPECT_EQ(found["experiments"].size(),
              get("experiments/search?max_results=10").body["experiments"].size())
        << "a search tells what there is";
    EXPECT_EQ(get("experiments/get?experiment_id=" + other).body["experiment"]["name"], "other");
}

}  // namespace
}  // namespace tune::tuner
