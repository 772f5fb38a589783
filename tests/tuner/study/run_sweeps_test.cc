// What follows for the runs of a whole study when it is renamed, removed and restored: every run is
// reached, whatever the disk does meanwhile and wherever the server stops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "tests/tuner/study/world.h"
#include "tuner/study/journal/erased_studies.h"
#include "tuner/study/registry/lifecycle/run_sweeps.h"

namespace tune::tuner {
namespace {

using ::testing::Each;
using ::testing::Eq;

class RunSweepsTest : public ::testing::Test {
protected:
    RunSweepsTest() {
        world_.close();
        world_.set_database_bytes_max(200'000'000);
        world_.open();
        EXPECT_TRUE(world_.create().has_value());
    }
    /// So many trials that have ended.
    void make_trials(int count) {
        for (int made = 0; made < count; made += kAskCountMax) {
            ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
            ASSERT_TRUE(world_.ask(std::min(count - made, kAskCountMax)).has_value());
            ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
        }
        ASSERT_TRUE(world_.studies()
                        .read("s",
                              [&](const Study& study) {
                                  id_ = study.identity().id;
                                  runs_ = {study.identity().run_id};
                                  for (const Trial& trial : study.trials())
                                      runs_.push_back(trial.run_id);
                              })
                        .has_value());
        settle();
    }
    Result<void> rename(const std::string& to) {
        Answer<void> answer;
        world_.studies().rename("s", to, answer.done());
        return answer.get();
    }
    Result<void> erase() {
        Answer<void> answer;
        world_.studies().erase("s", answer.done());
        return answer.get();
    }
    Result<void> restore() {
        Answer<void> answer;
        world_.studies().restore("s", answer.done());
        return answer.get();
    }
    /// What was submitted is on disk, and what followed from it is submitted.
    void settle() {
        ASSERT_TRUE(world_.store().execute(tracker::PutDocument{"settled", "", "{}"}).has_value());
    }
    bool is_swept() {
        const auto note = world_.store().get_document(kSweepCollection, id_);
        EXPECT_TRUE(note.has_value());
        return note && !note->has_value();
    }
    void wait_until_swept() {
        for (int i = 0; i < 100'000 && !is_swept(); ++i) {
            settle();
            world_.advance_ms(i % 100 == 0 ? 1000 : 0);
        }
        ASSERT_TRUE(is_swept());
    }
    std::vector<std::string> tags() {
        std::vector<std::string> found;
        for (const std::string& run_id : runs_) {
            const auto run = world_.store().get_run(run_id);
            EXPECT_TRUE(run.has_value());
            for (const tracker::Tag& tag : run->tags)
                if (tag.key == "tune.study") found.push_back(tag.value);
        }
        EXPECT_EQ(found.size(), runs_.size());
        return found;
    }
    std::vector<tracker::LifecycleStage> stages() {
        std::vector<tracker::LifecycleStage> found;
        for (const std::string& run_id : runs_)
            found.push_back(world_.store().get_run_info(run_id)->lifecycle_stage);
        return found;
    }

    World world_;
    std::string id_;
    std::vector<std::string> runs_;
};

TEST_F(RunSweepsTest, ARenamedStudyOfMoreTrialsThanTheQueueTakesIsRenamedEverywhere) {
    make_trials(static_cast<int>(kWriteQueueMax) + 500);
    ASSERT_TRUE(rename("t").has_value());
    settle();  // the writes of others are taken meanwhile
    wait_until_swept();
    EXPECT_THAT(tags(), Each(Eq("t")));
}

TEST_F(RunSweepsTest, AServerThatStopsGoesOnWithIt) {
    make_trials(2000);
    ASSERT_TRUE(rename("t").has_value());
    world_.reopen();
    wait_until_swept();
    EXPECT_THAT(tags(), Each(Eq("t")));
}

TEST_F(RunSweepsTest, ARunThatIsGoneKeepsNoOtherFromItsTag) {
    make_trials(300);
    ASSERT_TRUE(world_.store().execute(tracker::DeleteRun{runs_[7]}).has_value());
    ASSERT_TRUE(rename("t").has_value());
    wait_until_swept();
    std::vector<std::string> found = tags();
    EXPECT_EQ(found[7], "s") << "it was deleted";
    found.erase(found.begin() + 7);
    EXPECT_THAT(found, Each(Eq("t")));
}

TEST_F(RunSweepsTest, WhatTheDiskRefusesIsSentAgain) {
    const std::string long_name(150, 'n');
    make_trials(200);
    ASSERT_TRUE(rename(long_name).has_value());
    wait_until_swept();
    world_.close();
    world_.set_database_bytes_max(4'000'000);
    world_.open();
    // As a server leaves it that was killed right after the answer. What the long names leave free
    // within the pages is taken too, or they would fit there again.
    for (const std::string& run_id : runs_) {
        ASSERT_TRUE(world_.store().execute(tracker::SetTag{run_id, {"tune.study", "s"}}));
        ASSERT_TRUE(
            world_.store().execute(tracker::SetTag{run_id, {"filler", std::string(400, 'f')}}));
    }
    ASSERT_TRUE(world_.store()
                    .execute(tracker::PutDocument{kSweepCollection, id_, R"({"kind": "rename"})"})
                    .has_value());
    world_.fill_disk();
    world_.reopen();
    for (int i = 0; i < 3; ++i) {
        world_.advance_ms(1000);
        EXPECT_FALSE(
            world_.store().execute(tracker::PutDocument{"settled", "", std::string(9000, 'x')}));
    }
    EXPECT_FALSE(is_swept());
    world_.free_disk();
    wait_until_swept();
    EXPECT_THAT(tags(), Each(Eq(long_name)));
}

TEST_F(RunSweepsTest, ARemovedStudysRunsAreDeletedAcrossAStopAndComeBack) {
    make_trials(1200);
    ASSERT_TRUE(erase().has_value());
    world_.reopen();
    wait_until_swept();
    EXPECT_THAT(stages(), Each(Eq(tracker::LifecycleStage::kDeleted)));
    ASSERT_TRUE(restore().has_value());
    wait_until_swept();
    EXPECT_THAT(stages(), Each(Eq(tracker::LifecycleStage::kActive)));
}

TEST_F(RunSweepsTest, RestoredAtOnceNothingStaysDeleted) {
    make_trials(1200);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(erase().has_value());
        ASSERT_TRUE(restore().has_value());
    }
    wait_until_swept();
    EXPECT_THAT(stages(), Each(Eq(tracker::LifecycleStage::kActive)));
}

}  // namespace
}  // namespace tune::tuner
