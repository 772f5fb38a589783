// The one poll of an agent: what comes through it, and that nothing is lost or doubled where an
// answer is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PollsTest : public ::testing::Test {
protected:
    PollsTest() {
        EXPECT_TRUE(world_.create(R"("budget": {"trials": 5})").has_value());
        EXPECT_TRUE(enrol().has_value());
    }
    /// `ack`: of the last answer that the agent got.
    Result<RegisterReply> enrol(const std::string& session = "s1", std::int64_t ack = 0,
                                std::vector<AttemptId> running = {}, std::int64_t pid = 1,
                                const std::string& id = "a") {
        Answer<RegisterReply> answer;
        world_.studies().agents().register_agent({.agent_id = id,
                                                  .host = "host-" + id,
                                                  .pid = pid,
                                                  .slots = 2,
                                                  .cpus = 64,
                                                  .version = "",
                                                  .running = std::move(running),
                                                  .session = session,
                                                  .ack = ack},
                                                 answer.done());
        return answer.get();
    }
    PollRequest request(std::int64_t ack, int free_slots, std::vector<AttemptId> running = {}) {
        return {.session = "s1",
                .turn = ++turn_,
                .ack = ack,
                .wait_ms = 10'000,
                .running = std::move(running),
                .free_slots = free_slots};
    }
    Answer<PollReply> begin(PollRequest request, const std::string& id = "a") {
        Answer<PollReply> answer;
        world_.studies().agents().poll(id, std::move(request), answer.done());
        return answer;
    }
    PollReply poll(PollRequest request, const std::string& id = "a") {
        const Result<PollReply> reply = begin(std::move(request), id).get();
        EXPECT_TRUE(reply.has_value()) << reply.error().text();
        return reply ? *reply : PollReply{};
    }
    void end(const AttemptId& attempt, Outcome outcome = Outcome::kDone) {
        world_.log(attempt.run_id, "loss", 1, 0.5);
        EXPECT_TRUE(world_
                        .finish("a", attempt,
                                {.request_id = attempt.run_id, .outcome = outcome, .reason = "why"})
                        .has_value());
    }

    World world_;
    std::int64_t turn_ = 0;
};

TEST_F(PollsTest, BringsLeasesAndRenewsThem) {
    const PollReply first = poll(request(0, 2));
    ASSERT_THAT(first.leases, SizeIs(2));
    EXPECT_EQ(first.sequence, 1);
    std::vector<AttemptId> held = {token(first.leases[0]), token(first.leases[1])};
    for (int i = 0; i < 3; ++i) {
        auto waiting = begin(request(1, 0, held));
        EXPECT_FALSE(waiting.is_there());
        world_.advance_ms(World::kTtl_ms / 2);
        const auto reply = waiting.get();
        EXPECT_EQ(reply->sequence, 1) << "an answer without news needs no number";
        EXPECT_THAT(reply->leases, IsEmpty());
    }
    EXPECT_EQ(world_.trial(0).attempt, 1);
    EXPECT_EQ(world_.count(TrialState::kRunning), 2u);
}

TEST_F(PollsTest, AnAnswerThatWasLostComesAgainAsTheSameAttempts) {
    PollRequest ask = request(0, 2);
    ask.wants_tokens = true;
    const PollReply lost = poll(ask);
    ask.turn = ++turn_;
    const PollReply again = poll(ask);
    ASSERT_THAT(again.leases, SizeIs(2));
    EXPECT_EQ(again.sequence, lost.sequence);
    ASSERT_THAT(lost.leases, SizeIs(2));
    std::map<std::string, std::string> tokens;
    for (const Lease& lease : lost.leases) tokens[lease.run_id] = lease.token;
    for (const Lease& lease : again.leases) {
        ASSERT_TRUE(tokens.contains(lease.run_id));
        EXPECT_EQ(lease.attempt, 1);
        EXPECT_NE(lease.token, tokens[lease.run_id]) << "nobody has the first";
    }
    EXPECT_NE(again.leases[0].run_id, again.leases[1].run_id);
    EXPECT_EQ(world_.count(TrialState::kRunning), 2u);
    auto next = begin(request(1, 0, {token(again.leases[0]), token(again.leases[1])}));
    EXPECT_FALSE(next.is_there());
}

