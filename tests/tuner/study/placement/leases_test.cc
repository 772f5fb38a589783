// Which agent gets which trial: by what it has, what it holds, and how long ago it was heard.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/tuner/study/world.h"
#include "tuner/study/registry/broker/agents.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;

class Leases : public ::testing::Test {
protected:
    void register_agent(const std::string& id, int slots, int cpus,
                        const std::vector<std::string>& gpus = {}) {
        Answer<RegisterReply> answer;
        world_.studies().agents().register_agent(
            {.agent_id = id, .host = id, .slots = slots, .cpus = cpus, .gpus = gpus},
            answer.done());
        ASSERT_TRUE(answer.get().has_value());
    }
    std::vector<Lease> lease(const std::string& id, int slots = 1) {
        Result<LeaseReply> reply = world_.lease(id, slots);
        EXPECT_TRUE(reply.has_value());
        return reply ? reply->leases : std::vector<Lease>();
    }
    std::string obstacle() {
        std::string text;
        EXPECT_TRUE(world_.studies()
                        .read("s", [&](const Study& study) { text = study.attendance().obstacle; })
                        .has_value());
        return text;
    }
    void end(const std::string& agent, const Lease& lease) {
        ASSERT_TRUE(world_
                        .finish(agent, token(lease),
                                {.request_id = lease.run_id, .outcome = Outcome::kCancelled})
                        .has_value());
    }

    World world_;
};

TEST_F(Leases, AnAgentWithoutEnoughGpusDoesNotGetTheTrial) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 3, "gpus_per_trial": 2})").has_value());
    EXPECT_NE(obstacle().find("no agent is registered"), std::string::npos) << obstacle();
    register_agent("small", 4, 8, {"g0"});
    EXPECT_TRUE(lease("small").empty());
    EXPECT_NE(obstacle().find("has the 2 GPUs that a trial needs; the largest has 1 GPU"),
              std::string::npos)
        << obstacle();
    register_agent("large", 4, 8, {"g0", "g1", "g2"});
    EXPECT_EQ(obstacle(), "");
    const std::vector<Lease> first = lease("large", 4);
    ASSERT_EQ(first.size(), 1u) << "the third GPU is not enough for a second trial";
    EXPECT_TRUE(lease("large", 4).empty());
    end("large", first[0]);
    EXPECT_EQ(lease("large", 4).size(), 1u);
    EXPECT_EQ(world_.count(TrialState::kFailed), 0u);
}

TEST_F(Leases, CoresAreCountedToo) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 9, "cpus_per_trial": 3})").has_value());
    register_agent("a", 8, 2);
    EXPECT_TRUE(lease("a", 8).empty());
    EXPECT_NE(obstacle().find("3 cores"), std::string::npos) << obstacle();
    register_agent("b", 8, 7);
    EXPECT_EQ(lease("b", 8).size(), 2u);
}

TEST_F(Leases, AnAgentThatWaitsGetsTheTrialWhenItsGpuIsFree) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 3, "gpus_per_trial": 1})").has_value());
    register_agent("a", 2, 4, {"g0"});
    const std::vector<Lease> first = lease("a", 2);
    ASSERT_EQ(first.size(), 1u);
    Answer<LeaseReply> waits;
    world_.studies().agents().lease("a", {.free_slots = 1, .wait_ms = 10'000}, waits.done());
    EXPECT_FALSE(waits.is_there());
    end("a", first[0]);
    EXPECT_EQ(waits.get()->leases.size(), 1u);
}

TEST_F(Leases, SlotsAreThoseThatWereRegistered) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 60000})").has_value());
    register_agent("a", 3, 4);
    EXPECT_EQ(lease("a", 50'000).size(), 3u);
    EXPECT_TRUE(lease("a", 50'000).empty()) << "it holds as many as it has places";
    register_agent("b", 1'000'000, 4);
    EXPECT_EQ(lease("b", 1'000'000).size(), static_cast<std::size_t>(kAgentSlotsMax));
    EXPECT_EQ(world_.count(TrialState::kRunning), 3u + kAgentSlotsMax);
}

TEST_F(Leases, ASilentAgentIsForgotten) {
    ASSERT_TRUE(world_.create(R"("budget": {"gpus_per_trial": 1})").has_value());
    register_agent("a", 1, 1, {"g0"});
    world_.advance_ms(kAgentForgotten_ms - 1);
    EXPECT_TRUE(world_.heartbeat("a", {}).has_value());
    world_.advance_ms(kAgentForgotten_ms - 1);
    EXPECT_EQ(obstacle(), "");
    world_.advance_ms(1);
    EXPECT_NE(obstacle().find("no agent is registered"), std::string::npos) << obstacle();
    const auto late = world_.heartbeat("a", {});
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Code::kResourceDoesNotExist) << "it registers again";
}

TEST_F(Leases, AnAgentThatLeavesIsForgottenAtOnce) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 3})").has_value());
    const auto leave = [&](const std::string& id, std::vector<AttemptId> running) {
        Answer<RegisterReply> answer;
        world_.studies().agents().register_agent(
            {.agent_id = id, .slots = 0, .running = std::move(running), .leaving = true},
            answer.done());
        EXPECT_TRUE(answer.get().has_value());
    };
    leave("nobody", {});
    register_agent("a", 1, 1);
    register_agent("b", 1, 1);
    const std::vector<Lease> held = lease("a");
    ASSERT_EQ(held.size(), 1u);
    leave("a", {token(held[0])});
    leave("b", {});
    EXPECT_TRUE(world_.heartbeat("a", {token(held[0])})->lost.empty()) << "it answers for a trial";
    EXPECT_EQ(world_.heartbeat("b", {}).error().code, Code::kResourceDoesNotExist);
    end("a", held[0]);
    leave("a", {});
    EXPECT_NE(obstacle().find("no agent is registered"), std::string::npos) << obstacle();
}

