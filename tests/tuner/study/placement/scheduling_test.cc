// Whose trials start: priorities and preemption, fair shares, quotas, and no starvation of large
// trials. The clock is moved by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/tuner/study/world.h"
#include "tuner/study/placement/usage.h"
#include "tuner/study/placement/victims.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> gpus_of(int count) {
    std::vector<std::string> uuids;
    for (int i = 0; i < count; ++i) uuids.push_back("g" + std::to_string(i));
    return uuids;
}

class Scheduling : public ::testing::Test {
protected:
    void join(const std::string& id, int slots, int gpus = 0) {
        Answer<RegisterReply> answer;
        world_.studies().agents().register_agent({.agent_id = id,
                                                  .host = "host-" + id,
                                                  .slots = slots,
                                                  .cpus = 16,
                                                  .gpus = gpus_of(gpus)},
                                                 answer.done());
        ASSERT_TRUE(answer.get().has_value());
    }
    /// As many trials as the agent has places now, or what begins to wait.
    std::vector<Lease> take(const std::string& id, int slots = 8) {
        Result<LeaseReply> reply = world_.lease(id, slots);
        EXPECT_TRUE(reply.has_value());
        return reply ? reply->leases : std::vector<Lease>();
    }
    void wait(const std::string& id, int slots = 8) {
        polls_[id] = std::make_unique<Answer<LeaseReply>>();
        world_.studies().agents().lease(id, {.free_slots = slots, .wait_ms = 25'000},
                                        polls_[id]->done());
    }
    std::vector<Lease> given(const std::string& id) {
        Result<LeaseReply> reply = polls_.at(id)->get();
        EXPECT_TRUE(reply.has_value());
        return reply ? reply->leases : std::vector<Lease>();
    }
    bool is_waiting(const std::string& id) { return !polls_.at(id)->is_there(); }
    void end(const std::string& agent, const Lease& lease, Outcome outcome = Outcome::kDone) {
        if (outcome == Outcome::kDone) world_.log(lease.run_id, "loss", 1, 0.5);
        ASSERT_TRUE(world_
                        .finish(agent, token(lease),
                                {.request_id = lease.run_id + std::to_string(lease.attempt),
                                 .outcome = outcome})
                        .has_value());
    }
    /// Which of these attempts the agent is asked to end at their checkpoints.
    std::vector<std::string> preempted(const std::string& agent, const std::vector<Lease>& held) {
        std::vector<AttemptId> running;
        for (const Lease& lease : held) running.push_back(token(lease));
        const auto reply = world_.heartbeat(agent, running);
        std::vector<std::string> runs;
        for (const Directive& directive : reply->directives)
            if (directive.action == Action::kCheckpointStop) runs.push_back(directive.run_id);
        return runs;
    }
    std::string why(const std::string& study) {
        for (const QueuedStudyView& one : world_.studies().queue(10).studies)
            if (one.study == study) return one.waits_for;
        return "it is not there";
    }
    void prioritize(const std::string& study, int priority) {
        Answer<void> answer;
        world_.studies().set_priority(study, priority, answer.done());
        ASSERT_TRUE(answer.get().has_value());
    }
    Result<void> set_quota(Quota quota) {
        Answer<void> answer;
        world_.studies().set_quota(std::move(quota), answer.done());
        return answer.get();
    }
    void create_for(const std::string& user, const std::string& fields) {
        Answer<Studies::Created> answer;
        world_.studies().create(World::config(fields), {.user = user}, answer.done());
        ASSERT_TRUE(answer.get().has_value());
    }
    static std::map<std::string, int> count(const std::vector<Lease>& leases) {
        std::map<std::string, int> counts;
        for (const Lease& lease : leases) ++counts[lease.study];
        return counts;
    }

    World world_;
    std::map<std::string, std::unique_ptr<Answer<LeaseReply>>> polls_;
};

// --- shares --------------------------------------------------------------------------------------

TEST(Shares, TheLargestFractionCounts) {
    const Usage all{
        .slots = 100, .cores = 1000, .memory_bytes = 4000, .gpu_micros = 8 * kGpuMicros};
    EXPECT_DOUBLE_EQ(dominant_share({.slots = 1, .cores = 100, .gpu_micros = 4 * kGpuMicros}, all),
                     0.5);
    EXPECT_DOUBLE_EQ(dominant_share({.slots = 1, .cores = 900, .gpu_micros = kGpuMicros}, all),
                     0.9);
    EXPECT_DOUBLE_EQ(dominant_share({.slots = 30}, all), 0.3) << "trials that name nothing";
    EXPECT_DOUBLE_EQ(dominant_share({}, Usage()), 0);
}

TEST(Shares, APartOfAGpuCountsByItsMemory) {
    Room room;
    room.gpus = {{.uuid = "a", .bytes = 80}, {.uuid = "b"}};
    EXPECT_EQ(usage_of({.gpus = {{"a", 20}}}, room).gpu_micros, kGpuMicros / 4);
    EXPECT_EQ(usage_of({.gpus = {{"a", 0}}}, room).gpu_micros, kGpuMicros);
    EXPECT_EQ(usage_of({.gpus = {{"gone", 20}}}, room).gpu_micros, kGpuMicros);
}

TEST(Victims, AreAsFewAsWillDo) {
    Room room{.slots = 0, .slots_all = 8};
    for (int i = 0; i < 8; ++i)
        room.gpus.push_back({.uuid = gpus_of(8)[static_cast<std::size_t>(i)]});
    const std::vector<Part> parts = {{.gpus = {{"g0", 0}}},
                                     {.gpus = {{"g1", 0}, {"g2", 0}, {"g3", 0}, {"g4", 0}}},
                                     {.gpus = {{"g5", 0}}}};
    room.slots = 8;
    for (const Part& part : parts) take(room, part);
    EXPECT_THAT(*victims_in(room, {.gpus = 1}, 1, parts), IsEmpty()) << "g6 is free";
    EXPECT_THAT(*victims_in(room, {.gpus = 3}, 1, parts), ElementsAre(0u));
    EXPECT_THAT(*victims_in(room, {.gpus = 4}, 1, parts), ElementsAre(1u))
        << "the small one alone would not do, and is not needed beside the large one";
    EXPECT_THAT(*victims_in(room, {.gpus = 8}, 1, parts), ElementsAre(0u, 1u, 2u));
    EXPECT_FALSE(victims_in(room, {.gpus = 9}, 1, parts));
}

TEST_F(Scheduling, StudiesOfOneUserShareByWhatTheyHold) {
    ASSERT_TRUE(world_.create(R"("study": "wide", "resources": {"gpus": 2})").has_value());
    ASSERT_TRUE(world_.create(R"("study": "slim", "resources": {"gpus": 1})").has_value());
    join("a", 8, 8);
    const auto counts = count(take("a"));
    EXPECT_EQ(counts.at("wide"), 2) << "4 GPUs";
    EXPECT_EQ(counts.at("slim"), 4) << "and as many";
}

TEST_F(Scheduling, UsersShareHoweverManyStudiesTheyHave) {
    for (const char* name : {"a1", "a2", "a3"})
        create_for("ann", std::string(R"("study": ")") + name + "\"");
    create_for("bob", R"("study": "b1")");
    join("a", 8);
    auto counts = count(take("a"));
    EXPECT_EQ(counts["b1"], 4);
    EXPECT_EQ(counts["a1"] + counts["a2"] + counts["a3"], 4);
    const QueueView view = world_.studies().queue(1);
    ASSERT_THAT(view.users, SizeIs(2));
    EXPECT_EQ(view.users[0].user, "ann");
    EXPECT_DOUBLE_EQ(view.users[0].share, 0.5);
    EXPECT_THAT(why("a1"), HasSubstr("study 'a2' comes first: it holds 13 % of the machines"));
}

TEST_F(Scheduling, SharesAreThereAfterARestart) {
    create_for("ann", R"("study": "a1")");
    join("a", 4);
    const auto held = take("a");
    ASSERT_THAT(held, SizeIs(4));
    world_.reopen();
    const QueueView view = world_.studies().queue(1);
    ASSERT_THAT(view.users, SizeIs(1));
    EXPECT_EQ(view.users[0].user, "ann");
    EXPECT_EQ(view.users[0].held.slots, 4);
    for (const Lease& lease : held) end("a", lease);
    EXPECT_EQ(world_.studies().queue(1).users[0].held, Usage()) << "nothing is left behind";
}

// --- priorities ----------------------------------------------------------------------------------

TEST_F(Scheduling, TheHigherPriorityComesFirst) {
    ASSERT_TRUE(world_.create(R"("study": "low")").has_value());
    ASSERT_TRUE(
        world_.create(R"("study": "high", "priority": 5, "budget": {"trials": 3})").has_value());
    join("a", 8);
    const auto counts = count(take("a"));
    EXPECT_EQ(counts.at("high"), 3);
    EXPECT_EQ(counts.at("low"), 5) << "what it leaves";
}

TEST_F(Scheduling, AsManyArePreemptedAsAreNeeded) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 8})").has_value());
    join("a", 4, 4);
    const auto low = take("a", 4);
    ASSERT_THAT(low, SizeIs(4));
    world_.advance_ms(1000);
    ASSERT_TRUE(world_
                    .create(R"("study": "high", "priority": 1, "budget": {"trials": 1},
                                "resources": {"gpus": 2})")
                    .has_value());
    const auto asked = preempted("a", low);
    ASSERT_THAT(asked, SizeIs(2)) << "two GPUs are two trials";
    EXPECT_THAT(why("high"), HasSubstr("2 trials of lower priority were asked to end"));
    world_.advance_ms(5000);
    EXPECT_THAT(preempted("a", low), SizeIs(2)) << "and no more with time";
    std::vector<Lease> left;
    std::vector<Lease> ended;
    for (const Lease& lease : low)
        (std::count(asked.begin(), asked.end(), lease.run_id) > 0 ? ended : left).push_back(lease);
    end("a", ended[0], Outcome::kPreempted);
    EXPECT_THAT(take("a"), IsEmpty()) << "what is free is kept, though a trial waits that fits";
    end("a", ended[1], Outcome::kPreempted);
    const auto high = take("a");
    ASSERT_THAT(high, SizeIs(1));
    EXPECT_EQ(high[0].study, "high");
    const TrialView trial = world_.trial(static_cast<std::uint64_t>(ended[0].number));
    EXPECT_EQ(trial.state, TrialState::kQueued);
    EXPECT_EQ(trial.user_failures, 0);
    EXPECT_EQ(trial.lost_attempts, 0);
    end("a", high[0]);
    const auto again = take("a");
    ASSERT_THAT(again, SizeIs(2)) << "they go on";
    EXPECT_EQ(again[0].attempt, 2);
    for (const Lease& lease : left) end("a", lease);
    for (const Lease& lease : again) end("a", lease);
    for (const Lease& lease : take("a")) end("a", lease);
    EXPECT_EQ(world_.count(TrialState::kComplete), 8u) << "the budget is exact";
}

