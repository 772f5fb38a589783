#include "worker/launch/slurm/slurm_text.h"

#include <gtest/gtest.h>

namespace tune::launch {
namespace {

TEST(Squeue, JobsOfOursAreReadWithWhatTheyWaitFor) {
    const auto jobs = parse_squeue(
        "12_3|PENDING|Resources||gpu|1|tune-s-1|tune:tune-s-1:a|b: c\n"
        "12_2|RUNNING|None|n1|gpu|2|tune-s-1|tune:tune-s-1:s\n"
        "9|FAILED|NonZeroExitCode|n1|gpu|1|tune-s-1|tune:tune-s-1:s\n"
        "8|PREEMPTED|None|n1|gpu|1|tune-s-1|tune:tune-s-1:\n"
        "7|RUNNING|None|n1|gpu|1|other|(null)\n");
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->size(), 4u) << "a job of somebody else is none of ours";
    EXPECT_EQ((*jobs)[0].study, "a|b: c");
    EXPECT_EQ((*jobs)[0].reason, "partition gpu is full (Resources)");
    EXPECT_EQ((*jobs)[1].state, AgentJob::State::kRunning);
    EXPECT_EQ((*jobs)[1].agents, 2);
    EXPECT_EQ((*jobs)[2].state, AgentJob::State::kFailed);
    EXPECT_EQ((*jobs)[2].reason, "failed (NonZeroExitCode)");
    EXPECT_EQ((*jobs)[3].state, AgentJob::State::kEnded) << "taken by Slurm, no failure";
}

TEST(Squeue, WhatIsNoJobIsAnError) {
    const auto jobs = parse_squeue("slurm_load_jobs error: Unable to contact slurm controller\n");
    ASSERT_FALSE(jobs);
    EXPECT_NE(jobs.error().message.find("Unable to contact"), std::string::npos);
    EXPECT_TRUE(parse_squeue("\n")->empty());
}

TEST(Gres, GpusAreCountedByType) {
    EXPECT_EQ(gpus_of_gres("(null)", ""), 0);
    EXPECT_EQ(gpus_of_gres("gpu", ""), 1);
    EXPECT_EQ(gpus_of_gres("gpu:4", ""), 4);
    EXPECT_EQ(gpus_of_gres("gpu:a100:4(S:0-1,2),gpu:h100:2,mps:100", ""), 6);
    EXPECT_EQ(gpus_of_gres("gpu:a100:4(S:0-1,2),gpu:h100:2", "h100"), 2);
    EXPECT_EQ(gpus_of_gres("gpus:7,nic:2", ""), 0);
}

TEST(Sinfo, NodesThatAreAwayAreNotUsable) {
    const auto nodes = parse_sinfo(
        "n1|8|idle|gpu:2|n1\nn2|8|down*|gpu:2|n2\nn3|8|mixed~|(null)|n3\nn1|8|idle|gpu:2|n1\n");
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_TRUE(nodes[0].is_usable());
    EXPECT_FALSE(nodes[1].is_usable());
    EXPECT_TRUE(nodes[2].is_usable()) << "asleep, and woken for a job";
    EXPECT_EQ(nodes[0].gpus, 2);
    EXPECT_EQ(nodes[0].cpus, 8);
}

TEST(Version, IsReadAsItIsPrinted) {
    EXPECT_EQ(parse_slurm_version("slurm-wlm 22.05.8\n")->major, 22);
    EXPECT_EQ(parse_slurm_version("slurm 23.11.0-0rc1")->minor, 11);
    EXPECT_FALSE(parse_slurm_version("version: 4.2"));
    EXPECT_FALSE(parse_slurm_version("slurm"));
}

TEST(Configuration, NumbersAreFoundAtTheBeginningOfALine) {
    const char* text = "AMaxArraySize = 7\nMaxArraySize            = 1001\n";
    EXPECT_EQ(config_number(text, "MaxArraySize"), 1001);
    EXPECT_FALSE(config_number(text, "MinJobAge"));
}

TEST(SlurmTime, IsAtLeastAMinute) {
    EXPECT_EQ(slurm_time(1'000), "0-00:01:00");
    EXPECT_EQ(slurm_time(93'784'000), "1-02:03:04");
}

}  // namespace
}  // namespace tune::launch
