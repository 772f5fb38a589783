#include <gmock/gmock.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker::logging_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class LoggingTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        id_ = create_run();
    }
    std::string latest(const std::string& key) {
        for (const Metric& metric : get(id_).metrics)
            if (metric.key == key) return text({metric});
        return "";
    }
    std::string id_;
};

TEST_F(LoggingTest, LatestIsTheGreatestByStepTimeAndValue) {
    log(id_, "a", 1, 5, 100);
    log(id_, "a", 2, 4, 900);
    EXPECT_EQ(latest("a"), "5:1@100");
    log(id_, "a", 3, 5, 99);
    EXPECT_EQ(latest("a"), "5:1@100");
    log(id_, "a", 0.5, 5, 101);
    EXPECT_EQ(latest("a"), "5:0.5@101");
    log(id_, "a", 0.7, 5, 101);
    EXPECT_EQ(latest("a"), "5:0.7@101");
    log(id_, "a", 0.6, 5, 101);
    EXPECT_EQ(latest("a"), "5:0.7@101");
    log(id_, "a", 9, -3, 999);
    EXPECT_EQ(latest("a"), "5:0.7@101");
}

TEST_F(LoggingTest, NanCountsAsZeroWhenTheLatestIsChosen) {
    log(id_, "a", kNan, 1, 1);
    EXPECT_EQ(latest("a"), "1:nan@1");
    log(id_, "a", 0.1, 1, 1);
    EXPECT_EQ(latest("a"), "1:0.1@1");
    log(id_, "b", -1, 1, 1);
    log(id_, "b", kNan, 1, 1);
    EXPECT_EQ(latest("b"), "1:nan@1");
    log(id_, "c", 0, 1, 1);
    log(id_, "c", kNan, 1, 1);
    EXPECT_EQ(latest("c"), "1:0@1");
    EXPECT_EQ(history(id_, "c"), "1:0@1 1:nan@1");
}

TEST_F(LoggingTest, InfinitiesAreClamped) {
    log(id_, "a", kInfinity, 1);
    log(id_, "a", -kInfinity, 2);
    const auto page = store_->metric_history(id_, "a");
    ASSERT_TRUE(page);
    EXPECT_EQ(page->items[0].value, DBL_MAX);
    EXPECT_EQ(page->items[1].value, -DBL_MAX);
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<MetricsLogged>()[0].metrics[0].value, DBL_MAX);
}

TEST_F(LoggingTest, ExactRepeatsAreDropped) {
    log(id_, "a", 1, 1, 1);
    log(id_, "a", 1, 1, 1);
    log(id_, "a", 1, 1, 2);
    log(id_, "a", kNan, 1, 1);
    log(id_, "a", kNan, 1, 1);
    run(LogBatch{.run_id = id_,
                 .metrics = {{"a", 1, 1, 1}, {"a", 7, 7, 7}, {"a", 7, 7, 7}, {"b", 1, 1, 1}}});
    EXPECT_EQ(history(id_, "a"), "1:nan@1 1:1@1 1:1@2 7:7@7");
    EXPECT_EQ(history(id_, "b"), "1:1@1");
    store_->wait_for_observers();
    std::string seen;
    for (const MetricsLogged& event : observer_.of<MetricsLogged>())
        for (const Metric& metric : event.metrics) seen += metric.key + ":" + text({metric}) + " ";
    EXPECT_EQ(seen, "a:1:1@1 a:1:1@2 a:1:nan@1 a:7:7@7 b:1:1@1 ");
}