TEST_F(Scheduling, NobodyIsPreemptedWhereThereIsRoom) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 4})").has_value());
    join("a", 4);
    const auto low = take("a");
    join("b", 4);
    wait("b", 4);
    ASSERT_TRUE(
        world_.create(R"("study": "high", "priority": 1, "budget": {"trials": 4})").has_value());
    EXPECT_EQ(given("b").at(0).study, "high");
    EXPECT_THAT(preempted("a", low), IsEmpty());
}

TEST_F(Scheduling, EqualPrioritiesDoNotPreempt) {
    ASSERT_TRUE(world_.create(R"("priority": 3)").has_value());
    join("a", 4);
    const auto first = take("a");
    ASSERT_TRUE(world_.create(R"("study": "other", "priority": 3)").has_value());
    EXPECT_THAT(preempted("a", first), IsEmpty());
}

TEST_F(Scheduling, WhatWouldNotBeEnoughPreemptsNobody) {
    ASSERT_TRUE(world_
                    .create(R"("study": "top", "priority": 9, "resources": {"gpus": 1},
                                 "budget": {"trials": 1}, "command": ["long"])")
                    .has_value());
    ASSERT_TRUE(world_.create(R"("resources": {"gpus": 1})").has_value());
    join("a", 2, 2);
    const auto held = take("a");
    ASSERT_THAT(held, SizeIs(2));
    ASSERT_TRUE(world_
                    .create(R"("study": "both", "priority": 5, "budget": {"trials": 1},
                                "resources": {"gpus": 2})")
                    .has_value());
    EXPECT_THAT(preempted("a", held), IsEmpty()) << "the other GPU is a higher one's";
}

