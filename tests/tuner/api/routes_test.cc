// The REST API through its router, over a real store: shapes, statuses and bad input.

#include "tuner/api/routes.h"
#include "base/text/percent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>

#include "tests/tuner/study/world.h"
#include "tracker/api/http/url.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;

class RoutesTest : public ::testing::Test {
protected:
    RoutesTest() { add_tuning_routes(router_, {world_.studies(), world_.store()}); }
    ~RoutesTest() override { world_.close(); }

    struct Answered {
        int status = 0;
        Json body;
    };
    Answered call(tracker::Method method, const std::string& path, const std::string& body) {
        auto request = std::make_shared<tracker::Request>();
        const std::size_t query = path.find('?');
        request->method = method;
        request->raw_path = "/api/2.0/tune/" + path.substr(0, query);
        request->path = percent_decode(request->raw_path);
        if (query != std::string::npos)
            request->query = tracker::parse_query(path.substr(query + 1));
        request->headers.emplace_back("Content-Type", "application/json");
        request->body = body;
        request->principal = tracker::OwnerPrincipal{};
        auto promise = std::make_shared<std::promise<tracker::Response>>();
        auto future = promise->get_future();
        router_.dispatch(request,
                         [promise](tracker::Response response) { promise->set_value(response); });
        const tracker::Response response = future.get();
        const Result<Json> json = parse_json(response.body);
        EXPECT_TRUE(json.has_value()) << response.body;
        return {response.status, json ? *json : Json()};
    }
    Answered get(const std::string& path) { return call(tracker::Method::kGet, path, ""); }
    Answered post(const std::string& path, const std::string& body = "{}") {
        return call(tracker::Method::kPost, path, body);
    }
    void create() {
        const auto created = post("studies", R"({"name": "s", "metric": {"name": "loss"},
            "space": {"x": {"float": [0, 1]}}, "sampler": {"type": "random", "seed": 1},
            "budget": {"trials": 5}, "command": ["run", "{x}"]})");
        ASSERT_EQ(created.status, 200) << created.body;
    }

    World world_;
    tracker::Router router_;
};

TEST_F(RoutesTest, TheQueueShowsWhoHasWhatAndWhyTheRestWaits) {
    create();
    const auto waiting = get("queue");
    ASSERT_EQ(waiting.status, 200) << waiting.body;
    EXPECT_TRUE(waiting.body["agents"].empty());
    EXPECT_EQ(waiting.body["studies"][0]["study"], "s");
    EXPECT_EQ(waiting.body["studies"][0]["waits_for"],
              "no agent is registered; `tune agent` starts one");
    ASSERT_EQ(post("agents/register", R"({"agent_id": "a", "host": "h", "slots": 1, "cpus": 4,
        "memory_bytes": 1024, "labels": ["x"], "gpus": ["g"], "devices": [{"uuid": "g",
        "bytes": 10, "name": "H100"}]})")
                  .status,
              200);
    const auto leased = post("agents/a/lease", R"({"free_slots": 1})");
    ASSERT_EQ(leased.body["leases"].size(), 1u) << leased.body;
    const Json queue = get("queue").body;
    const Json& agent = queue["agents"][0];
    EXPECT_EQ(agent["host"], "h");
    EXPECT_EQ(agent["free_slots"], 0);
    EXPECT_EQ(agent["labels"], Json::array({"x"}));
    EXPECT_EQ(agent["devices"][0]["name"], "H100");
    EXPECT_EQ(agent["devices"][0]["free_bytes"], 0) << "a GPU for each place: it has it whole";
    EXPECT_EQ(agent["leases"][0]["run_id"], leased.body["leases"][0]["run_id"]);
    EXPECT_EQ(agent["leases"][0]["devices"][0]["uuid"], "g");
    EXPECT_EQ(queue["studies"][0]["running"], 1);
    EXPECT_EQ(queue["studies"][0]["waits_for"], "no agent has room for a trial now");
}

