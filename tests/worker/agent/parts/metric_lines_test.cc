#include "worker/agent/output/metric_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tune::worker {
namespace {

using tuner::ReportedMetric;
using tuner::ScrapePattern;

constexpr std::int64_t kNow = 1'700'000'000'000;

class MetricLinesTest : public testing::Test {
protected:
    void use(std::vector<ScrapePattern> patterns, std::string objective = "loss") {
        Result<MetricLines> made = MetricLines::create(patterns, std::move(objective));
        ASSERT_TRUE(made) << made.error().text();
        lines_.emplace(std::move(*made));
    }
    std::vector<ReportedMetric> read(std::string_view line) {
        if (!lines_) use({});
        LineFindings findings;
        lines_->read(line, kNow, findings);
        params_ = findings.params;
        artifacts_ = findings.artifacts;
        return findings.metrics;
    }
    /// "key=value@step" for each metric.
    std::string text(std::string_view line) {
        std::string all;
        for (const ReportedMetric& metric : read(line)) {
            char one[128];
            std::snprintf(one, sizeof one, "%s=%g@%lld ", metric.key.c_str(), metric.value,
                          static_cast<long long>(metric.step));
            all += one;
        }
        return all;
    }
    std::string refusal(ScrapePattern pattern) {
        const Result<MetricLines> made = MetricLines::create({pattern}, "loss");
        return made ? "" : made.error().message;
    }

    std::optional<MetricLines> lines_;
    std::vector<tuner::ReportedParam> params_;
    std::vector<std::string> artifacts_;
};

TEST_F(MetricLinesTest, ReadsATuneLine) {
    EXPECT_EQ(text(R"(tune: {"val_loss": 0.31, "step": 4})"), "val_loss=0.31@4 ");
    EXPECT_EQ(text("  tune:{\"a\":1,\"b\":-2e3,\"step\":0}\r\n"), "a=1@0 b=-2000@0 ");
    EXPECT_EQ(read(R"(tune: {"a": 1})").front().timestamp_ms, kNow);
    EXPECT_EQ(read(R"(tune: {"a": 1, "timestamp_ms": 12})").front().timestamp_ms, 12);
    EXPECT_EQ(lines_->malformed_count(), 0);
}

TEST_F(MetricLinesTest, ALineMayNameAnArtifact) {
    EXPECT_EQ(text(R"(tune: {"artifact": "profile/trace.json", "loss": 1})"), "loss=1@0 ");
    EXPECT_EQ(artifacts_, std::vector<std::string>{"profile/trace.json"});
    EXPECT_EQ(text(R"(tune: {"artifact": 3})"), "artifact=3@0 ") << "a metric of that name";
    EXPECT_TRUE(artifacts_.empty());
    EXPECT_EQ(lines_->malformed_count(), 0);
    EXPECT_EQ(text(R"(tune: {"artifact": ["a"]})"), "");
    EXPECT_EQ(lines_->malformed_count(), 1);
}

TEST_F(MetricLinesTest, CountsStepsThatAreNotGiven) {
    EXPECT_EQ(text(R"(tune: {"a": 1})"), "a=1@0 ");
    EXPECT_EQ(text(R"(tune: {"a": 2, "b": 3})"), "a=2@1 b=3@0 ");
    EXPECT_EQ(text(R"(tune: {"a": 4, "step": 9})"), "a=4@9 ");
    EXPECT_EQ(text(R"(tune: {"a": 5})"), "a=5@2 ");
}

TEST_F(MetricLinesTest, ReadsNumbersThatAreNotFinite) {
    const std::vector<ReportedMetric> bare =
        read(R"(tune: {"a": NaN, "b": Infinity, "c": -Infinity, "step": 1})");
    ASSERT_EQ(bare.size(), 3u);
    EXPECT_TRUE(std::isnan(bare[0].value));
    EXPECT_EQ(bare[1].value, INFINITY);
    EXPECT_EQ(bare[2].value, -INFINITY);
    const std::vector<ReportedMetric> quoted = read(R"(tune: {"a": "NaN", "b": "-inf"})");
    ASSERT_EQ(quoted.size(), 2u);
    EXPECT_TRUE(std::isnan(quoted[0].value));
    EXPECT_EQ(quoted[1].value, -INFINITY);
}

TEST_F(MetricLinesTest, LeavesWordsInsideStringsAlone) {
    EXPECT_EQ(text(R"(tune: {"NaN \"Infinity": 1, "x": NaN})"), "NaN \"Infinity=1@0 x=nan@0 ");
}

