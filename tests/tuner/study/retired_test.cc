// Studies that were removed or refused leave memory once nothing under way names them, and not
// before.

#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <mutex>

#include "tests/tuner/study/world.h"
#include "tuner/study/journal/erased_studies.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/retired.h"

namespace tune::tuner {
namespace {

class RetiredStudies : public ::testing::Test {
protected:
    Result<void> erase(const std::string& name = "s") {
        Answer<void> answer;
        world_.studies().erase(name, answer.done());
        return answer.get();
    }
    /// How many are left after a few ticks, once all that was submitted is on disk.
    std::size_t left() {
        for (int tick = 0; tick < 4; ++tick) {
            static_cast<void>(world_.journal());
            // Answers of the store come on a thread of their own, in order.
            static_cast<void>(world_.change(Studies::Change::kPause, "settled"));
            world_.advance_ms(1000);
        }
        return world_.studies().retired_count();
    }
    void SetUp() override { ASSERT_TRUE(world_.create(R"("study": "settled")").has_value()); }
    World world_;
};

TEST_F(RetiredStudies, ARemovedStudyIsFreed) {
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(world_.create().has_value());
        ASSERT_EQ(world_.ask(5)->size(), 5u);
        ASSERT_TRUE(world_.tell(0, 0.5).has_value());
        ASSERT_TRUE(erase().has_value());
    }
    EXPECT_EQ(left(), 0u);
    ASSERT_TRUE(world_.create().has_value()) << "its name and address may come back";
    EXPECT_EQ(world_.ask(5)->size(), 5u);
}

TEST_F(RetiredStudies, OneWhoseModelIsBeingRegisteredIsFreedAfterThat) {
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(
            world_.create(R"("study": "s", "register": "m", "budget": {"trials": 1})").has_value());
        ASSERT_EQ(world_.ask(1)->size(), 1u);
        ASSERT_TRUE(world_.tell(0, 0.5).has_value());  // complete: its model is looked for
        ASSERT_TRUE(erase().has_value());
    }
    EXPECT_EQ(left(), 0u);
}

TEST_F(RetiredStudies, AnAgentOfAFreedStudyHearsThatItsAttemptIsOver) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto leased = world_.lease_with_token("a");
    ASSERT_TRUE(leased && leased->leases.size() == 1);
    ASSERT_TRUE(erase().has_value());
    EXPECT_EQ(left(), 0u);
    const auto beat = world_.heartbeat("a", {token(leased->leases[0])});
    ASSERT_TRUE(beat.has_value());
    EXPECT_EQ(beat->lost.size(), 1u);
    EXPECT_EQ(
        world_.finish("a", token(leased->leases[0]), {.request_id = "f", .outcome = Outcome::kDone})
            .error()
            .code,
        Code::kResourceDoesNotExist)
        << "as after a restart";
    const auto standing = world_.studies().credentials().find(leased->leases[0].token);
    ASSERT_TRUE(standing.has_value());
    EXPECT_FALSE(standing->current->load());
}

TEST_F(RetiredStudies, ASuggestionThatIsBeingMadeKeepsItsStudy) {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_making = false;
    bool may_end = false;
    world_.set_before_suggestion([&](const std::string& study) {
        if (study != "s") return;
        std::unique_lock<std::mutex> lock(mutex);
        is_making = true;
        changed.notify_all();
        changed.wait(lock, [&] { return may_end; });
    });
    ASSERT_TRUE(world_.create().has_value());
    Answer<std::vector<AskedTrial>> asked;
    world_.studies().clients().ask({.study = "s", .count = 1}, asked.done());
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return is_making; });
    }
    ASSERT_TRUE(erase().has_value());
    EXPECT_EQ(left(), 1u);
    {
        const std::lock_guard<std::mutex> lock(mutex);
        may_end = true;
        changed.notify_all();
    }
    const auto answer = asked.get();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(left(), 0u);
}

TEST_F(RetiredStudies, OneThatTheDiskRefusedIsFreed) {
    world_.close();
    world_.set_database_bytes_max(2'000'000);
    world_.open();
    world_.fill_disk();
    for (int i = 0; i < 20; ++i) {
        const auto refused = world_.create(R"("study": "r)" + std::to_string(i) + "\"");
        ASSERT_FALSE(refused.has_value());
    }
    world_.free_disk();
    EXPECT_EQ(left(), 0u);
    ASSERT_TRUE(world_.create(R"("study": "r1")").has_value());
}

TEST_F(RetiredStudies, ACollectionTakesTheirDocumentsToo) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_EQ(world_.ask(3)->size(), 3u);
    ASSERT_TRUE(world_.tell(0, 0.5).has_value());
    std::vector<std::string> runs;
    ASSERT_TRUE(world_.studies()
                    .read("s",
                          [&](const Study& study) {
                              runs.push_back(study.identity().run_id);
                              for (const Trial& trial : study.trials())
                                  runs.push_back(trial.run_id);
                          })
                    .has_value());
    Answer<std::vector<AskedTrial>> others;
    world_.studies().clients().ask({.study = "settled", .count = 2}, others.done());
    ASSERT_TRUE(others.get().has_value());
    ASSERT_TRUE(erase().has_value());
    EXPECT_EQ(left(), 0u);
    const auto documents = [&](const char* collection) {
        return world_.store().list_documents(collection)->size();
    };
    EXPECT_EQ(forget_purged_studies(world_.store()).value(), 0u) << "it can still be restored";
    EXPECT_EQ(documents(kTrialCollection), 5u);
    ASSERT_TRUE(
        world_.store()
            .execute(tracker::Operation(tracker::PurgeRuns{
                .run_ids = runs, .deleted_until_ms = std::numeric_limits<std::int64_t>::max()}))
            .has_value());
    EXPECT_EQ(forget_purged_studies(world_.store()).value(), 1u);
    EXPECT_EQ(documents(kErasedCollection), 0u);
    EXPECT_EQ(documents(kTrialCollection), 2u) << "the other study's";
    EXPECT_EQ(forget_purged_studies(world_.store()).value(), 0u);
    world_.reopen();
    EXPECT_TRUE(world_.create().has_value());
}

TEST(Retired, NothingIsFreedBeforeWhatWasUnderWayHasEnded) {
    Retired retired;
    const auto study = [](const char* name) {
        StudyIdentity identity;
        identity.name = name;
        return std::make_unique<Study>(identity, World::config(""));
    };
    const auto nobody = [](const Study&) { return false; };
    Retired::Hold older = retired.hold();
    retired.add(study("a"));
    EXPECT_TRUE(retired.take_free(nobody).empty());
    Retired::Hold newer = retired.hold();
    retired.add(study("b"));
    EXPECT_TRUE(retired.take_free(nobody).empty());
    newer.reset();
    EXPECT_TRUE(retired.take_free(nobody).empty()) << "the older one may name both";
    older.reset();
    EXPECT_EQ(retired.take_free([](const Study& one) { return one.name() == "a"; }).size(), 1u);
    retired.each([&](const Study& one) {
        EXPECT_EQ(one.name(), "a");
        retired.touch(one);
    });
    EXPECT_TRUE(retired.take_free(nobody).empty()) << "it was named again";
    EXPECT_EQ(retired.take_free(nobody).size(), 1u);
    EXPECT_EQ(retired.size(), 0u);
}

}  // namespace
}  // namespace tune::tuner
