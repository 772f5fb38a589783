// The routes over a real store: answers and refusals as MLflow 3.17.2 gives them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/tracker/api/test_api.h"

namespace tune::tracker::routes_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSeeDocs = " See the API docs for more information about request parameters.";

class RoutesTest : public testing::Test {
protected:
    TestApi api_;
};

TEST_F(RoutesTest, AnswerProbes) {
    EXPECT_EQ(api_.call(Method::kGet, "/health").response.body, "OK");
    EXPECT_EQ(api_.call(Method::kGet, "/version").response.body, "3.17.2");
    const Json info = api_.call(Method::kGet, "/api/3.0/mlflow/server-info").json;
    EXPECT_EQ(info["store_type"], "SqlStore");
    EXPECT_EQ(info["workspaces_enabled"], false);
    EXPECT_EQ(info["multipart_uploads_enabled"], true);
    EXPECT_EQ(api_.get("registered-models/get?name=x").status, 404);
    EXPECT_EQ(api_.call(Method::kGet, "/api/3.0/mlflow/server-features").status, 404);
}

TEST_F(RoutesTest, CreateReadAndChangeExperiments) {
    const Json created =
        api_.post("experiments/create", {{"name", "a"}, {"tags", {{{"key", "k"}, {"value", "v"}}}}})
            .json;
    const std::string id = created["experiment_id"].get<std::string>();
    const Json read = api_.get("experiments/get?experiment_id=" + id).json["experiment"];
    EXPECT_EQ(read["name"], "a");
    EXPECT_EQ(read["artifact_location"], "mlflow-artifacts:/" + id);
    EXPECT_EQ(read["lifecycle_stage"], "active");
    EXPECT_EQ(read["tags"], Json::parse(R"([{"key": "k", "value": "v"}])"));
    EXPECT_EQ(api_.get("experiments/get-by-name?experiment_name=a").json["experiment"], read);
    const Answer again = api_.post("experiments/create", {{"name", "a"}});
    EXPECT_EQ(again.status, 400);
    EXPECT_EQ(again.code(), "RESOURCE_ALREADY_EXISTS");
    EXPECT_THAT(again.message(), StartsWith("Experiment(name=a) already exists."));
    EXPECT_EQ(api_.post("experiments/update", {{"experiment_id", id}, {"new_name", "b"}}).json,
              Json::object());
    EXPECT_EQ(api_.post("experiments/delete", {{"experiment_id", id}}).status, 200);
    EXPECT_EQ(api_.get("experiments/get?experiment_id=" + id).json["experiment"]["lifecycle_stage"],
              "deleted");
    const Answer search = api_.post("experiments/search", {{"max_results", 10}});
    EXPECT_EQ(search.json["experiments"].size(), 1u);
    EXPECT_EQ(
        api_.get("experiments/search?max_results=10&view_type=ALL").json["experiments"].size(), 2u);
    EXPECT_EQ(api_.post("experiments/restore", {{"experiment_id", id}}).status, 200);
}

TEST_F(RoutesTest, RefuseExperimentsInMlflowsWords) {
    EXPECT_EQ(api_.post("experiments/create", Json::object()).message(),
              std::string("Missing value for required parameter 'name'.") + kSeeDocs);
    EXPECT_EQ(api_.get("experiments/get?experiment_id=abc").message(),
              "Invalid experiment ID 'abc'. Experiment ID must be a valid integer.");
    const Answer missing = api_.get("experiments/get?experiment_id=999");
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(missing.message(), "No Experiment with id=999 exists");
    EXPECT_EQ(missing.json["sqlstate"], "KAM00");
    EXPECT_EQ(api_.get("experiments/get-by-name?experiment_name=zz").message(),
              "Could not find experiment with name 'zz'");
    EXPECT_EQ(api_.post("experiments/search", Json::object()).status, 400);
    EXPECT_EQ(api_.post("experiments/update", {{"experiment_id", "0"}}).message(),
              std::string("Missing value for required parameter 'new_name'.") + kSeeDocs);
}

