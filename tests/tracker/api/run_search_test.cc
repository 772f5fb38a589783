// runs/search and runs/get: chosen fields, and all runs as JSON lines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <sstream>

#include "tests/tracker/api/test_api.h"
#include "tracker/api/http/body_source.h"
#include "tracker/api/mlflow/run_search.h"

namespace tune::tracker {
namespace {

using ::testing::HasSubstr;

class RunSearchTest : public testing::Test {
protected:
    std::string create(int number) {
        const std::string id = api_.create_run();
        const std::string text = std::to_string(number);
        const Json batch = {
            {"run_id", id},
            {"metrics",
             {{{"key", "loss"}, {"value", number}, {"timestamp", 1}},
              {{"key", "val_loss"}, {"value", number + 0.5}, {"timestamp", 1}},
              {{"key", "val_acc"}, {"value", "NaN"}, {"timestamp", 1}}}},
            {"params", {{{"key", "lr"}, {"value", text}}, {{"key", "batch"}, {"value", "32"}}}},
            {"tags", {{{"key", "team.name"}, {"value", "x"}}}}};
        EXPECT_EQ(api_.post("runs/log-batch", batch).status, 200);
        return id;
    }

    /// "metrics.loss params.lr ..." of the run.
    static std::string keys(const Json& run) {
        std::string out;
        for (const char* kind : {"metrics", "params", "tags"})
            for (const Json& item : run["data"].value(kind, Json::array()))
                out += (out.empty() ? "" : " ") + std::string(kind) + "." +
                       item["key"].get<std::string>();
        return out;
    }

    std::string keys_with(const Json& fields) {
        const Answer answer =
            api_.post("runs/search", {{"experiment_ids", {"0"}}, {"fields", fields}});
        if (answer.status != 200) return answer.message();
        return keys(answer.json["runs"][0]);
    }

    std::shared_ptr<Request> lines_request(const Json& body) {
        auto request = std::make_shared<Request>();
        request->method = Method::kPost;
        request->path = request->raw_path = "/api/2.0/mlflow/runs/search";
        request->headers = {{"Content-Type", "application/json"},
                            {"Accept", "application/x-ndjson, application/json;q=0.5"}};
        request->body = body.dump();
        return request;
    }

    static std::string next_piece(BodySource& source) {
        std::promise<Result<std::string>> promise;
        source.read([&promise](Result<std::string> piece) { promise.set_value(std::move(piece)); });
        Result<std::string> piece = promise.get_future().get();
        EXPECT_TRUE(piece) << piece.error().text();
        return piece ? *piece : "";
    }

    static BodySource& source_of(const Answer& answer) {
        return *std::get<StreamBody>(answer.response.special).source;
    }

    /// The run ids of all lines.
    static std::vector<std::string> drain(BodySource& source, std::string text = "") {
        for (;;) {
            const std::string piece = next_piece(source);
            if (piece.empty()) break;
            EXPECT_EQ(piece.back(), '\n');
            text += piece;
        }
        std::vector<std::string> ids;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            ids.push_back(parse_json(line).value()["info"]["run_id"].get<std::string>());
        return ids;
    }