TEST_F(RoutesTest, AskTrainTellWithNothingButHttp) {
    create();
    const auto asked = post("studies/s/ask", R"({"count": 2, "worker": "me"})");
    ASSERT_EQ(asked.status, 200) << asked.body;
    const Json& trial = asked.body["trials"][0];
    EXPECT_EQ(trial["number"], 0);
    EXPECT_EQ(trial["attempt"], 1);
    EXPECT_EQ(trial["run_id"].get<std::string>().size(), 32u);
    EXPECT_TRUE(trial["params"]["x"].is_number());
    EXPECT_EQ(asked.body["state"], "running");
    const auto reported =
        post("studies/s/report", R"({"number": 0, "attempt": 1, "step": 1, "value": 0.5})");
    EXPECT_EQ(reported.body["action"], "continue");
    const auto told = post("studies/s/tell", R"({"number": 0, "attempt": 1, "value": 0.25})");
    ASSERT_EQ(told.status, 200) << told.body;
    EXPECT_EQ(told.body["state"], "complete");
    EXPECT_EQ(told.body["value"], 0.25);

    const auto study = get("studies/s").body;
    EXPECT_EQ(study["name"], "s");
    EXPECT_EQ(study["state"], "running");
    EXPECT_EQ(study["metric"]["goal"], "min");
    EXPECT_EQ(study["counts"]["complete"], 1);
    EXPECT_EQ(study["counts"]["running"], 1);
    EXPECT_EQ(study["best"]["number"], 0);
    EXPECT_EQ(study["budget"]["trials"], 5);
    EXPECT_EQ(get("studies").body["studies"].size(), 1u);
}

TEST_F(RoutesTest, TrialsComeInPagesWithTheirIntermediateValues) {
    create();
    static_cast<void>(post("studies/s/ask", R"({"count": 5})"));
    for (const int step : {1, 2, 3})
        static_cast<void>(
            post("studies/s/report",
                 R"({"number": 1, "step": )" + std::to_string(step) + R"(, "value": 0.5})"));
    static_cast<void>(post("studies/s/tell", R"({"number": 1, "value": "NaN"})"));
    const auto first = get("studies/s/trials?max_results=3&fields=intermediate").body;
    ASSERT_EQ(first["trials"].size(), 3u);
    EXPECT_EQ(first["trials"][1]["intermediate"].size(), 3u);
    EXPECT_EQ(first["trials"][1]["intermediate"][2][0], 3);
    EXPECT_EQ(first["trials"][0]["intermediate"], Json::array());
    EXPECT_EQ(first["trials"][1]["state"], "failed");
    EXPECT_EQ(first["trials"][1]["value"], Json(nullptr));
    const auto second =
        get("studies/s/trials?page_token=" + first["next_page_token"].get<std::string>()).body;
    EXPECT_EQ(second["trials"].size(), 2u);
    EXPECT_FALSE(second.contains("next_page_token"));
    EXPECT_EQ(get("studies/s/trials?state=running").body["trials"].size(), 4u);
    EXPECT_EQ(get("studies/s/trials/2").body["number"], 2);
    EXPECT_EQ(get("studies/s/trials/9").status, 404);
}

TEST_F(RoutesTest, SeveralObjectivesAndConstraints) {
    const auto created = post("studies", R"({"name": "s", "metric": ["loss", "acc:max"],
        "constraints": [{"name": "ms", "max": 20}], "space": {"x": {"float": [0, 1]}},
        "sampler": {"type": "random", "seed": 1}})");
    ASSERT_EQ(created.status, 200) << created.body;
    EXPECT_EQ(created.body["metric"]["name"], "loss");
    EXPECT_EQ(created.body["metrics"][1]["goal"], "max");
    EXPECT_EQ(created.body["constraints"][0]["max"], 20.0);
    EXPECT_EQ(created.body["best_trials"], Json::array());
    static_cast<void>(post("studies/s/ask", R"({"count": 3})"));
    const auto told =
        post("studies/s/tell",
             R"({"number": 0, "values": [1, 0.5], "constraints": {"ms": "Infinity"}})");
    ASSERT_EQ(told.status, 200) << told.body;
    EXPECT_EQ(told.body["values"], (Json{1.0, 0.5}));
    EXPECT_EQ(told.body["violation"], "Infinity");
    static_cast<void>(
        post("studies/s/tell", R"({"number": 1, "values": [2, 0.25], "constraints": {"ms": 20}})"));
    const auto reported =
        post("studies/s/report", R"({"number": 2, "metric": "acc", "step": 1, "value": 0.5})");
    EXPECT_EQ(reported.body["action"], "continue");
    const Json study = get("studies/s").body;
    EXPECT_EQ(study["best"], Json(nullptr));
    ASSERT_EQ(study["best_trials"].size(), 1u);
    EXPECT_EQ(study["best_trials"][0]["number"], 1);
    EXPECT_EQ(study["best_trials"][0]["constraints"]["ms"], 20.0);
    EXPECT_FALSE(get("studies/s/trials/2").body.contains("values")) << "not before its end";
    EXPECT_FALSE(get("studies/s/trials/2").body.contains("values_now")) << "loss has not come";
    for (const char* row : {R"({"number": 2, "metric": "loss", "step": 1, "value": 3})",
                            R"({"number": 2, "metric": "ms", "step": 1, "value": 19})"})
        static_cast<void>(post("studies/s/report", row));
    EXPECT_EQ(get("studies/s/trials/2").body["values_now"], (Json{3.0, 0.5}));
    static_cast<void>(post("studies/s/tell", R"({"number": 2})"));
    EXPECT_EQ(get("studies/s/trials/2").body["values"], (Json{3.0, 0.5}));
    EXPECT_FALSE(get("studies/s/trials/2").body.contains("values_now")) << "it has ended";
}

