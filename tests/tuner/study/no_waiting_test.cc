// Nobody waits for a model: while a suggestion is being computed, and for as long as it takes,
// everything else goes on, of the same study and of others.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "tests/tuner/study/world.h"
#include "tuner/study/registry/suggestions/replays.h"

namespace tune::tuner {
namespace {

/// Holds whoever computes a suggestion of the study "slow" until it is opened.
class Gate {
public:
    void close() {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_open_ = false;
    }
    void open() {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_open_ = true;
        changed_.notify_all();
    }
    void pass(const std::string& study) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (study != "slow" || is_open_) return;
        is_held_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return is_open_; });
    }
    void wait_until_held() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return is_held_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_open_ = true;
    bool is_held_ = false;
};

class NoWaiting : public ::testing::Test {
protected:
    NoWaiting() {
        world_.set_before_suggestion([this](const std::string& study) { gate_.pass(study); });
        create("slow");
        create("other");
    }
    ~NoWaiting() override { gate_.open(); }

    void create(const std::string& name) {
        Answer<Studies::Created> answer;
        world_.studies().create(
            World::config(R"("sampler": {"type": "tpe", "seed": 1}, "study": ")" + name + "\""),
            answer.done());
        ASSERT_TRUE(answer.get().has_value());
    }
    Answer<std::vector<AskedTrial>> begin_ask(const std::string& study, int count,
                                              const std::string& request_id = "") {
        Answer<std::vector<AskedTrial>> answer;
        world_.studies().clients().ask({.study = study, .count = count, .request_id = request_id},
                                       answer.done());
        return answer;
    }
    std::vector<AskedTrial> ask(const std::string& study, int count = 1) {
        Result<std::vector<AskedTrial>> asked = begin_ask(study, count).get();
        EXPECT_TRUE(asked.has_value());
        return std::move(asked).value_or({});
    }
    Result<void> tell(const std::string& study, std::uint64_t number, double value) {
        return world_.tell({.trial = {study, number, 0}, .value = value});
    }
    std::size_t trials_of(const std::string& study) {
        std::size_t count = 0;
        EXPECT_TRUE(world_.studies()
                        .read(study, [&](const Study& one) { count = one.trials().size(); })
                        .has_value());
        return count;
    }

    Gate gate_;
    World world_;
};

TEST_F(NoWaiting, EverythingGoesOnWhileAModelComputes) {
    const std::vector<AskedTrial> first = ask("slow", 2);
    ASSERT_EQ(first.size(), 2u);
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto leased = world_.lease("a");
    ASSERT_TRUE(leased.has_value());
    ASSERT_EQ(leased->leases.size(), 1u);

    gate_.close();
    auto waits = begin_ask("slow", 3);
    gate_.wait_until_held();

    EXPECT_EQ(trials_of("other"), leased->leases[0].study == "other" ? 1u : 0u);
    EXPECT_TRUE(world_.heartbeat("a", {token(leased->leases[0])})->lost.empty());
    EXPECT_TRUE(tell("slow", first[0].number, 0.5).has_value()) << "a tell of the same study";
    world_.log(leased->leases[0].run_id, "loss", 1, 0.25);
    world_.store().wait_for_observers();
    EXPECT_EQ(ask("other").size(), 1u) << "a suggestion of another study";
    world_.advance_ms(World::kTtl_ms / 2);
    EXPECT_FALSE(waits.is_there());

    gate_.open();
    const auto asked = waits.get();
    ASSERT_TRUE(asked.has_value());
    EXPECT_EQ(asked->size(), 3u);
}

TEST_F(NoWaiting, WhatWasToldMeanwhileCountsForTheNextSuggestionAndTheReplay) {
    const std::vector<AskedTrial> first = ask("slow", 4);
    gate_.close();
    auto waits = begin_ask("slow", 8);
    gate_.wait_until_held();
    for (const AskedTrial& trial : first)
        ASSERT_TRUE(tell("slow", trial.number, 0.1 * static_cast<double>(trial.number)));
    gate_.open();
    ASSERT_EQ(waits.get()->size(), 8u);
    ASSERT_TRUE(
        world_.studies()
            .read("slow",
                  [](const Study& study) {
                      EXPECT_LT(study.trials().find(4)->asked_at, study.trials().find(0)->ended_at)
                          << "it was on its way, and had not seen the end";
                      EXPECT_GT(study.trials().find(5)->asked_at, study.trials().find(3)->ended_at);
                  })
            .has_value());
    Answer<ReplayReport> replayed;
    world_.studies().replay("slow", replayed.done());
    const auto report = replayed.get();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->compared, 12u);
    EXPECT_EQ(report->differing, 0u);
}