TEST_F(RoutesTest, LogToARunAndReadItBack) {
    const Json created =
        api_.post("runs/create", {{"experiment_id", "0"},
                                  {"start_time", 1234},
                                  {"run_name", "first"},
                                  {"tags", {{{"key", "mlflow.user"}, {"value", "me"}}}}})
            .json["run"];
    const std::string id = created["info"]["run_id"].get<std::string>();
    EXPECT_EQ(created["info"]["run_uuid"], id);
    EXPECT_EQ(created["info"]["status"], "RUNNING");
    EXPECT_EQ(created["info"]["artifact_uri"], "mlflow-artifacts:/0/" + id + "/artifacts");
    EXPECT_EQ(created["inputs"], Json::object());
    EXPECT_EQ(created["info"].count("end_time"), 0u);
    const auto log = [&](Json body) {
        body["run_id"] = id;
        return api_.post("runs/log-metric", body).status;
    };
    EXPECT_EQ(log({{"key", "m"}, {"value", 0.5}, {"timestamp", 1}, {"step", 2}}), 200);
    EXPECT_EQ(log({{"key", "m"}, {"value", "NaN"}, {"timestamp", "2"}, {"step", 3}}), 200);
    EXPECT_EQ(log({{"key", "big"}, {"value", "Infinity"}, {"timestamp", 1}}), 200);
    EXPECT_EQ(
        api_.post("runs/log-parameter", {{"run_id", id}, {"key", "p"}, {"value", "1"}}).status,
        200);
    EXPECT_EQ(api_.post("runs/set-tag", {{"run_uuid", id}, {"key", "t"}, {"value", "x"}}).status,
              200);
    EXPECT_EQ(
        api_.post("runs/log-batch", {{"run_id", id},
                                     {"metrics", {{{"key", "b"}, {"value", 1}, {"timestamp", 5}}}},
                                     {"params", {{{"key", "q"}, {"value", "2"}}}},
                                     {"tags", {{{"key", "u"}, {"value", "y"}}}}})
            .status,
        200);
    const Json data = api_.get("runs/get?run_id=" + id).json["run"]["data"];
    EXPECT_EQ(data["metrics"], Json::parse(R"([{"key":"b","value":1.0,"timestamp":5,"step":0},
                              {"key":"big","value":1.7976931348623157e308,"timestamp":1,"step":0},
                              {"key":"m","value":"NaN","timestamp":2,"step":3}])"));
    EXPECT_EQ(data["params"], Json::parse(R"([{"key":"p","value":"1"},{"key":"q","value":"2"}])"));
    EXPECT_EQ(data["tags"].size(), 4u) << data["tags"];
    const Json updated =
        api_.post("runs/update", {{"run_id", id}, {"status", "FINISHED"}, {"end_time", 99}})
            .json["run_info"];
    EXPECT_EQ(updated["status"], "FINISHED");
    EXPECT_EQ(updated["end_time"], 99);
    const Json of_zero = api_.post("runs/update", {{"run_id", id}, {"end_time", 0}}).json;
    EXPECT_FALSE(of_zero["run_info"].contains("end_time")) << "as MLflow shows it";
    const Json history =
        api_.get("metrics/get-history?run_id=" + id + "&metric_key=m&max_results=1").json;
    EXPECT_EQ(history["metrics"].size(), 1u);
    EXPECT_EQ(
        api_.get("metrics/get-history?run_id=" + id + "&metric_key=m&max_results=1&page_token=" +
                 history["next_page_token"].get<std::string>())
            .json["metrics"][0]["value"],
        "NaN");
    EXPECT_EQ(api_.get("metrics/get-history?run_id=nope&metric_key=m").json, Json::object());
    const Json bulk =
        api_.get("metrics/get-history-bulk?run_id=" + id + "&run_id=" + id + "&metric_key=m").json;
    EXPECT_EQ(bulk["metrics"].size(), 2u);
    EXPECT_EQ(bulk["metrics"][0]["run_id"], id);
    EXPECT_EQ(api_.get("metrics/get-history-bulk-interval?run_ids=" + id + "&metric_key=m").json,
              bulk);
}