TEST_F(LoggingTest, RepeatsAreDroppedWhereverTheFirstWas) {
    // Enough points for many blocks, logged twice: in order, then in batches backwards.
    constexpr int kPoints = 3'000;
    const auto batch = [&](int first) {
        LogBatch command{.run_id = id_};
        for (int i = first; i < first + 500; ++i)
            command.metrics.push_back({"a", 0.25 * i, 1'000 + i / 7, i});
        return command;
    };
    for (int first = 0; first < kPoints; first += 500) run(batch(first));
    const std::string once = history(id_, "a");
    for (int first = kPoints - 500; first >= 0; first -= 500) run(batch(first));
    reopen();
    for (int first = 0; first < kPoints; first += 500) run(batch(first));
    EXPECT_EQ(history(id_, "a"), once);
    const auto page = store_->metric_history(id_, "a");
    EXPECT_EQ(page->items.size(), static_cast<std::size_t>(kPoints));
}

TEST_F(LoggingTest, ParamsAreImmutable) {
    run(LogParam{id_, {"p", "1"}});
    run(LogParam{id_, {"p", "1"}});
    EXPECT_EQ(refusal(LogParam{id_, {"p", "2"}}),
              "INVALID_PARAMETER_VALUE: Changing param values is not allowed. Param with key='p' "
              "was already logged with value='1' for run ID='" +
                  id_ + "'. Attempted logging new value '2'.");
    run(LogParam{id_, {"empty", ""}});
    EXPECT_EQ(refusal(LogBatch{.run_id = id_,
                               .metrics = {{"m", 1, 1, 1}},
                               .params = {{"p", "3"}, {"new", "x"}, {"empty", "it's"}},
                               .tags = {{"t", "1"}}}),
              "INVALID_PARAMETER_VALUE: Changing param values is not allowed. Params were already "
              "logged='[{'key': 'p', 'old_value': '1', 'new_value': '3'}, {'key': 'empty', "
              "'old_value': '', 'new_value': \"it's\"}]' for run ID='" +
                  id_ + "'.");
    const Run read = get(id_);
    EXPECT_EQ(pairs(read.params), "empty= p=1");
    EXPECT_TRUE(read.metrics.empty());
    EXPECT_EQ(read.tags.size(), 1u);
}

TEST_F(LoggingTest, BatchesHoldEverything) {
    run(LogBatch{.run_id = id_,
                 .metrics = {{"b", 1, 1, 1}, {"a", 2, 2, 2}, {"b", 3, 3, 3}},
                 .params = {{"z", "1"}, {"y", "2"}},
                 .tags = {{"t", "1"}, {"t", "2"}}});
    const Run read = get(id_);
    EXPECT_EQ(text(read.metrics), "2:2@2 3:3@3");
    EXPECT_EQ(pairs(read.params), "y=2 z=1");
    EXPECT_NE(pairs(read.tags).find("t=2"), std::string::npos);
    run(LogBatch{.run_id = id_});
    store_->wait_for_observers();
    ASSERT_EQ(observer_.of<MetricsLogged>().size(), 1u);
    EXPECT_EQ(observer_.of<MetricsLogged>()[0].metrics.size(), 3u);
    EXPECT_EQ(observer_.of<ParamsLogged>().size(), 1u);
}

TEST_F(LoggingTest, TagsAreOverwrittenAndDeleted) {
    run(SetTag{id_, {"t", "1"}});
    run(SetTag{id_, {"t", "2"}});
    EXPECT_NE(pairs(get(id_).tags).find("t=2"), std::string::npos);
    run(DeleteTag{id_, "t"});
    EXPECT_EQ(get(id_).tags.size(), 1u);
    EXPECT_EQ(refusal(DeleteTag{id_, "t"}),
              "RESOURCE_DOES_NOT_EXIST: No tag with name: t in run with id " + id_);
    EXPECT_EQ(refusal(DeleteTag{id_, "never seen"}),
              "RESOURCE_DOES_NOT_EXIST: No tag with name: never seen in run with id " + id_);
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<TagsSet>().size(), 2u);
    EXPECT_EQ(observer_.of<TagDeleted>().size(), 1u);
}

TEST_F(LoggingTest, LegacyModelsAreAppendedToATag) {
    const auto model = [](const std::string& path) {
        return R"({"artifact_path": ")" + path +
               R"(", "flavors": {"python": {"config": 1, "v": 2}}, "utc_time_created": "t",
                "run_id": "r", "other": 1})";
    };
    run(RecordLoggedModel{id_, model("a")});
    run(RecordLoggedModel{id_, model("b")});
    const std::string entry =
        R"("flavors":{"python":{"v":2}},"model_uuid":null,"run_id":"r","utc_time_created":"t"})";
    EXPECT_NE(pairs(get(id_).tags)
                  .find(R"(mlflow.log-model.history=[{"artifact_path":"a",)" + entry +
                        R"(,{"artifact_path":"b",)" + entry + "]"),
              std::string::npos);
    EXPECT_EQ(refusal(RecordLoggedModel{id_, "{}"}),
              "INVALID_PARAMETER_VALUE: Model json is missing mandatory fields: {'artifact_path', "
              "'flavors', 'run_id', 'utc_time_created'}");
    EXPECT_EQ(refusal(RecordLoggedModel{id_, "nonsense"}),
              "INVALID_PARAMETER_VALUE: Malformed model info. \n nonsense \n is not a valid JSON.");
}