TEST_F(NoWaiting, ARepeatOfARequestThatIsBeingAnsweredGetsTheSameTrials) {
    gate_.close();
    auto one = begin_ask("slow", 2, "same");
    gate_.wait_until_held();
    auto again = begin_ask("slow", 2, "same");
    gate_.open();
    const auto first = one.get();
    const auto second = again.get();
    ASSERT_TRUE(first.has_value() && second.has_value());
    ASSERT_EQ(first->size(), 2u);
    ASSERT_EQ(second->size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(first->at(i).number, second->at(i).number);
    EXPECT_EQ(trials_of("slow"), 2u);
}

TEST_F(NoWaiting, AStoppedStudyGetsNoTrialFromASuggestionOnItsWay) {
    gate_.close();
    auto waits = begin_ask("slow", 2);
    gate_.wait_until_held();
    EXPECT_TRUE(world_.change(Studies::Change::kStop, "slow").has_value());
    gate_.open();
    EXPECT_TRUE(waits.get()->empty());
    EXPECT_EQ(trials_of("slow"), 0u);
}

TEST_F(NoWaiting, AnotherSamplerMeanwhileMakesTheSuggestionAnew) {
    gate_.close();
    auto waits = begin_ask("slow", 1);
    gate_.wait_until_held();
    Answer<Studies::Created> changed;
    world_.studies().create(
        World::config(R"("study": "slow", "sampler": {"type": "qmc", "seed": 1})"), changed.done());
    EXPECT_TRUE(changed.get().has_value());
    gate_.open();
    EXPECT_EQ(waits.get()->size(), 1u);
    EXPECT_EQ(trials_of("slow"), 1u);
    Answer<ReplayReport> replayed;
    world_.studies().replay("slow", replayed.done());
    EXPECT_EQ(replayed.get()->differing, 0u);
}

TEST_F(NoWaiting, AnAgentThatCallsAgainGetsTheTrialsOfItsLastCall) {
    EXPECT_TRUE(world_.change(Studies::Change::kStop, "other").has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    gate_.close();
    Answer<LeaseReply> lost;
    world_.studies().agents().lease("a", {.request_id = "1", .free_slots = 2, .wait_ms = 1000},
                                    lost.done());
    gate_.wait_until_held();
    Answer<LeaseReply> now;
    world_.studies().agents().lease("a", {.request_id = "2", .free_slots = 2, .wait_ms = 1000},
                                    now.done());
    EXPECT_TRUE(lost.get()->leases.empty()) << "its connection is gone";
    gate_.open();
    EXPECT_EQ(now.get()->leases.size(), 2u);
    EXPECT_EQ(trials_of("slow"), 2u);
}

TEST_F(NoWaiting, EverythingGoesOnWhileAStudyIsRestored) {
    ASSERT_EQ(ask("slow").size(), 1u);
    ASSERT_TRUE(tell("slow", 0, 0.5).has_value());
    Answer<void> erased;
    world_.studies().erase("slow", erased.done());
    ASSERT_TRUE(erased.get().has_value());
    world_.set_before_reading([this](const std::string& study) { gate_.pass(study); });
    gate_.close();
    Answer<void> restored;
    world_.studies().restore("slow", restored.done());
    gate_.wait_until_held();
    EXPECT_EQ(ask("other").size(), 1u);
    EXPECT_FALSE(world_.studies().read("slow", [](const Study&) {}).has_value());
    Answer<void> again;
    world_.studies().restore("slow", again.done());
    EXPECT_EQ(again.get().error().code, Code::kResourceConflict) << "it is on its way";
    create("slow");  // somebody takes the name meanwhile
    gate_.open();
    EXPECT_EQ(restored.get().error().code, Code::kResourceAlreadyExists);
    EXPECT_EQ(ask("slow").size(), 1u);
    EXPECT_EQ(trials_of("slow"), 1u);
}

TEST_F(NoWaiting, EverythingGoesOnWhileAStudyLearnsFromAnother) {
    ASSERT_EQ(ask("slow").size(), 1u);
    ASSERT_TRUE(tell("slow", 0, 0.5).has_value());
    world_.set_before_reading([this](const std::string& study) { gate_.pass(study); });
    gate_.close();
    Answer<Studies::Created> created;
    world_.studies().create(World::config(R"("study": "new", "warm_start": {"from": "slow"})"),
                            created.done());
    gate_.wait_until_held();
    EXPECT_EQ(ask("other").size(), 1u);
    EXPECT_TRUE(world_.change(Studies::Change::kPause, "slow").has_value());
    gate_.open();
    ASSERT_TRUE(created.get().has_value());
    ASSERT_TRUE(world_.studies()
                    .read("new",
                          [](const Study& study) {
                              ASSERT_EQ(study.config().warm_start->trials.size(), 1u);
                              EXPECT_EQ(study.config().warm_start->trials[0].value, 0.5);
                          })
                    .has_value());
}

TEST_F(NoWaiting, EverythingGoesOnWhileAStudyIsExtended) {
    ASSERT_EQ(ask("slow").size(), 1u);
    ASSERT_TRUE(tell("slow", 0, 0.5).has_value());
    world_.set_before_reading([this](const std::string& study) {
        if (study == "slow") gate_.pass(study);
    });
    gate_.close();
    Answer<Studies::Created> extended;
    world_.studies().create(
        World::config(R"("study": "slow", "sampler": {"type": "tpe", "seed": 1}, "space": )"
                      R"({"x": {"float": [0, 1]}, "y": {"float": [0, 1], "init": 0.5}})"),
        {.extend = true}, extended.done());
    gate_.wait_until_held();
    EXPECT_EQ(ask("other").size(), 1u);
    EXPECT_TRUE(world_.change(Studies::Change::kPause, "slow").has_value());
    gate_.open();
    const auto made = extended.get();
    ASSERT_TRUE(made.has_value()) << made.error().text();
    EXPECT_FALSE(made->is_new);
    ASSERT_EQ(ask("slow").size(), 1u);
    ASSERT_TRUE(world_.studies()
                    .read("slow",
                          [](const Study& study) {
                              for (const Trial& trial : study.trials())
                                  EXPECT_EQ(trial.point.size(), 2u);
                              EXPECT_EQ(study.trials().find(0)->point[1], 0.5);
                          })
                    .has_value());
}

TEST_F(NoWaiting, ReplaysAreBoundedAndLeaveTheReadersFree) {
    ASSERT_EQ(ask("slow").size(), 1u);
    world_.set_before_reading([this](const std::string& study) { gate_.pass(study); });
    gate_.close();
    std::vector<Answer<ReplayReport>> replays(kReplaysMax);
    for (Answer<ReplayReport>& answer : replays) world_.studies().replay("slow", answer.done());
    gate_.wait_until_held();
    Answer<ReplayReport> one_more;
    world_.studies().replay("other", one_more.done());
    EXPECT_EQ(one_more.get().error().code, Code::kRequestLimitExceeded);
    for (int i = 0; i < 4; ++i) {  // more than there are readers
        Answer<void> read;
        ASSERT_TRUE(world_.store().post_read([done = read.done()] { done({}); }));
        EXPECT_TRUE(read.get().has_value());
    }
    EXPECT_EQ(ask("other").size(), 1u);
    gate_.open();
    for (Answer<ReplayReport>& answer : replays) {
        const auto report = answer.get();
        ASSERT_TRUE(report.has_value()) << report.error().text();
        EXPECT_EQ(report->compared, 1u);
    }
    Answer<ReplayReport> afterwards;
    world_.studies().replay("other", afterwards.done());
    EXPECT_TRUE(afterwards.get().has_value());
}

TEST_F(NoWaiting, AServerThatStopsAnswersWhoeverWaits) {
    gate_.close();
    auto asks = begin_ask("slow", 5);
    gate_.wait_until_held();
    Answer<AskedTrial> enqueues;
    world_.studies().clients().enqueue("slow", "{}", "e", enqueues.done());
    world_.studies().drain();
    EXPECT_TRUE(asks.get()->empty());
    const auto enqueued = enqueues.get();
    ASSERT_FALSE(enqueued.has_value());
    EXPECT_EQ(enqueued.error().code, Code::kTemporarilyUnavailable);
}

}  // namespace
}  // namespace tune::tuner
