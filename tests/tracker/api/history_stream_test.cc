// metrics/get-history of long histories: sent while it is read.

#include "tracker/api/mlflow/history_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <utility>
#include <vector>

#include "tests/tracker/api/test_api.h"
#include "tracker/api/http/body_source.h"
#include "tracker/api/mlflow/run_search.h"

namespace tune::tracker {
namespace {

constexpr int kPoints = 60'000;

class HistoryStreamTest : public testing::Test {
protected:
    void SetUp() override {
        run_id_ = api_.create_run();
        LogBatch batch{.run_id = run_id_};
        for (int i = 0; i < kPoints; ++i) {
            const double value = i % 1'000 == 0 ? std::nan("") : i / 3.0;
            batch.metrics.push_back({"long m/1", value, 1'000 + i, i});
            if (batch.metrics.size() < 1'000) continue;
            ASSERT_TRUE(api_.store->execute(std::exchange(batch, {.run_id = run_id_})));
        }
    }

    Response get(const Fields& more = {}) {
        auto request = std::make_shared<Request>();
        request->method = Method::kGet;
        request->path = request->raw_path = "/api/2.0/mlflow/metrics/get-history";
        request->query = {{"run_id", run_id_}, {"metric_key", "long m/1"}};
        request->query.insert(request->query.end(), more.begin(), more.end());
        std::promise<Response> promise;
        api_.router.dispatch(std::move(request),
                             [&promise](Response given) { promise.set_value(std::move(given)); });
        return promise.get_future().get();
    }

    static Result<std::string> next_piece(BodySource& source) {
        std::promise<Result<std::string>> promise;
        source.read([&promise](Result<std::string> piece) { promise.set_value(std::move(piece)); });
        return promise.get_future().get();
    }

    TestApi api_;
    std::string run_id_;
};

TEST_F(HistoryStreamTest, TheWholeIsWhatThePagesAre) {
    const Response response = get();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.content_type, "application/json");
    ASSERT_TRUE(std::holds_alternative<StreamBody>(response.special));
    BodySource& source = *std::get<StreamBody>(response.special).source;
    std::string text;
    std::size_t pieces = 0;
    for (;; ++pieces) {
        const Result<std::string> piece = next_piece(source);
        ASSERT_TRUE(piece) << piece.error().text();
        if (piece->empty()) break;
        EXPECT_LT(piece->size(), kHistoryPieceBytes + 1'000);
        text += *piece;
    }
    EXPECT_GT(pieces, 5u);
    const Json whole = parse_json(text).value()["metrics"];
    Json pages = Json::array();
    std::string token;
    do {
        const Response page = get({{"max_results", "25000"}, {"page_token", token}});
        const Json json = parse_json(page.body).value();
        for (const Json& point : json["metrics"]) pages.push_back(point);
        token = json.value("next_page_token", "");
    } while (!token.empty());
    EXPECT_EQ(whole.size(), static_cast<std::size_t>(kPoints));
    EXPECT_EQ(whole, pages);
}

TEST_F(HistoryStreamTest, ARunThatIsRemovedMeanwhileBreaksNothing) {
    const Response response = get();
    BodySource& source = *std::get<StreamBody>(response.special).source;
    ASSERT_TRUE(next_piece(source));
    ASSERT_TRUE(api_.store->execute(DeleteRun{run_id_}));
    ASSERT_TRUE(api_.store->execute(Operation(PurgeRuns{{run_id_}, std::int64_t{1} << 60})));
    std::string last;
    for (;;) {
        const Result<std::string> piece = next_piece(source);
        if (!piece || piece->empty()) {
            EXPECT_FALSE(piece) << "a part of the history must not look like the whole";
            break;
        }
    }
}

TEST_F(HistoryStreamTest, OnlySoManyAreSentAtATime) {
    std::vector<Response> taken;
    for (int i = 0; i < kRunStreamsMax; ++i) {
        taken.push_back(get());
        EXPECT_EQ(taken.back().status, 200);
    }
    EXPECT_EQ(get().status, 429);
    EXPECT_EQ(get({{"max_results", "10"}}).status, 200);
    taken.pop_back();
    EXPECT_EQ(get().status, 200);
}

}  // namespace
}  // namespace tune::tracker
