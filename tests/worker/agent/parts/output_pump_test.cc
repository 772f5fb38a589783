// The outbox and the upload are the real ones; no threads of theirs run, so nothing is sent.

#include "worker/agent/output/output_pump.h"

#include <gtest/gtest.h>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

constexpr std::uint64_t kSerial = 5;
constexpr const char* kNowhere = "http://127.0.0.1:9";

class OutputPumpTest : public testing::Test {
protected:
    OutputPumpTest()
        : outbox_(Outbox::create(kNowhere, "agent", 1, {}).value()),
          upload_(LogUpload::create(kNowhere, [](std::uint64_t, bool, bool) {}).value()),
          pump_(*loop_, *outbox_, *upload_, 50,
                {.found =
                     [this](std::uint64_t, const LineFindings& findings) {
                         for (const tuner::ReportedMetric& metric : findings.metrics)
                             found_ += metric.key + "=" + std::to_string(int(metric.value)) + " ";
                     },
                 .read_to_end = [this](std::uint64_t) { ++ends_; }}) {
        const AttemptFiles files(folder_.path());
        outbox_->open(kSerial, files, {"run", 1}, {});
        pump_.follow({kSerial, files, {"run", 1}, "7"},
                     TrialOutput(folder_.path(), *MetricLines::create({}, "loss"), {}));
    }

    Scratch folder_;
    std::unique_ptr<Loop> loop_ = Loop::create().value();
    std::unique_ptr<Outbox> outbox_;
    std::unique_ptr<LogUpload> upload_;
    std::string found_;
    int ends_ = 0;
    OutputPump pump_;
};

TEST_F(OutputPumpTest, ReadsWhatIsThereAndEndsOnce) {
    folder_.append(kStdoutFile, "tune: {\"a\": 1}\ntune: {\"a\": 2}");
    pump_.pump(kSerial);
    EXPECT_EQ(found_, "a=1 ");
    EXPECT_FALSE(pump_.is_read_to_end(kSerial));
    folder_.append(kStdoutFile, "");
    pump_.finish(kSerial);
    EXPECT_EQ(found_, "a=1 a=2 ") << "a last line may lack its end";
    EXPECT_TRUE(pump_.is_read_to_end(kSerial));
    pump_.pump(kSerial);
    EXPECT_EQ(ends_, 1);
}

TEST_F(OutputPumpTest, ReadsNoFurtherThanTheOutboxHasRoom) {
    std::string lines;
    for (std::size_t i = 0; i <= Outbox::kWaitingMax; ++i) lines += "tune: {\"a\": 1}\n";
    folder_.append(kStdoutFile, lines);
    pump_.finish(kSerial);
    // The rest of the turns that it gives to others.
    loop_->at(loop_->now_ms() + 1, [this] { loop_->quit(); });
    loop_->run();
    EXPECT_FALSE(outbox_->has_room(kSerial));
    EXPECT_EQ(ends_, 0);
}

TEST_F(OutputPumpTest, IgnoresWhomItDoesNotFollow) {
    pump_.pump(99);
    pump_.finish(99);
    pump_.forget(99);
    EXPECT_FALSE(pump_.is_read_to_end(99));
    pump_.forget(kSerial);
    pump_.finish(kSerial);
    EXPECT_EQ(ends_, 0);
}

}  // namespace
}  // namespace tune::worker
