#include "worker/agent/start/start_queue.h"

#include <gtest/gtest.h>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

tuner::Lease lease(const std::string& run_id, double cpus) {
    tuner::Lease lease;
    lease.run_id = run_id;
    lease.attempt = 1;
    lease.command = {"train"};
    lease.cpus_per_trial = cpus;
    return lease;
}

/// A machine of two cores, and what becomes of its leases.
class StartQueueTest : public testing::Test {
protected:
    StartHooks hooks() {
        return {
            .admit = [this](tuner::Lease&) { return admission_; },
            .launch = [this](ReadyLease ready) { launched_.push_back(std::move(ready)); },
            .refuse =
                [this](const tuner::Lease& refused, tuner::Outcome outcome, const std::string&) {
                    refused_ +=
                        refused.run_id + " " + std::string(tuner::outcome_name(outcome)) + " ";
                },
            .changed = [] {}};
    }
    std::string launched() {
        std::string runs;
        for (const ReadyLease& ready : launched_) runs += ready.lease.run_id + " ";
        return runs;
    }

    Scratch folder_;
    std::unique_ptr<Loop> loop_ = Loop::create().value();
    Devices devices_{{0, 1}, {}};
    std::unique_ptr<CheckpointTransfer> transfer_ =
        CheckpointTransfer::create("http://127.0.0.1:9", [](const CheckpointJob&,
                                                            const CheckpointResult&) {
        }).value();
    CheckpointFolders folders_{{.root = folder_.path() / "checkpoints",
                                .state = folder_.path() / "state",
                                .spare = folder_.path() / "empty",
                                .own = folder_.path() / "checkpoints"}};
    StartHooks::Admission admission_ = StartHooks::Admission::kDevices;
    std::vector<ReadyLease> launched_;
    std::string refused_;
    StartQueue queue_{*loop_,  devices_, 2, *transfer_, folders_, folder_.path() / "models",
                      120'000, hooks()};
};

TEST_F(StartQueueTest, WaitsForCoresInTheOrderOfArrival) {
    queue_.start(lease("a", 2));
    queue_.start(lease("b", 2));
    queue_.start(lease("c", 2));
    EXPECT_EQ(launched(), "a ");
    ASSERT_EQ(queue_.ids().size(), 2u);
    EXPECT_EQ(queue_.ids().front().run_id, "b");
    devices_.release(launched_.front().assignment);
    queue_.retry();
    EXPECT_EQ(launched(), "a b ");
    EXPECT_EQ(queue_.ids().front().run_id, "c");
    EXPECT_EQ(refused_, "");
}

TEST_F(StartQueueTest, RefusesWhatTheMachineNeverHad) {
    queue_.start(lease("a", 3));
    EXPECT_EQ(refused_, "a bad_config ");
    EXPECT_TRUE(queue_.is_empty());
}

TEST_F(StartQueueTest, AGpuThatTheServerChoseMayBeGone) {
    tuner::Lease chosen = lease("a", 0);
    chosen.devices = {{.uuid = "GPU-x"}};
    queue_.start(chosen);
    EXPECT_EQ(refused_, "a lost ");
}

TEST_F(StartQueueTest, WhatIsTakenOutIsNotLaunched) {
    admission_ = StartHooks::Admission::kLater;
    queue_.start(lease("a", 1));
    queue_.start(lease("b", 1));
    EXPECT_EQ(queue_.take({"a", 1})->run_id, "a");
    EXPECT_FALSE(queue_.take({"a", 1}));
    admission_ = StartHooks::Admission::kDevices;
    queue_.retry();
    EXPECT_EQ(launched(), "b ");
    EXPECT_TRUE(queue_.is_empty());
}

TEST_F(StartQueueTest, WhatSomebodyTookNeedsNoDevices) {
    admission_ = StartHooks::Admission::kTaken;
    queue_.start(lease("a", 99));
    EXPECT_EQ(refused_ + launched(), "");
    EXPECT_TRUE(queue_.is_empty());
}

TEST_F(StartQueueTest, ALeaseWaitsForItsStoredCheckpoint) {
    tuner::Lease second = lease("a", 1);
    second.attempt = 2;
    second.checkpoint_dir = "k";
    second.checkpoints.store = "artifacts";
    queue_.start(second);
    EXPECT_EQ(launched(), "");
    EXPECT_FALSE(queue_.is_empty());
    EXPECT_EQ(queue_.take({"a", 2})->run_id, "a") << "while it is on its way";
    EXPECT_TRUE(queue_.is_empty());
}

}  // namespace
}  // namespace tune::worker