TEST_F(MetricLinesTest, TakesParams) {
    EXPECT_EQ(text(R"(tune: {"params": {"depth": 3, "kind": "wide"}, "a": 1})"), "a=1@0 ");
    ASSERT_EQ(params_.size(), 2u);
    EXPECT_EQ(params_[0].key + "=" + params_[0].value, "depth=3");
    EXPECT_EQ(params_[1].key + "=" + params_[1].value, "kind=wide");
}

TEST_F(MetricLinesTest, SaysOfPythonsQuotesWhatToDo) {
    EXPECT_EQ(text("tune: {'a': 1, 'step': 2}"), "");
    EXPECT_EQ(
        lines_->malformed_example(),
        "'tune: {'a': 1, 'step': 2}': names must be in double quotes (in Python: json.dumps)");
}

TEST_F(MetricLinesTest, ReadsNumbersThatAreNotFiniteAsProgramsPrintThem) {
    const std::string all = text(R"(tune: {"a": nan, "b": -inf, "c": INF, "step": 1})");
    EXPECT_EQ(all, text(R"(tune: {"a": NaN, "b": -Infinity, "c": "Infinity", "step": 1})"));
    EXPECT_EQ(all.find("a=nan@1 b=-inf@1 "), 0u) << all;
    EXPECT_EQ(lines_->malformed_count(), 0);
    EXPECT_EQ(text(R"(tune: {"inf": 1, "nan": 2, "step": 1})"), "inf=1@1 nan=2@1 ");
    EXPECT_EQ(text(R"(tune: {"a": info})"), "");
    EXPECT_EQ(lines_->malformed_count(), 1);
}

TEST_F(MetricLinesTest, CountsMalformedLinesAndGoesOn) {
    EXPECT_EQ(text("tune: {\"a\": "), "");
    EXPECT_EQ(text("tune: [1]"), "");
    EXPECT_EQ(text("tune: {\"a\": 1, \"step\": \"x\"}"), "");
    EXPECT_EQ(text("tune: {\"a\": {\"b\": 1}, \"c\": 2}"), "c=2@0 ");
    EXPECT_EQ(text("tune: {\"a\": \"\xff\xfe\"}"), "");
    EXPECT_EQ(lines_->malformed_count(), 5);
    EXPECT_TRUE(lines_->malformed_example().starts_with("'tune: {\"a\": '"))
        << lines_->malformed_example();
    EXPECT_EQ(text(R"(tune: {"a": 1})"), "a=1@0 ");
}

TEST_F(MetricLinesTest, OtherLinesAreNotOurs) {
    EXPECT_EQ(text("fortune: {\"a\": 1}"), "");
    EXPECT_EQ(text("val_loss = 0.3"), "");
    EXPECT_EQ(lines_->malformed_count(), 0);
}