TEST_F(PollsTest, AnAnswerThatAKillOfTheServerTookComesAgain) {
    const PollReply taken = poll(request(0, 1));
    const PollReply lost = poll(request(1, 1, {token(taken.leases.at(0))}));
    ASSERT_THAT(lost.leases, SizeIs(1));
    world_.reopen();
    EXPECT_EQ(begin(request(1, 1)).get().error().code, Code::kResourceDoesNotExist);
    ASSERT_TRUE(enrol("s1", 1, {token(taken.leases[0])}).has_value());
    const PollReply again = poll(request(1, 0, {token(taken.leases[0])}));
    ASSERT_THAT(again.leases, SizeIs(1));
    EXPECT_EQ(token(again.leases[0]), token(lost.leases[0]));
    EXPECT_EQ(world_.count(TrialState::kRunning), 2u);
}

TEST_F(PollsTest, AnAgentThatIsStartedAgainLetsGoOfWhatItNeverHeardOf) {
    const PollReply lost = poll(request(0, 1));
    ASSERT_THAT(lost.leases, SizeIs(1));
    ASSERT_TRUE(enrol("s2", 0, {}, 2).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued) << "at once, not when its lease ends";
}

TEST_F(PollsTest, ADirectiveWhoseAnswerWasLostIsNewsAgain) {
    const AttemptId held = token(poll(request(0, 1)).leases.at(0));
    auto waiting = begin(request(1, 0, {held}));
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    const auto told = waiting.get();
    ASSERT_THAT(told->directives, SizeIs(1));
    EXPECT_EQ(told->sequence, 2);
    EXPECT_THAT(poll(request(1, 0, {held})).directives, SizeIs(1)) << "nobody moves the clock";
    EXPECT_FALSE(begin(request(2, 0, {held})).is_there()) << "it was told now";
}

/// The number of the lost answer is used again, for something else.
TEST_F(PollsTest, ALostLeaseComesAlsoWhereADirectiveComesFirst) {
    const AttemptId held = token(poll(request(0, 1)).leases.at(0));
    const AttemptId lost = token(poll(request(1, 1, {held})).leases.at(0));
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    std::set<std::string> leased;
    std::size_t directives = 0;
    std::int64_t ack = 1;
    for (int i = 0; i < 2; ++i) {
        const PollReply reply = poll(request(ack, 0, {held}));
        for (const Lease& lease : reply.leases) leased.insert(lease.run_id);
        directives = std::max(directives, reply.directives.size());
        ack = reply.sequence;
    }
    EXPECT_THAT(leased, ElementsAre(lost.run_id));
    EXPECT_EQ(directives, 2u);
}

TEST_F(PollsTest, AnEndLeavesItsPlaceToTheNextTrialOfTheWaitingPoll) {
    const PollReply first = poll(request(0, 2));
    const AttemptId one = token(first.leases.at(0));
    const AttemptId two = token(first.leases.at(1));
    auto waiting = begin(request(1, 0, {one, two}));
    end(one);
    const auto next = waiting.get();
    ASSERT_THAT(next->leases, SizeIs(1));
    EXPECT_EQ(next->leases[0].number, 2);
    EXPECT_EQ(next->sequence, 2);
}

/// The poll was written before the attempt ended, and overtaken by the end.
TEST_F(PollsTest, AnEndThatIsFasterThanThePollCounts) {
    const AttemptId one = token(poll(request(0, 1)).leases.at(0));
    end(one);
    EXPECT_THAT(poll(request(1, 0, {one})).leases, SizeIs(1));
}

TEST_F(PollsTest, AnAttemptThatCouldNotBeBegunLeavesNoPlaceYet) {
    const AttemptId one = token(poll(request(0, 1)).leases.at(0));
    auto waiting = begin(request(1, 0, {one}));
    end(one, Outcome::kLost);
    world_.store().wait_for_observers();
    EXPECT_FALSE(waiting.is_there()) << "the agent rests";
    PollRequest interrupt = request(1, 0);
    interrupt.turn = turn_ - 1;  // of the poll that waits
    interrupt.interrupts = true;
    EXPECT_THAT(poll(interrupt).leases, IsEmpty());
    EXPECT_THAT(waiting.get()->leases, IsEmpty());
    EXPECT_THAT(poll(request(1, 1)).leases, SizeIs(1));
}