TEST_F(Scheduling, ARunningStudyGetsAnotherPriority) {
    ASSERT_TRUE(world_.create(R"("study": "first")").has_value());
    join("a", 2);
    const auto first = take("a");
    ASSERT_TRUE(world_.create(R"("study": "second", "budget": {"trials": 1})").has_value());
    EXPECT_THAT(preempted("a", first), IsEmpty());
    prioritize("second", 10);
    EXPECT_THAT(preempted("a", first), SizeIs(1));
    world_.reopen();
    int priority = 0;
    ASSERT_TRUE(
        world_.studies()
            .read("second", [&](const Study& study) { priority = study.definition().priority(); })
            .has_value());
    EXPECT_EQ(priority, 10);
    Answer<void> bad;
    world_.studies().set_priority("second", 1001, bad.done());
    EXPECT_EQ(bad.get().error().code, Code::kInvalidParameterValue);
}

TEST_F(Scheduling, AGangOfHigherPriorityPreemptsOnEachOfItsAgents) {
    ASSERT_TRUE(world_.create().has_value());
    std::map<std::string, std::vector<Lease>> held;
    for (const char* id : {"1", "2", "3"}) {
        join(id, 1);
        held[id] = take(id, 1);
    }
    ASSERT_TRUE(world_
                    .create(R"("study": "gang", "priority": 1, "budget": {"trials": 1},
                                "resources": {"nnodes": 2})")
                    .has_value());
    std::vector<std::string> asked;
    for (const auto& [id, leases] : held)
        if (!preempted(id, leases).empty()) asked.push_back(id);
    ASSERT_THAT(asked, SizeIs(2));
    for (const std::string& id : asked) {
        end(id, held[id][0], Outcome::kPreempted);
        wait(id, 1);
    }
    for (const std::string& id : asked) EXPECT_EQ(given(id).at(0).study, "gang");
}