TEST_F(MetricLinesTest, APlainNameFindsItsNumber) {
    use({{"", "val_loss"}});
    EXPECT_EQ(text("val_loss=0.25"), "val_loss=0.25@0 ");
    EXPECT_EQ(text("epoch 3: val_loss: 1e-3, acc: 0.9"), "val_loss=0.001@1 ");
    EXPECT_EQ(text("val_loss 7"), "val_loss=7@2 ");
    EXPECT_EQ(text("{'val_loss': 0.5}"), "val_loss=0.5@3 ");
    EXPECT_EQ(text("val_loss = -.5."), "val_loss=-0.5@4 ");
    EXPECT_EQ(text("val_loss=12%"), "val_loss=12@5 ");
    EXPECT_EQ(text("my_val_loss=1 best-val_loss=1 val_loss_2=1 val_loss"), "");
    EXPECT_EQ(text("val_loss=0.5x"), "");
    EXPECT_TRUE(std::isnan(read("val_loss: NaN").at(0).value));
    EXPECT_EQ(read("val_loss: -inf").at(0).value, -INFINITY);
}

TEST_F(MetricLinesTest, ANameWithAnEmptyPatternIsTheSame) {
    use({{"acc", ""}});
    EXPECT_EQ(text("acc: 0.5"), "acc=0.5@0 ");
}

TEST_F(MetricLinesTest, ANamedMetricTakesItsGroups) {
    use({{"loss", R"(step (?P<step>\d+).*loss=(?P<value>\S+))"},
         {"acc", R"(accuracy (\S+) at (\d+))"}});
    EXPECT_EQ(text("step 12: loss=0.5"), "loss=0.5@12 ");
    EXPECT_EQ(text("accuracy 0.75 at 3"), "acc=0.75@3 ");
    EXPECT_EQ(text("step 12: loss=abc"), "");
}

TEST_F(MetricLinesTest, GroupsMayNameTheMetrics) {
    use({{"", R"(\[(?P<step>\d+)\] (?P<loss>[\d.]+) (?P<acc>[\d.]+))"}});
    EXPECT_EQ(text("[5] 0.5 0.9"), "acc=0.9@5 loss=0.5@5 ");
    use({{"", R"((\w+) is (\S+))"}});
    EXPECT_EQ(text("f1 is 0.25"), "f1=0.25@0 ");
    use({{"", R"((?P<name>\w+) -> (?P<value>\S+))"}});
    EXPECT_EQ(text("f1 -> 2"), "f1=2@0 ");
    use({{"", R"(result (\S+))"}}, "objective");
    EXPECT_EQ(text("result 4"), "objective=4@0 ");
}

TEST_F(MetricLinesTest, OnlyTheLastStateOfARewrittenLineCounts) {
    use({{"", "loss"}});
    EXPECT_EQ(text("10% loss=3\r50% loss=2\r100% loss=1\r"), "loss=1@0 ");
    EXPECT_EQ(text("100%|####|\rtune: {\"loss\": 9}"), "loss=9@1 ");
}

TEST_F(MetricLinesTest, RefusesPatternsItCannotUse) {
    EXPECT_NE(refusal({"", "("}).find("not a valid RE2 expression"), std::string::npos);
    EXPECT_NE(refusal({"", "loss = .*"}).find("no group"), std::string::npos);
    EXPECT_NE(refusal({"", ""}).find("is empty"), std::string::npos);
    EXPECT_NE(refusal({"", "(?=x)(1)"}).find("not a valid RE2"), std::string::npos);
}

TEST_F(MetricLinesTest, APatternCannotHangTheAgent) {
    use({{"x", "(a+)+$"}});
    EXPECT_EQ(text(std::string(50'000, 'a') + "b"), "");  // exponential for backtracking engines
}

TEST(ReadNumber, TakesTheWholeTextOnly) {
    double value = 0;
    for (const char* good :
         {"1", "-1.5", "+2.", ".5", "1e3", "1E-3", " 4 ", "nan", "-INF", "Infinity"})
        EXPECT_TRUE(read_number(good, value)) << good;
    for (const char* bad : {"", "x", "1x", "--1", "1e", "0x10", "infinit", "1 2"})
        EXPECT_FALSE(read_number(bad, value)) << bad;
}

}  // namespace
}  // namespace tune::worker