    TestApi api_;
};

TEST_F(RunSearchTest, FieldsChooseWhatIsAnswered) {
    create(1);
    const std::string all =
        "metrics.loss metrics.val_acc metrics.val_loss params.batch params.lr "
        "tags.mlflow.runName tags.team.name";
    EXPECT_EQ(keys_with(Json::array()), all);
    EXPECT_EQ(keys_with({"data"}), all);
    EXPECT_EQ(keys_with({"info"}), "");
    EXPECT_EQ(keys_with({"metrics.loss"}), "metrics.loss");
    EXPECT_EQ(keys_with({"metrics.val_loss", "metrics.loss", "metrics.loss", "metrics.never"}),
              "metrics.loss metrics.val_loss");
    EXPECT_EQ(keys_with({"info", "metrics.val_*", "params.*", "tags.team.name"}),
              "metrics.val_acc metrics.val_loss params.batch params.lr tags.team.name");
    EXPECT_EQ(keys_with({"metrics", "metrics.loss"}),
              "metrics.loss metrics.val_acc metrics.val_loss");
    EXPECT_EQ(keys_with({"tags.*", "params.lr"}), "params.lr tags.mlflow.runName tags.team.name");
    Json many = Json::array();  // more than are looked up one by one
    for (int i = 0; i < 100; ++i) many.push_back("metrics.m" + std::to_string(i));
    many.push_back("metrics.loss");
    EXPECT_EQ(keys_with(many), "metrics.loss");
}

TEST_F(RunSearchTest, FieldsKeepTheShapeOfARun) {
    const std::string id = create(1);
    EXPECT_EQ(
        api_.post("runs/log-inputs",
                  {{"run_id", id},
                   {"datasets",
                    {{{"dataset",
                       {{"name", "d"}, {"digest", "1"}, {"source_type", "s"}, {"source", "s"}}}}}}})
            .status,
        200);
    const Answer none = api_.get("runs/get?run_id=" + id + "&fields=info");
    EXPECT_EQ(none.json["run"]["info"]["run_id"], id);
    EXPECT_EQ(none.json["run"]["info"]["status"], "RUNNING");
    EXPECT_EQ(none.json["run"]["data"], Json::object());
    EXPECT_EQ(none.json["run"]["inputs"], Json::object());
    const Answer some = api_.get("runs/get?run_id=" + id + "&fields=inputs&fields=metrics.loss");
    EXPECT_EQ(some.json["run"]["inputs"]["dataset_inputs"].size(), 1u);
    EXPECT_EQ(keys(some.json["run"]), "metrics.loss");
    EXPECT_EQ(api_.get("runs/get?run_id=none&fields=info").status, 404);
}

TEST_F(RunSearchTest, UnknownFieldsAreRefused) {
    create(1);
    for (const char* name : {"", "bogus", "metric.loss", "metrics.", "metrics.a*b", "info.run_id",
                             "params.**", "metrics.loss "}) {
        const std::string message = keys_with({name});
        const bool is_fine = std::string_view(name) == "metrics.loss ";  // a key like any other
        EXPECT_EQ(message, is_fine ? ""
                                   : "Unknown name '" + std::string(name) +
                                         "' in 'fields'. Known are info, data, metrics, params, "
                                         "tags, inputs, outputs, and metrics.KEY, params.KEY and "
                                         "tags.KEY, where KEY may end with *.");
    }
    EXPECT_THAT(keys_with(Json(std::vector<std::string>(501, "info"))),
                HasSubstr("'fields' has 501 names; at most 500"));
    EXPECT_EQ(api_.post("runs/search", {{"fields", {1}}}).status, 400);
}

TEST_F(RunSearchTest, JsonLinesHoldAllRunsInOrder) {
    std::vector<std::string> ids;
    for (int i = 0; i < 30; ++i) ids.push_back(create(i));
    const Answer answer = api_.send(lines_request({{"experiment_ids", {"0"}},
                                                   {"filter", "metrics.loss >= 10"},
                                                   {"order_by", {"metrics.loss"}},
                                                   {"fields", {"metrics.loss"}}}));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.response.content_type, "application/x-ndjson");
    EXPECT_EQ(drain(source_of(answer)), std::vector<std::string>(ids.begin() + 10, ids.end()));
    const Answer few = api_.send(lines_request(
        {{"experiment_ids", {"0"}}, {"order_by", {"metrics.loss"}}, {"max_results", 3}}));
    EXPECT_EQ(drain(source_of(few)), std::vector<std::string>(ids.begin(), ids.begin() + 3));
    const Answer none = api_.send(lines_request({{"experiment_ids", {"77"}}}));
    EXPECT_EQ(drain(source_of(none)), std::vector<std::string>());
}

TEST_F(RunSearchTest, JsonLinesRefuseBeforeTheyBegin) {
    const auto refusal = [this](Json more) {
        more["experiment_ids"] = {"0"};
        const Answer answer = api_.send(lines_request(more));
        EXPECT_EQ(answer.status, 400);
        return answer.message();
    };
    EXPECT_THAT(refusal({{"filter", "bogus"}}), HasSubstr("Invalid clause(s)"));
    EXPECT_THAT(refusal({{"fields", {"bogus"}}}), HasSubstr("Unknown name 'bogus'"));
    EXPECT_THAT(refusal({{"page_token", "x"}}), HasSubstr("leave 'page_token' out"));
    EXPECT_THAT(refusal({{"max_results", 0}}), HasSubstr("must be a positive integer"));
}

TEST_F(RunSearchTest, JsonLinesGiveEachRunOnceWhateverIsWrittenMeanwhile) {
    std::vector<std::string> ids;
    const std::string filler(8'000, 'x');
    for (int i = 0; i < 60; ++i) {
        ids.push_back(create(i));
        api_.post("runs/set-tag", {{"run_id", ids.back()}, {"key", "t"}, {"value", filler}});
    }
    const Answer answer =
        api_.send(lines_request({{"experiment_ids", {"0"}}, {"order_by", {"metrics.loss"}}}));
    BodySource& source = source_of(answer);
    const std::string first = next_piece(source);
    EXPECT_LT(first.size(), kRunStreamPieceBytes + 10'000);  // about half
    // Values that would move every run to the other side of the page, and new and deleted runs.
    for (int i = 0; i < 60; ++i)
        api_.post("runs/log-metric", {{"run_id", ids[static_cast<std::size_t>(i)]},
                                      {"key", "loss"},
                                      {"value", -i},
                                      {"timestamp", 2},
                                      {"step", 1}});
    create(7);
    api_.post("runs/delete", {{"run_id", ids[59]}});
    EXPECT_EQ(drain(source, first), ids);
}

TEST_F(RunSearchTest, StreamsAreLimitedAndGiveTheirPlaceBack) {
    create(1);
    std::vector<Answer> open;
    for (int i = 0; i < kRunStreamsMax; ++i)
        open.push_back(api_.send(lines_request({{"experiment_ids", {"0"}}})));
    EXPECT_EQ(api_.send(lines_request({{"experiment_ids", {"0"}}})).status, 429);
    open.pop_back();
    EXPECT_EQ(api_.send(lines_request({{"experiment_ids", {"0"}}})).status, 200);
}

}  // namespace
}  // namespace tune::tracker