TEST_F(Leases, ARenewalThatHasArrivedCountsBeforeTheLeaseIsJudged) {
    ASSERT_TRUE(world_.create().has_value());
    register_agent("a", 1, 1);
    const std::vector<Lease> held = lease("a");
    ASSERT_EQ(held.size(), 1u);
    for (int round = 0; round < 5; ++round) {
        world_.advance_ms(World::kTtl_ms - 1);
        EXPECT_TRUE(world_.heartbeat("a", {token(held[0])})->lost.empty());
    }
    EXPECT_EQ(world_.trial(0).lost_attempts, 0);
    world_.advance_ms(World::kTtl_ms);
    EXPECT_EQ(world_.trial(0).lost_attempts, 1);
}

TEST(AgentRegistry, IsBounded) {
    Agents agents;
    for (std::size_t i = 0; i < kAgentsMax; ++i)
        agents.add({.agent_id = std::to_string(i)}, static_cast<std::int64_t>(i));
    EXPECT_TRUE(agents.is_full());
    EXPECT_EQ(agents.next_forgotten_ms(), kAgentForgotten_ms);
    EXPECT_FALSE(agents.forget_silent(kAgentForgotten_ms + 9)) << "others have the same";
    EXPECT_EQ(agents.size(), kAgentsMax - 10);
    EXPECT_EQ(agents.find("9"), nullptr);
    EXPECT_NE(agents.find("10"), nullptr);
}

TEST(AgentRegistrations, AreBoundedFieldByField) {
    const std::string long_word(kAgentWordBytesMax + 1, 'x');
    const auto refused = [](const std::function<void(RegisterRequest&)>& change) {
        RegisterRequest request{.agent_id = "a", .host = "h", .slots = 1};
        EXPECT_TRUE(check_registration(request).has_value());
        change(request);
        const Result<void> checked = check_registration(request);
        return checked ? std::string("taken") : checked.error().message;
    };
    using Request = RegisterRequest;
    EXPECT_THAT(refused([&](Request& one) { one.host = long_word; }), HasSubstr("'host'"));
    EXPECT_THAT(refused([&](Request& one) { one.version = long_word; }), HasSubstr("'version'"));
    EXPECT_THAT(refused([&](Request& one) { one.address = long_word; }), HasSubstr("'address'"));
    EXPECT_THAT(refused([&](Request& one) { one.session = long_word; }), HasSubstr("'session'"));
    EXPECT_THAT(refused([&](Request& one) { one.gpus = {long_word}; }), HasSubstr("'gpus'"));
    EXPECT_THAT(refused([&](Request& one) { one.labels = {long_word}; }), HasSubstr("'labels'"));
    EXPECT_THAT(refused([&](Request& one) { one.labels.resize(kAgentLabelsMax + 1); }),
                HasSubstr("65 entries; at most 64"));
    EXPECT_THAT(refused([&](Request& one) { one.devices = {{.uuid = "g", .name = long_word}}; }),
                HasSubstr("'devices'"));
    EXPECT_THAT(refused([&](Request& one) { one.devices.resize(kAgentGpusMax + 1); }),
                HasSubstr("'devices'"));
    EXPECT_THAT(refused([&](Request& one) { one.running.resize(kAgentAttemptsMax + 1); }),
                HasSubstr("'running'"));
}

TEST(AgentRegistrations, AreBoundedTogether) {
    Agents agents;
    RegisterRequest large{.host = "h", .slots = 1};
    for (std::size_t i = 0; i < kAgentGpusMax; ++i) {
        large.gpus.push_back(std::to_string(i) + std::string(200, 'g'));
        large.devices.push_back({.uuid = large.gpus.back(), .name = std::string(200, 'n')});
    }
    std::size_t taken = 0;
    for (large.agent_id = "0"; agents.has_room_for(large); large.agent_id = std::to_string(taken)) {
        agents.add(large, 1);
        ++taken;
    }
    EXPECT_LE(taken * registration_bytes(large), kAgentsBytesMax + 1000 * taken);
    EXPECT_LT(taken, 1000u);
    large.agent_id = "0";
    EXPECT_TRUE(agents.has_room_for(large)) << "in place of itself";
    agents.forget("1");
    large.agent_id = "new";
    EXPECT_TRUE(agents.has_room_for(large));
}

}  // namespace
}  // namespace tune::tuner