// --- no starvation -------------------------------------------------------------------------------

TEST_F(Scheduling, ALargeTrialIsNotPassedForEver) {
    ASSERT_TRUE(world_.create(R"("study": "small", "resources": {"gpus": 1})").has_value());
    join("a", 4, 4);
    join("b", 4, 4);
    std::map<std::string, std::vector<Lease>> held = {{"a", take("a")}, {"b", take("b")}};
    ASSERT_TRUE(world_
                    .create(R"("study": "large", "budget": {"trials": 1},
                                "resources": {"gpus": 4})")
                    .has_value());
    bool is_placed = false;
    int steps = 0;
    for (; steps < 20 && !is_placed; ++steps) {
        const std::string id = steps % 2 == 0 ? "a" : "b";
        world_.advance_ms(20'000);  // longer than a hold lasts by itself
        for (const auto& [other, leases] : held) {
            std::vector<AttemptId> running;
            for (const Lease& lease : leases) running.push_back(token(lease));
            ASSERT_TRUE(world_.heartbeat(other, running).has_value());
        }
        if (held[id].empty()) continue;
        end(id, held[id].back());
        held[id].pop_back();
        for (const Lease& lease : take(id)) {
            is_placed = is_placed || lease.study == "large";
            held[id].push_back(lease);
        }
    }
    EXPECT_TRUE(is_placed);
    EXPECT_LE(steps, 8) << "as soon as the four trials of one agent have ended";
}

TEST_F(Scheduling, WhatFitsBesideGoesOn) {
    ASSERT_TRUE(world_.create(R"("study": "small", "resources": {"gpus": 1})").has_value());
    join("a", 8, 8);
    auto held = take("a");
    ASSERT_THAT(held, SizeIs(8));
    ASSERT_TRUE(world_
                    .create(R"("study": "half", "budget": {"trials": 1},
                                "resources": {"gpus": 4})")
                    .has_value());
    for (int i = 0; i < 3; ++i) {
        end("a", held.back());
        held.pop_back();
        EXPECT_THAT(take("a"), IsEmpty()) << i << ": it would delay the large one";
    }
    EXPECT_THAT(why("half"), HasSubstr("1 is kept for it"));
    end("a", held.back());
    held.pop_back();
    const auto started = take("a");
    ASSERT_THAT(started, SizeIs(1));
    EXPECT_EQ(started[0].study, "half");
    end("a", held.back());
    const auto beside = take("a");
    ASSERT_THAT(beside, SizeIs(1));
    EXPECT_EQ(beside[0].study, "small");
}

// --- quotas --------------------------------------------------------------------------------------

TEST_F(Scheduling, AQuotaHoldsOverAllStudiesOfItsUser) {
    create_for("ann", R"("study": "a1", "resources": {"gpus": 2})");
    create_for("ann", R"("study": "a2", "resources": {"gpus": 1})");
    create_for("bob", R"("study": "b1", "resources": {"gpus": 1}, "budget": {"trials": 2})");
    ASSERT_TRUE(set_quota({.user = "ann", .gpus = 3}).has_value());
    join("a", 8, 8);
    auto counts = count(take("a"));
    EXPECT_EQ(2 * counts["a1"] + counts["a2"], 3);
    EXPECT_EQ(counts["b1"], 2);
    EXPECT_THAT(why("a1"), HasSubstr("user 'ann' holds 3 of the 3 GPUs that the quota allows"));
    wait("a");
    EXPECT_TRUE(is_waiting("a"));
    Answer<void> removed;
    world_.studies().remove_quota("ann", removed.done());
    ASSERT_TRUE(removed.get().has_value());
    EXPECT_THAT(given("a"), SizeIs(::testing::Ge(2u))) << "what waited starts";
}

TEST_F(Scheduling, EverybodysQuotaIsForThoseWithoutTheirOwn) {
    create_for("ann", R"("study": "a1")");
    create_for("bob", R"("study": "b1")");
    ASSERT_TRUE(set_quota({.user = kEverybody, .slots = 1}).has_value());
    ASSERT_TRUE(set_quota({.user = "bob", .slots = 4}).has_value());
    join("a", 8);
    const auto counts = count(take("a"));
    EXPECT_EQ(counts.at("a1"), 1);
    EXPECT_EQ(counts.at("b1"), 4);
}

TEST_F(Scheduling, AQuotaIsThereAfterARestart) {
    create_for("ann", R"("study": "a1")");
    ASSERT_TRUE(set_quota({.user = "ann", .slots = 2, .priority = -1}).has_value());
    world_.reopen();
    join("a", 8);
    EXPECT_THAT(take("a"), SizeIs(2));
    const QueueView view = world_.studies().queue(1);
    EXPECT_EQ(view.studies.at(0).priority, -1) << "held down";
}

TEST_F(Scheduling, APriorityIsHeldDownByTheQuota) {
    create_for("ann", R"("study": "a1")");
    join("a", 2);
    const auto first = take("a");
    ASSERT_TRUE(set_quota({.user = "bob", .priority = 0}).has_value());
    create_for("bob", R"("study": "b1", "priority": 1000)");
    EXPECT_THAT(preempted("a", first), IsEmpty());
    ASSERT_TRUE(set_quota({.user = "bob", .slots = 1}).has_value());
    EXPECT_THAT(preempted("a", first), SizeIs(1)) << "no more than his quota lets him use";
}

TEST_F(Scheduling, BadQuotasAreRefused) {
    EXPECT_EQ(set_quota({.user = ""}).error().code, Code::kInvalidParameterValue);
    EXPECT_EQ(set_quota({.user = "ann", .gpus = -1}).error().code, Code::kInvalidParameterValue);
    EXPECT_EQ(set_quota({.user = "ann", .priority = 5000}).error().code,
              Code::kInvalidParameterValue);
    Answer<void> removed;
    world_.studies().remove_quota("ann", removed.done());
    EXPECT_EQ(removed.get().error().code, Code::kResourceDoesNotExist);
}

}  // namespace
}  // namespace tune::tuner