TEST_F(RoutesTest, HistoriesComeInBucketsWithExactExtrema) {
    const std::string id = api_.create_run();
    Json metrics = Json::array();
    for (int i = 0; i < 100; ++i)
        metrics.push_back({{"key", "m"},
                           {"value", i == 50 ? Json("NaN") : Json(i % 10)},
                           {"timestamp", 1'000 + i},
                           {"step", i}});
    api_.post("runs/log-batch", {{"run_id", id}, {"metrics", metrics}});
    const auto ask = [&](const std::string& more) {
        return api_.call(Method::kGet, "/api/2.0/tune/metrics/get-history-buckets?run_ids=" + id +
                                           "&run_ids=none&metric_key=m" + more);
    };
    const Json two = ask("&buckets=2").json["series"];
    ASSERT_EQ(two.size(), 1u);
    EXPECT_EQ(two[0]["run_id"], id);
    ASSERT_EQ(two[0]["buckets"].size(), 2u);
    const Json expected = {{"first_step", 50},   {"last_step", 99}, {"first_time", 1'050},
                           {"last_time", 1'099}, {"min", 0.0},      {"max", 9.0},
                           {"last", 9.0},        {"count", 50},     {"nan_count", 1}};
    EXPECT_EQ(two[0]["buckets"][1], expected);
    EXPECT_EQ(ask("").json["series"][0]["buckets"].size(), 100u);
    const Json window = ask("&start_step=48&end_step=51").json["series"][0]["buckets"];
    ASSERT_EQ(window.size(), 4u);
    EXPECT_EQ(window[2]["last"], "NaN");
    EXPECT_EQ(ask("&end_time=1009").json["series"][0]["buckets"].size(), 10u);
    EXPECT_EQ(ask("&start_step=1000").json["series"], Json::array());
    for (const char* bad : {"&buckets=0", "&buckets=10001", "&buckets=x",
                            "&start_step=5&end_step=4", "&start_step=1&end_time=5"})
        EXPECT_EQ(ask(bad).status, 400) << bad;
    EXPECT_EQ(
        api_.call(Method::kGet, "/api/2.0/tune/metrics/get-history-buckets?metric_key=m").status,
        400);
}

TEST_F(RoutesTest, RefuseLoggingInMlflowsWords) {
    const std::string id = api_.create_run();
    const auto log = [&](const char* body) {
        return api_.call(Method::kPost, "/api/2.0/mlflow/runs/log-metric", body);
    };
    EXPECT_EQ(log("{}").message(),
              std::string("Missing value for required parameter 'run_id'.") + kSeeDocs);
    EXPECT_EQ(log(R"({"run_id": "r", "key": "k", "timestamp": 1})").message(),
              std::string("Missing value for required parameter 'value'.") + kSeeDocs);
    EXPECT_THAT(log(R"({"run_id": "r", "key": "k", "value": true, "timestamp": 1})").message(),
                HasSubstr("Invalid value true for parameter 'value' supplied"));
    const Answer missing = log(R"({"run_id": "none", "key": "k", "value": 1, "timestamp": 1})");
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(missing.message(), "Run with id=none not found");
    EXPECT_EQ(log("{\"run_id\": ").status, 400);
    EXPECT_EQ(log("\xff\xfe").status, 400);
    Json batch = {{"run_id", id}, {"metrics", Json::array()}};
    for (int i = 0; i < 1001; ++i)
        batch["metrics"].push_back({{"key", "k"}, {"value", 1}, {"timestamp", i}});
    EXPECT_EQ(api_.post("runs/log-batch", batch).message(),
              "A batch logging request can contain at most 1000 metrics. Got 1001 metrics. Please "
              "split up metrics across multiple requests and try again.");
    EXPECT_EQ(
        api_.post("runs/log-parameter", {{"run_id", id}, {"key", "p"}, {"value", "1"}}).status,
        200);
    EXPECT_EQ(
        api_.post("runs/log-parameter", {{"run_id", id}, {"key", "p"}, {"value", "1"}}).status,
        200);
    EXPECT_EQ(
        api_.post("runs/log-parameter", {{"run_id", id}, {"key", "p"}, {"value", "2"}}).message(),
        "Changing param values is not allowed. Param with key='p' was already logged with "
        "value='1' for run ID='" +
            id + "'. Attempted logging new value '2'.");
    EXPECT_EQ(api_.post("runs/delete-tag", {{"run_id", id}, {"key", "none"}}).status, 404);
    api_.post("runs/delete", {{"run_id", id}});
    EXPECT_EQ(api_.post("runs/set-tag", {{"run_id", id}, {"key", "a"}, {"value", "b"}}).message(),
              "The run " + id + " must be in the 'active' state. Current state is deleted.");
}

TEST_F(RoutesTest, SearchRuns) {
    const std::string a = api_.create_run();
    const std::string b = api_.create_run();
    for (const auto& [id, value] : {std::pair(a, 1), std::pair(b, 2)})
        api_.post("runs/log-metric",
                  {{"run_id", id}, {"key", "m"}, {"value", value}, {"timestamp", 1}});
    const Json found =
        api_.post("runs/search", {{"experiment_ids", {"0"}}, {"filter", "metrics.m > 1.5"}})
            .json["runs"];
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["info"]["run_id"], b);
    const Json page =
        api_.post("runs/search",
                  {{"experiment_ids", {"0"}}, {"order_by", {"metrics.m ASC"}}, {"max_results", 1}})
            .json;
    EXPECT_EQ(page["runs"][0]["info"]["run_id"], a);
    EXPECT_EQ(api_.post("runs/search", {{"experiment_ids", {"0"}},
                                        {"order_by", {"metrics.m ASC"}},
                                        {"max_results", 1},
                                        {"page_token", page["next_page_token"]}})
                  .json["runs"][0]["info"]["run_id"],
              b);
    EXPECT_EQ(api_.post("runs/search", Json::object()).json, Json::object());
    EXPECT_EQ(api_.post("runs/search", {{"experiment_ids", {"x"}}}).status, 400);
    EXPECT_EQ(api_.post("runs/search", {{"experiment_ids", {"0"}}, {"filter", "bad ="}}).status,
              400);
    EXPECT_EQ(api_.post("runs/search", {{"experiment_ids", {"0"}}, {"max_results", 0}}).status,
              400);
}

TEST_F(RoutesTest, LinkDatasetsAndModels) {
    const std::string run = api_.create_run();
    const Json inputs = {
        {"run_id", run},
        {"datasets",
         {{{"tags", {{{"key", "mlflow.data.context"}, {"value", "train"}}}},
           {"dataset",
            {{"name", "iris"}, {"digest", "d1"}, {"source_type", "local"}, {"source", "{}"}}}}}}};
    EXPECT_EQ(api_.post("runs/log-inputs", inputs).json, Json::object());
    EXPECT_EQ(api_.post("runs/log-inputs", inputs).status, 200) << "retried";
    const Json model = api_.post("logged-models", {{"experiment_id", "0"},
                                                   {"name", "net"},
                                                   {"source_run_id", run},
                                                   {"params", {{{"key", "p"}, {"value", "1"}}}}})
                           .json["model"];
    const std::string id = model["info"]["model_id"].get<std::string>();
    EXPECT_EQ(model["info"]["status"], "LOGGED_MODEL_PENDING");
    EXPECT_EQ(model["info"]["artifact_uri"], "mlflow-artifacts:/0/models/" + id + "/artifacts");
    const Json outputs = {{"run_id", run}, {"models", {{{"model_id", id}, {"step", 3}}}}};
    EXPECT_EQ(api_.post("runs/outputs", outputs).status, 200);
    EXPECT_EQ(api_.post("runs/outputs", outputs).status, 200) << "retried";
    const Json read = api_.get("runs/get?run_id=" + run).json["run"];
    EXPECT_EQ(read["inputs"]["dataset_inputs"][0]["dataset"]["name"], "iris");
    EXPECT_EQ(read["inputs"]["dataset_inputs"][0]["tags"][0]["value"], "train");
    EXPECT_EQ(read["outputs"]["model_outputs"],
              Json::parse(R"([{"model_id": ")" + id + R"(", "step": 3}])"));
    EXPECT_EQ(api_.post("experiments/search-datasets", {{"experiment_ids", {"0"}}})
                  .json["dataset_summaries"][0]["context"],
              "train");
}

TEST_F(RoutesTest, KeepLoggedModels) {
    const Json model = api_.post("logged-models", {{"experiment_id", "0"}, {"name", "net"}}).json;
    const std::string id = model["model"]["info"]["model_id"].get<std::string>();
    const std::string base = "/api/2.0/mlflow/logged-models/" + id;
    EXPECT_EQ(api_.call(Method::kPatch, base,
                        R"({"model_id": ")" + id + R"(", "status": "LOGGED_MODEL_READY"})")
                  .json["model"]["info"]["status"],
              "LOGGED_MODEL_READY");
    EXPECT_EQ(api_.call(Method::kPatch, base, R"({"model_id": "m-other", "status": 2})").status,
              400);
    EXPECT_EQ(api_.call(Method::kPatch, base, "{}").status, 400);
    EXPECT_EQ(
        api_.call(Method::kPatch, base + "/tags", R"({"tags": [{"key": "a/b", "value": "1"}]})")
            .json,
        Json::object());
    EXPECT_EQ(
        api_.call(Method::kPost, base + "/params", R"({"params": [{"key": "p", "value": "1"}]})")
            .status,
        200);
    const Json read = api_.get("logged-models/" + id).json["model"];
    EXPECT_EQ(read["info"]["tags"], Json::parse(R"([{"key": "a/b", "value": "1"}])"));
    EXPECT_EQ(read["data"]["params"], Json::parse(R"([{"key": "p", "value": "1"}])"));
    EXPECT_EQ(
        api_.post("logged-models/search", {{"experiment_ids", {"0"}}, {"filter", "name = 'net'"}})
            .json["models"]
            .size(),
        1u);
    EXPECT_EQ(api_.post("logged-models/search", Json::object()).status, 400);
    EXPECT_EQ(api_.call(Method::kDelete, base + "/tags/a%2Fb").status, 200);
    EXPECT_EQ(api_.call(Method::kDelete, base + "/tags/a%2Fb").status, 404);
    EXPECT_EQ(api_.call(Method::kDelete, base).status, 200);
    EXPECT_EQ(api_.call(Method::kDelete, base).status, 200);
    EXPECT_EQ(api_.get("logged-models/" + id).status, 404);
}

TEST_F(RoutesTest, ListAndServeArtifacts) {
    const std::string run = api_.create_run();
    const std::string base = "0/" + run + "/artifacts/";
    ASSERT_TRUE(api_.artifacts->put(base + "plots/a b.png", "png").has_value());
    ASSERT_TRUE(api_.artifacts->put(base + "MLmodel", "flavors:").has_value());
    const Json list = api_.get("artifacts/list?run_id=" + run).json;
    EXPECT_EQ(list["root_uri"], "mlflow-artifacts:/0/" + run + "/artifacts");
    EXPECT_EQ(list["files"], Json::parse(R"([{"path": "MLmodel", "is_dir": false, "file_size": 8},
                                             {"path": "plots", "is_dir": true}])"));
    EXPECT_EQ(api_.get("artifacts/list?run_uuid=" + run + "&path=plots").json["files"][0]["path"],
              "plots/a b.png");
    const std::string proxy = "/api/2.0/mlflow-artifacts/artifacts";
    EXPECT_EQ(api_.call(Method::kGet, proxy + "?path=" + base + "plots").json["files"],
              Json::parse(R"([{"path": "a b.png", "is_dir": false, "file_size": 3}])"));
    EXPECT_EQ(api_.call(Method::kGet, proxy + "?path=none").json, Json::object());
    const Answer file = api_.call(Method::kGet, proxy + "/" + base + "plots/a%20b.png");
    EXPECT_EQ(file.response.content_type, "image/png");
    EXPECT_EQ(std::get<FileBody>(file.response.special).size_bytes, 3u);
    EXPECT_THAT(file.response.headers,
                testing::Contains(testing::Pair("Content-Security-Policy", HasSubstr("sandbox"))));
    EXPECT_EQ(api_.call(Method::kGet, "/get-artifact?run_id=" + run + "&path=MLmodel")
                  .response.content_type,
              "text/plain");
    const Answer missing = api_.call(Method::kGet, proxy + "/" + base + "none");
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(missing.message(), "No such artifact: '" + base + "none'");
    EXPECT_EQ(api_.call(Method::kGet, proxy + "/" + base + "plots").status, 400);
    EXPECT_EQ(api_.call(Method::kDelete, proxy + "/" + base + "plots").json, Json::object());
    EXPECT_EQ(api_.call(Method::kDelete, proxy + "/" + base + "plots").status, 200);
    EXPECT_EQ(api_.get("artifacts/list?run_id=" + run).json["files"].size(), 1u);
}

TEST_F(RoutesTest, RefuseWhatTheArtifactStoreCannotDo) {
    const std::string base = "/api/2.0/mlflow-artifacts/";
    const Answer mpu =
        api_.call(Method::kPost, base + "mpu/create/0/x", R"({"path": "f", "num_parts": 10001})");
    EXPECT_EQ(mpu.status, 501);
    EXPECT_THAT(
        mpu.message(),
        StartsWith("Multipart upload is not supported for the current artifact repository"));
    EXPECT_EQ(api_.call(Method::kGet, base + "presigned/0/x").status, 501);
    const std::string run = api_.create_run();
    const Answer presigned =
        api_.post("artifacts/presigned-upload-url", {{"run_id", run}, {"path", "x"}});
    EXPECT_EQ(presigned.status, 400);
    EXPECT_THAT(presigned.message(), HasSubstr("artifact URI scheme: mlflow-artifacts"));
    EXPECT_EQ(api_.post("artifacts/presigned-upload-url", {{"path", "x"}}).message(),
              "Exactly one of run_id and model_id must be provided.");
    EXPECT_EQ(api_.post("artifacts/presigned-download-url",
                        {{"run_id", run}, {"path", "x"}, {"expiration", 0}})
                  .message(),
              "expiration must be between 1 and 604800 seconds (got 0).");
    const std::string other =
        api_.post("experiments/create", {{"name", "s3"}, {"artifact_location", "s3://bucket/x"}})
            .json["experiment_id"]
            .get<std::string>();
    EXPECT_THAT(api_.get("artifacts/list?run_id=" + api_.create_run(other)).message(),
                HasSubstr("open them where they are"));
    const Answer made = api_.post("experiments/create",
                                  {{"name", "local"}, {"artifact_location", "file:///etc"}});
    const Answer local = api_.get("artifacts/list?run_id=" +
                                  api_.create_run(made.json["experiment_id"].get<std::string>()));
    EXPECT_EQ(local.status, 400) << "no folder of the server is read";
    EXPECT_THAT(local.message(), HasSubstr("/etc"));
}

TEST_F(RoutesTest, RefuseEveryFormOfTraversal) {
    const std::string run = api_.create_run();
    for (const char* path : {"../x", "a/../../x", "%2e%2e/x", "%252e%252e/x", "..%2fx",
                             "%2fetc/passwd", "a%23b", "%00", "C:%5Cx", "file:%2f%2f/etc/passwd"}) {
        const std::string proxy = "/api/2.0/mlflow-artifacts/artifacts";
        EXPECT_EQ(api_.call(Method::kGet, proxy + "/" + path).message(), "Invalid path") << path;
        EXPECT_EQ(api_.call(Method::kDelete, proxy + "/" + path).message(), "Invalid path");
        EXPECT_EQ(api_.call(Method::kGet, proxy + "?path=" + path).message(), "Invalid path");
        EXPECT_EQ(api_.get("artifacts/list?run_id=" + run + "&path=" + path).message(),
                  "Invalid path");
        EXPECT_EQ(
            api_.call(Method::kGet, "/get-artifact?run_id=" + run + "&path=" + path).message(),
            "Invalid path");
    }
}

TEST_F(RoutesTest, RefuseEventStreamsWithoutTopics) {
    EXPECT_EQ(api_.call(Method::kGet, "/api/ui/events").status, 400);
    EXPECT_EQ(api_.call(Method::kGet, "/api/ui/events?topics=,").status, 400);
    EXPECT_EQ(api_.call(Method::kGet, "/api/ui/events?topics=a%0Ab").status, 400);
    EXPECT_EQ(api_.call(Method::kGet, "/api/ui/events?topics=a,b").response.content_type,
              "text/event-stream");
}

/// The table is the checklist: each pair once, each documented.
TEST_F(RoutesTest, AreEachDescribed) {
    std::set<std::string> seen;
    for (const Route& route : api_.router.routes()) {
        EXPECT_FALSE(route.summary.empty()) << route.pattern;
        EXPECT_TRUE(
            seen.insert(std::string(method_name(route.method)) + " " + route.pattern).second);
    }
    EXPECT_GT(seen.size(), 80u);
}

TEST(WebRoutes, ServeThePageWithItsPolicy) {
    const std::string html = "<html>";
    const WebAsset assets[] = {{"/index.html", html, "", "text/html", "\"h\"", false},
                               {"/assets/app.js", "js", "gz", "text/javascript", "\"j\"", true}};
    Router router;
    add_web_routes(router, {.assets = assets});
    const auto ask = [&](std::string path, Fields headers = {}) {
        auto request = std::make_shared<Request>();
        request->path = std::move(path);
        request->headers = std::move(headers);
        Response answer;
        router.dispatch(request, [&](Response response) { answer = std::move(response); });
        return answer;
    };
    const auto bytes = [](const Response& response) {
        return std::get<StaticBody>(response.special).bytes;
    };
    EXPECT_EQ(bytes(ask("/")), html);
    EXPECT_EQ(bytes(ask("/experiments/0/runs/x")), html);
    EXPECT_EQ(bytes(ask("/assets/app.js")), "js");
    EXPECT_EQ(bytes(ask("/assets/app.js", {{"Accept-Encoding", "gzip, br"}})), "gz");
    EXPECT_EQ(ask("/assets/none.js").status, 404);
    EXPECT_THAT(ask("/").headers,
                testing::Contains(testing::Pair(
                    "Content-Security-Policy", testing::AllOf(HasSubstr("default-src 'none'"),
                                                              testing::Not(HasSubstr("unsafe"))))));
    EXPECT_THAT(ask("/assets/app.js").headers,
                testing::Contains(testing::Pair("Cache-Control", HasSubstr("immutable"))));
}

}  // namespace
}  // namespace tune::tracker::routes_test