TEST_F(LoggingTest, FinishedRunsStillTakeMetrics) {
    run<RunInfo>(UpdateRun{.run_id = id_, .status = RunStatus::kFinished});
    log(id_, "late", 1);
    EXPECT_EQ(latest("late"), "0:1@0");
}

TEST_F(LoggingTest, ExtremeStepsAndTimesAreKept) {
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    run(LogBatch{.run_id = id_,
                 .metrics = {{"a", 1, kMax, kMin}, {"a", 2, 0, kMax}, {"a", 5e-324, 7, 0}}});
    reopen();
    EXPECT_EQ(history(id_, "a"),
              "9223372036854775807:2@0 0:4.94066e-324@7 "
              "-9223372036854775808:1@9223372036854775807");
    EXPECT_EQ(latest("a"), "9223372036854775807:2@0");
}

std::string params_of(const Run& run) {
    std::string out;
    for (const Param& param : run.params)
        out += (out.empty() ? "" : " ") + param.key + "=" + param.value;
    return out;
}

TEST_F(LoggingTest, SuggestedParamsGiveWayOnceToTheRunsOwn) {
    run(SuggestParams{id_, {{"flag", "true"}, {"lr", "0.1"}, {"kept", "a"}}});
    run(LogParam{id_, {"flag", "True"}});
    run(LogBatch{.run_id = id_, .params = {{"lr", "1e-1"}}});
    EXPECT_EQ(params_of(get(id_)), "flag=True kept=a lr=1e-1");

    EXPECT_THAT(refusal(LogParam{id_, {"flag", "False"}}), testing::HasSubstr("not allowed"));
    EXPECT_THAT(refusal(LogBatch{.run_id = id_, .params = {{"kept", "b"}, {"lr", "2"}}}),
                testing::HasSubstr("not allowed"));
    EXPECT_EQ(params_of(get(id_)), "flag=True kept=a lr=1e-1") << "a batch is all or nothing";
}

TEST_F(LoggingTest, ASecondSuggestionKeepsTheValueAndAllowsOneMoreChange) {
    run(SuggestParams{id_, {{"lr", "0.1"}}});
    run(LogParam{id_, {"lr", "first"}});
    run(SuggestParams{id_, {{"lr", "0.1"}}});
    EXPECT_EQ(params_of(get(id_)), "lr=first");
    run(LogParam{id_, {"lr", "second"}});
    EXPECT_EQ(params_of(get(id_)), "lr=second");
}

TEST_F(LoggingTest, ALaterAttemptMayChangeWhatTheEarlierOneLoggedOnce) {
    run(SuggestParams{id_, {{"lr", "0.1"}}});
    run(LogParam{id_, {"host", "a"}});
    run(SuggestParams{.run_id = id_, .params = {}, .reopens = true});
    EXPECT_EQ(params_of(get(id_)), "host=a lr=0.1");
    run(LogBatch{.run_id = id_, .params = {{"host", "b"}}});
    EXPECT_EQ(params_of(get(id_)), "host=b lr=0.1");
    EXPECT_THAT(refusal(LogParam{id_, {"host", "c"}}), testing::HasSubstr("not allowed"));
}

TEST_F(LoggingTest, ClosedParamsStayAsTheyAre) {
    run(SuggestParams{id_, {{"lr", "0.1"}}});
    run(CloseParams{id_});
    EXPECT_THAT(refusal(LogParam{id_, {"lr", "0.2"}}), testing::HasSubstr("not allowed"));
    EXPECT_EQ(params_of(get(id_)), "lr=0.1");
}

}  // namespace
}  // namespace tune::tracker::logging_test