TEST_F(PollsTest, AnInterruptThatIsFasterThanItsPollCounts) {
    const PollReply first = poll(request(0, 2));
    PollRequest late = request(1, 0, {token(first.leases[0]), token(first.leases[1])});
    PollRequest interrupt = late;
    interrupt.interrupts = true;
    poll(interrupt);
    EXPECT_THAT(poll(late).leases, IsEmpty());
    EXPECT_FALSE(begin(request(1, 0, late.running)).is_there()) << "only that one";
}

TEST_F(PollsTest, WhatIsDeclinedGoesToAnotherAtOnce) {
    const AttemptId unwanted = token(poll(request(0, 1)).leases.at(0));
    for (const std::string id : {"b", "c", "d"}) ASSERT_TRUE(enrol("s1", 0, {}, 1, id).has_value());
    EXPECT_THAT(poll(request(0, 2), "b").leases, SizeIs(2));
    EXPECT_THAT(poll(request(0, 2), "c").leases, SizeIs(2));
    auto other = begin(request(0, 1), "d");
    EXPECT_FALSE(other.is_there()) << "of 5 trials all run";
    PollRequest decline = request(1, 0);
    decline.declined = {unwanted};
    auto waiting = begin(decline);
    const auto given = other.get();
    ASSERT_THAT(given->leases, SizeIs(1));
    EXPECT_EQ(given->leases[0].run_id, unwanted.run_id);
    EXPECT_EQ(given->leases[0].attempt, 2);
    EXPECT_EQ(world_.trial(0).lost_attempts, 0) << "nothing of it ran";
    EXPECT_FALSE(waiting.is_there());
}

TEST_F(PollsTest, WhatEndsWithAnAgentThatLeavesIsForOthers) {
    const AttemptId held = token(poll(request(0, 1)).leases.at(0));
    PollRequest leaving = request(1, 0, {held});
    leaving.leaving = true;
    auto waiting = begin(leaving);
    end(held, Outcome::kPreempted);
    EXPECT_FALSE(waiting.is_there()) << "neither a place that becomes free while it waits";
    leaving.turn += 10;
    EXPECT_FALSE(begin(leaving).is_there()) << "nor one that has been";
}

TEST_F(PollsTest, ADirectiveDoesNotWaitForASuggestion) {
    const AttemptId held = token(poll(request(0, 1)).leases.at(0));
    std::promise<void> go_on;
    const std::shared_future<void> goes_on = go_on.get_future().share();
    world_.set_before_suggestion([goes_on](const std::string&) { goes_on.wait(); });
    auto waiting = begin(request(1, 1, {held}));
    world_.log(held.run_id, "loss", 1, 0.5);
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    const auto told = waiting.get();
    ASSERT_TRUE(told.has_value());
    EXPECT_THAT(told->directives, SizeIs(1));
    EXPECT_THAT(told->leases, IsEmpty());
    go_on.set_value();
    EXPECT_FALSE(begin(request(2, 0, {held})).is_there());
}

/// Work for one agent, and hundreds that wait: one is answered, and all others still wait.
TEST_F(PollsTest, OneOfManyIsWoken) {
    const PollReply first = poll(request(0, 2));
    std::vector<Answer<PollReply>> waiting;
    ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
    for (int i = 0; i < 300; ++i) {
        const std::string id = "w" + std::to_string(i);
        ASSERT_TRUE(enrol("s1", 0, {}, 1, id).has_value());
        waiting.push_back(begin(request(0, 1), id));
    }
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    end(token(first.leases.at(0)));
    std::size_t answered = 0;
    while (answered < 3) {  // of 5 trials two were leased before
        answered = 0;
        for (auto& one : waiting) answered += one.is_there() ? 1 : 0;
    }
    world_.advance_ms(9'999);
    answered = 0;
    for (auto& one : waiting) answered += one.is_there() ? 1 : 0;
    EXPECT_EQ(answered, 3u);
    world_.advance_ms(1);
    for (auto& one : waiting) EXPECT_TRUE(one.get().has_value());
}

TEST_F(PollsTest, APollIsCheckedBeforeItIsTaken) {
    PollRequest bad = request(0, 1);
    bad.session = "a/b";
    EXPECT_THAT(begin(bad).get().error().message, HasSubstr("'session'"));
    bad = request(-1, 1);
    EXPECT_THAT(begin(bad).get().error().message, HasSubstr("must not be negative"));
    EXPECT_THAT(begin(request(0, 1), "x").get().error().message, HasSubstr("register again"));
}

}  // namespace
}  // namespace tune::tuner