TEST_F(RoutesTest, ALeaseIsRenewedAndSaysWhenTheStudyWasStopped) {
    create();
    const auto asked = post("studies/s/ask", R"({"lease_ttl_ms": 1000})");
    ASSERT_EQ(asked.status, 200) << asked.body;
    world_.advance_ms(999);
    EXPECT_EQ(post("studies/s/renew", R"({"number": 0, "attempt": 1})").body["action"], "continue");
    EXPECT_EQ(post("studies/s/renew", R"({"number": 0})").status, 400) << "no attempt";
    EXPECT_EQ(post("studies/s/renew", R"({"number": 0, "attempt": 2})").status, 409);
    world_.advance_ms(1000);
    EXPECT_EQ(post("studies/s/renew", R"({"number": 0, "attempt": 1})").status, 409) << "lost";
    EXPECT_EQ(post("studies/s/ask", R"({"leaseTtlMs": 1000})").body["trials"][0]["attempt"], 2);
    static_cast<void>(post("studies/s/stop"));
    EXPECT_EQ(post("studies/s/renew", R"({"number": 0, "attempt": 2})").body["action"], "stop");
}

TEST_F(RoutesTest, TheCostOfATrialIsReportedOrTold) {
    const auto created = post("studies", R"({"name": "s", "metric": "loss",
        "space": {"x": {"float": [0, 1]}}, "budget": {"cost": {"metric": "dollars", "max": 6}}})");
    ASSERT_EQ(created.status, 200) << created.body;
    static_cast<void>(post("studies/s/ask", R"({"count": 2})"));
    const auto reported =
        post("studies/s/report", R"({"number": 0, "attempt": 1, "metric": "dollars", "value": 2})");
    EXPECT_EQ(reported.body["action"], "continue") << reported.body;
    static_cast<void>(post("studies/s/tell", R"({"number": 0, "attempt": 1, "value": 1})"));
    const auto told =
        post("studies/s/tell", R"({"number": 1, "attempt": 1, "value": 1, "cost": 3})");
    EXPECT_EQ(told.body["cost"], 3.0) << told.body;
    const Json study = get("studies/s").body;
    EXPECT_EQ(study["ended_by"], "cost");
    EXPECT_EQ(study["cost"], 5.0);
}

