#include "tracker/maintenance/job.h"

#include <gtest/gtest.h>

#include <future>

namespace tune::tracker {
namespace {

TEST(JobRunner, RunsOneAtATimeAndReportsItsEnd) {
    JobRunner jobs;
    std::promise<void> go_on;
    std::shared_future<void> waiting = go_on.get_future().share();
    const auto started = jobs.start("backup", [waiting](const Report&) -> Result<std::string> {
        waiting.wait();
        return std::string("{}");
    });
    ASSERT_TRUE(started);
    EXPECT_TRUE(started->is_running);
    const auto second = jobs.start("x", [](const Report&) { return std::string("{}"); });
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::kResourceConflict);
    std::promise<JobRunner::State> news;
    jobs.wait(started->version, [&](const JobRunner::State& state) { news.set_value(state); });
    go_on.set_value();
    const JobRunner::State ended = news.get_future().get();
    EXPECT_FALSE(ended.is_running);
    EXPECT_EQ(ended.result, "{}");
    EXPECT_GT(ended.version, started->version);
    EXPECT_TRUE(jobs.start("x", [](const Report&) { return std::string("{}"); }));
}

TEST(JobRunner, ProgressAndErrorsReachWhoeverWaits) {
    JobRunner jobs;
    std::promise<void> go_on;
    std::shared_future<void> waiting = go_on.get_future().share();
    const auto started =
        jobs.start("backup", [waiting](const Report& report) -> Result<std::string> {
            EXPECT_TRUE(report({"pages", 1, 2}));
            waiting.wait();
            return Error{Code::kDataLoss, "broken"};
        });
    std::promise<JobRunner::State> first;
    jobs.wait(started->version, [&](const JobRunner::State& state) { first.set_value(state); });
    const JobRunner::State state = first.get_future().get();
    EXPECT_EQ(state.progress.phase, "pages");
    EXPECT_EQ(state.progress.total, 2);
    std::promise<JobRunner::State> last;
    jobs.wait(state.version, [&](const JobRunner::State& news) { last.set_value(news); });
    go_on.set_value();
    EXPECT_EQ(last.get_future().get().error->message, "broken");
}

TEST(JobRunner, AStopEndsTheJob) {
    JobRunner jobs;
    std::promise<void> begun;
    ASSERT_TRUE(jobs.start("gc", [&](const Report& report) -> Result<std::string> {
        begun.set_value();
        while (report({"rows", 0, 0})) {
        }
        return job_stopped();
    }));
    begun.get_future().wait();
    jobs.stop();
    EXPECT_EQ(jobs.state().error->code, Code::kCancelled);
    EXPECT_FALSE(jobs.start("gc", [](const Report&) { return std::string("{}"); }));
}

}  // namespace
}  // namespace tune::tracker
