#include "worker/agent/output/trial_output.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/server/log_upload.h"
#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {
namespace {

class TrialOutputTest : public testing::Test {
protected:
    TrialOutput open(OutputPosition from = {}) {
        return TrialOutput(folder_.path(), std::move(*MetricLines::create({}, "loss")),
                           std::move(from));
    }
    static std::string text(const Segment& segment) {
        std::string all;
        for (const tuner::ReportedMetric& metric : segment.findings.metrics)
            all += metric.key + "@" + std::to_string(metric.step) + ":" +
                   std::to_string(static_cast<int>(metric.value)) + " ";
        return all;
    }
    std::string read(TrialOutput& output) {
        std::string all;
        while (true) {
            Segment segment;
            if (!output.read(5, segment)) return all;
            all += text(segment);
            last_ = segment;
        }
    }
    void out(std::string_view bytes) { folder_.append(kStdoutFile, bytes); }

    Scratch folder_;
    Segment last_;
};

TEST_F(TrialOutputTest, WaitsForFilesAndWholeLines) {
    TrialOutput output = open();
    EXPECT_EQ(read(output), "");
    out("tune: {\"a\"");
    EXPECT_EQ(read(output), "");
    out(": 1}\ntune: {\"a\": 2");
    EXPECT_EQ(read(output), "a@0:1 ");
    folder_.append(kStderrFile, "tune: {\"b\": 7}\n");
    EXPECT_EQ(read(output), "b@0:7 ");
    out("}\n");
    EXPECT_EQ(read(output), "a@1:2 ");
}

TEST_F(TrialOutputTest, TheLastLineNeedsNoNewline) {
    TrialOutput output = open();
    out("tune: {\"a\": 3}");
    EXPECT_EQ(read(output), "");
    Segment segment;
    output.read_unfinished_lines(5, segment);
    EXPECT_EQ(text(segment), "a@0:3 ");
    EXPECT_EQ(segment.end.offset[0], 14);
}

TEST_F(TrialOutputTest, SkipsALineThatIsTooLong) {
    TrialOutput output = open();
    out("tune: {\"" + std::string(1 << 20, 'x') + "\": 1}\ntune: {\"a\": 1}\n");
    EXPECT_EQ(read(output), "a@0:1 ");
    EXPECT_EQ(output.bytes(), static_cast<std::int64_t>(folder_.read(kStdoutFile).size()));
}

TEST_F(TrialOutputTest, SurvivesBinaryOutput) {
    TrialOutput output = open();
    std::string bytes;
    for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i * 7919 >> 3);
    out(bytes + "\ntune: {\"a\": 1}\n");
    EXPECT_EQ(read(output), "a@0:1 ");
}

TEST_F(TrialOutputTest, ReadingAgainGivesTheSame) {
    TrialOutput output = open();
    out("tune: {\"a\": 1}\n");
    read(output);
    const OutputPosition acknowledged = last_.end;
    out("tune: {\"a\": 2}\nnoise\n");
    folder_.append(kStderrFile, "tune: {\"a\": 3}\n");
    EXPECT_EQ(read(output), "a@1:2 a@2:3 ");
    const std::array<std::int64_t, 2> sent = last_.end.offset;
    out("tune: {\"a\": 4}\n");

    TrialOutput later = open(acknowledged);
    const Segment again = later.read_again(sent, 5);
    EXPECT_EQ(text(again), "a@1:2 a@2:3 ");
    EXPECT_EQ(again.end.offset, sent);
    EXPECT_EQ(again.findings.metrics.front().timestamp_ms, 5);
    EXPECT_EQ(read(later), "a@3:4 ");
}

TEST_F(TrialOutputTest, TailIsTheEndOfTheFile) {
    TrialOutput output = open();
    EXPECT_EQ(output.tail(0, 4), "");
    out("0123456789");
    EXPECT_EQ(output.tail(0, 4), "6789");
    EXPECT_EQ(output.tail(0, 40), "0123456789");
}

TEST(LastLine, IsTheLastThatSaysSomething) {
    EXPECT_EQ(last_line("one\ntwo\n\n  \n", 100), "two");
    EXPECT_EQ(last_line("10%\r20%\r", 100), "20%");
    EXPECT_EQ(last_line("\x1b[31merror\x1b[0m", 100), "[31merror[0m");
    EXPECT_EQ(last_line("abcdef", 3), "abc");
    EXPECT_EQ(last_line(" \n\n", 100), "");
}

TEST(WholeLog, ShortLogsAreTheirOwn) {
    const Scratch folder;
    folder.append("x.log", "text");
    EXPECT_EQ(whole_log(folder.path() / "x.log").value(), folder.path() / "x.log");
    EXPECT_EQ(whole_log(folder.path() / "y.log").error().code, Code::kResourceDoesNotExist);
}

TEST(WholeLog, LongLogsKeepBothEnds) {
    const Scratch folder;
    constexpr std::int64_t kSize = kLogHeadBytes + kLogTailBytes + 3 * kLogPunchBytes;
    folder.append("x.log", "begin");
    std::filesystem::resize_file(folder.path() / "x.log", kSize);
    folder.append("x.log", "end");
    const std::filesystem::path whole = whole_log(folder.path() / "x.log").value();
    std::ifstream in(whole, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(text.starts_with("begin"));
    EXPECT_TRUE(text.ends_with("end"));
    const std::int64_t missing = kSize + 3 - kLogHeadBytes - kLogTailBytes;
    EXPECT_NE(text.find("[" + std::to_string(missing) + " bytes of output left out here]"),
              std::string::npos);
}

}  // namespace
}  // namespace tune::worker