TEST_F(RoutesTest, NumbersBeyondTheirRangeAreNotCutToFit) {
    create();
    static_cast<void>(post("studies/s/ask"));
    const auto refused = [this](const char* path, const char* body, const char* words) {
        const auto answer = post(path, body);
        EXPECT_EQ(answer.status, 400) << body << answer.body;
        EXPECT_THAT(answer.body.value("message", ""), HasSubstr(words)) << body;
    };
    for (const char* attempt : {"4294967297", "-1", "2147483648", "\"4294967297\""})
        for (const char* path : {"studies/s/tell", "studies/s/report", "studies/s/renew"})
            EXPECT_THAT(
                post(path,
                     std::string(R"({"number": 0, "attempt": )") + attempt +
                         (std::string_view(path).ends_with("renew") ? "}" : R"(, "value": 1})"))
                    .body.value("message", ""),
                HasSubstr("attempt must be 0..2147483647, found"))
                << path << attempt;
    refused("studies/s/ask", R"({"count": 4294967297})", "count must be 1..1000");
    refused("studies/s/ask", R"({"count": 18446744073709551617})", "count");
    refused("studies/s/ask", R"({"lease_ttl_ms": -1})", "lease_ttl_ms must be 0..2592000000");
    refused("studies/s/ask", R"({"lease_ttl_ms": 9223372036854775807})", "lease_ttl_ms must be");
    EXPECT_EQ(get("studies/s/trials/0").body["state"], "running") << "none of them was taken";
    EXPECT_EQ(get("studies/s").body["trials"], 1);
}

TEST_F(RoutesTest, UnknownKeysAreRefusedWithThoseThatAreKnown) {
    create();
    const auto refused = [this](const char* path, const char* body, const char* words) {
        const auto answer = post(path, body);
        EXPECT_EQ(answer.status, 400) << path << answer.body;
        EXPECT_THAT(answer.body.value("message", ""), HasSubstr(words)) << path;
    };
    refused("studies/s/ask", R"({"cuont": 1})",
            "unknown key 'cuont'; did you mean 'count'? Known: count, request_id, worker, "
            "lease_ttl_ms");
    EXPECT_EQ(get("studies/s").body["trials"], 0) << "no trial was given";
    refused("studies/s/report", R"({"number": 0, "value": 1, "stp": 1})", "did you mean 'step'");
    refused("studies/s/tell", R"({"number": 0, "valeu": 1})", "did you mean 'value'");
    refused("studies/s/renew", R"({"number": 0, "ttl": 1})", "unknown key 'ttl'; known: number");
    refused("studies/s/enqueue", R"({"params": {"x": 0.5}, "paramz": {}})", "unknown key 'paramz'");
    refused("studies/s/enqueue", R"({"params": {"x": 0.5}, "request_id": 7})", "request_id");
    refused("studies/s/ask", R"("{\"cuont\": 1}")", "unknown key 'cuont'");
    EXPECT_EQ(post("studies/s/ask", R"({"requestId": "r", "leaseTtlMs": null})").status, 200);
    EXPECT_EQ(post("studies/s/tell", R"("{\"number\": 0, \"values\": [1]}")").status, 200)
        << "JSON in a JSON string, as old clients send it";
}

TEST_F(RoutesTest, PauseResumeStopAnswerTheStudy) {
    create();
    EXPECT_EQ(post("studies/s/pause").body["state"], "paused");
    EXPECT_EQ(post("studies/s/resume").body["state"], "running");
    EXPECT_EQ(post("studies/s/stop").body["state"], "stopped");
}

TEST_F(RoutesTest, AStudyCanBeWaitedFor) {
    create();
    const Json study = get("studies/s").body;
    const auto at_once = get("studies/s?version=-1&wait_ms=30000");
    EXPECT_EQ(at_once.body["version"], study["version"]);
}

TEST_F(RoutesTest, AgentsSpeakTheProtocol) {
    create();
    const auto registered =
        post("agents/register", R"({"agent_id": "a", "host": "h", "slots": 1})");
    ASSERT_EQ(registered.status, 200) << registered.body;
    EXPECT_EQ(registered.body["lease_ttl_ms"], World::kTtl_ms);
    const auto leased = post("agents/a/lease", R"({"request_id": "r", "free_slots": 1})");
    const Json lease = leased.body["leases"][0];
    EXPECT_EQ(lease["command"][0], "run");
    const std::string run_id = lease["run_id"];
    const auto reported =
        post("agents/a/report",
             R"({"reports": [{"run_id": ")" + run_id +
                 R"(", "attempt": 1, "metrics": [{"key": "loss", "value": 0.5, "step": 0}]}]})");
    EXPECT_EQ(reported.body["results"][0]["ok"], true);
    EXPECT_EQ(post("agents/a/heartbeat", R"({"running": []})").body["draining"], false);
    const std::string end = "agents/a/attempts/" + run_id;
    EXPECT_EQ(post(end + "/2/finish", R"({"outcome": "done"})").status, 409);
    EXPECT_EQ(post(end + "/x/finish", R"({"outcome": "done"})").status, 400);
    EXPECT_EQ(post(end + "/1/finish", R"({"outcome": "done", "request_id": "f"})").body,
              Json::object());
    EXPECT_EQ(get("studies/s/trials/0").body["value"], 0.5);
    EXPECT_EQ(post("agents/x/lease").status, 404);
}

TEST_F(RoutesTest, AnInvalidNameIsNamedByTheBodysKey) {
    for (const char* key : {"name", "study"}) {
        const auto refused =
            post("studies", std::string("{\"") + key + R"(": 5, "space": {"x": "0..1"}})");
        EXPECT_EQ(refused.status, 400);
        EXPECT_EQ(refused.body["message"],
                  std::string(key) + ": expected a text, found the number 5");
    }
}

TEST_F(RoutesTest, BadInputIsAnErrorThatSaysWhat) {
    create();
    const auto refused = [this](const std::string& path, const std::string& body, int status,
                                const char* words) {
        const auto answer = post(path, body);
        EXPECT_EQ(answer.status, status) << path << " " << body << " " << answer.body;
        EXPECT_THAT(answer.body.value("message", ""), HasSubstr(words)) << path << " " << body;
    };
    refused("studies", "{", 400, "invalid JSON");
    refused("studies", "[]", 400, "must be a JSON object");
    refused("studies", R"({"name": "t", "space": {"x": {"float": [1, 0]}}})", 400, "space.x");
    refused("studies", R"({"name": "t", "spice": {}})", 400, "spice");
    refused("studies", R"({"name": "t", "study": "u"})", 400, "give one of them");
    refused("studies", R"({"name": "s", "metric": {"name": "loss"},
                           "space": {"x": {"float": [0, 2]}}})",
            409, "space.x is");
    refused("studies/none/ask", "{}", 404, "'none'");
    refused("studies/s/ask", R"({"count": 0})", 400, "count");
    refused("studies/s/ask", R"({"count": "many"})", 400, "count");
    refused("studies/s/report", R"({"number": 0, "value": 1})", 404, "no trial 0");
    refused("studies/s/report", R"({"number": 0})", 400, "value");
    refused("studies/s/tell", R"({"number": -1, "value": 1})", 400, "number");
    static_cast<void>(post("studies/s/ask"));
    refused("studies/s/tell", R"({"number": 0, "values": [1, 2]})", 400, "has 1 objective;");
    refused("studies/s/tell", R"({"number": 0, "values": []})", 400, "one number per objective");
    refused("studies/s/tell", R"({"number": 0, "values": 1})", 400, "one number per objective");
    refused("studies/s/tell", R"({"number": 0, "values": ["a"]})", 400, "values.0");
    refused("studies/s/tell", R"({"number": 0, "value": 1, "values": [1]})", 400, "one of them");
    refused("studies/s/tell", R"({"number": 0, "value": 1, "constraints": [1]})", 400, "object");
    refused("studies/s/tell", R"({"number": 0, "value": 1, "constraints": {"a": 1}})", 400,
            "no constraint on 'a'");
    refused("studies/s/report", R"({"number": 0, "value": 1, "metric": "a"})", 400,
            "measures loss; 'a' is none of them");
    refused("studies/s/tell", R"({"number": 0, "state": "great"})", 400, "great");
    refused("studies/s/tell", R"({"number": 0, "state": "running"})", 400, "ends as");
    refused("studies/s/tell", R"({"number": 0, "attempt": 7, "value": 1})", 409, "attempt 7");
    refused("studies/s/enqueue", R"({"x": 1})", 400, "params");
    refused("studies/s/enqueue", R"({"params": {"x": 7}})", 400, "x");
    EXPECT_EQ(get("studies/s/trials?fields=all").status, 400);
    EXPECT_EQ(get("studies/s/trials?max_results=0").status, 400);
    EXPECT_EQ(get("studies/s/trials?page_token=zz").status, 400);
    EXPECT_EQ(get("studies/s/trials?state=bad").status, 400);
    EXPECT_EQ(get("studies/s/trials/-1").status, 400);
    EXPECT_EQ(get("studies/none").status, 404);
}

}  // namespace
}  // namespace tune::tuner
