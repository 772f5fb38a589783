// Trials on several agents at once: all or none, one token, and an end that waits for all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

class Gangs : public ::testing::Test {
protected:
    void join(const std::string& id, int slots = 1, std::vector<std::string> labels = {},
              std::vector<AttemptId> running = {}) {
        Answer<RegisterReply> answer;
        world_.studies().agents().register_agent({.agent_id = id,
                                                  .host = "host-" + id,
                                                  .slots = slots,
                                                  .cpus = 8,
                                                  .labels = std::move(labels),
                                                  .address = "10.0.0." + id,
                                                  .running = std::move(running)},
                                                 answer.done());
        ASSERT_TRUE(answer.get().has_value());
    }
    /// The agent begins to wait for a trial.
    void wait(const std::string& id, std::string request_id = "") {
        polls_[id] = std::make_unique<Answer<LeaseReply>>();
        world_.studies().agents().lease(id,
                                        {.request_id = std::move(request_id),
                                         .free_slots = 1,
                                         .wait_ms = 25'000,
                                         .port = 20'000 + std::stoi(id) * 64,
                                         .wants_tokens = true},
                                        polls_[id]->done());
    }
    std::optional<Lease> given(const std::string& id) {
        Result<LeaseReply> reply = polls_.at(id)->get();
        EXPECT_TRUE(reply.has_value());
        if (!reply || reply->leases.empty()) return std::nullopt;
        return reply->leases.at(0);
    }
    bool is_waiting(const std::string& id) { return !polls_.at(id)->is_there(); }
    Result<FinishReply> end(const std::string& id, const Lease& lease, Outcome outcome,
                            const std::string& reason = "") {
        return world_.finish(id, token(lease),
                             {.request_id = id + std::to_string(lease.attempt),
                              .outcome = outcome,
                              .reason = reason});
    }
    std::vector<Directive> directives(const std::string& id, const Lease& lease) {
        const auto reply = world_.heartbeat(id, {token(lease)});
        EXPECT_TRUE(reply.has_value());
        return reply ? reply->directives : std::vector<Directive>();
    }
    std::string obstacle(const std::string& study = "s") {
        std::string text;
        EXPECT_TRUE(
            world_.studies()
                .read(study, [&](const Study& found) { text = found.attendance().obstacle; })
                .has_value());
        return text;
    }
    /// A study of trials on two agents, and both parts of its first trial.
    std::pair<Lease, Lease> start_pair() {
        EXPECT_TRUE(world_.create(kPair).has_value());
        join("1");
        join("2");
        wait("1", "q1");
        wait("2", "q2");
        return {*given("1"), *given("2")};
    }

    static constexpr const char* kPair =
        R"("budget": {"trials": 1}, "resources": {"nproc": 2, "nnodes": 2})";
    World world_;
    std::map<std::string, std::unique_ptr<Answer<LeaseReply>>> polls_;
};

TEST_F(Gangs, StartOnAllAgentsAtOnceWithOneToken) {
    ASSERT_TRUE(world_.create(kPair).has_value());
    EXPECT_THAT(obstacle(), HasSubstr("no agent is registered"));
    join("1");
    EXPECT_THAT(obstacle(), HasSubstr("a trial runs on 2 agents at once; 1 is registered"));
    wait("1");
    join("2");
    EXPECT_EQ(obstacle(), "");
    EXPECT_TRUE(is_waiting("1")) << "the other agent has not asked yet";
    EXPECT_EQ(world_.count(TrialState::kRunning), 0u);
    wait("2");
    const auto first = given("1");
    const auto second = given("2");
    ASSERT_TRUE(first && second);
    EXPECT_EQ(token(*first), token(*second));
    ASSERT_TRUE(first->gang && second->gang);
    EXPECT_EQ(first->gang->node, 0);
    EXPECT_EQ(second->gang->node, 1);
    EXPECT_EQ(first->gang->nproc, 2);
    EXPECT_EQ(first->gang->size(), 4);
    EXPECT_EQ(first->gang->nodes, second->gang->nodes);
    EXPECT_EQ(first->gang->nodes.at(0), (GangNode{"10.0.0.1", 20'064}));
    EXPECT_NE(first->token, "");
    EXPECT_EQ(second->token, "") << "who has rank 0 reports";
    EXPECT_EQ(world_.trial(0).attempt, 1);
}

TEST_F(Gangs, AreOverWhenTheLastPartIs) {
    const auto [first, second] = start_pair();
    world_.log(first.run_id, "loss", 1, 0.5);
    ASSERT_TRUE(end("2", second, Outcome::kDone).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    EXPECT_THAT(directives("1", first), IsEmpty()) << "the others go on";
    ASSERT_TRUE(end("2", second, Outcome::kDone).has_value()) << "a repeat is answered";
    ASSERT_TRUE(end("1", first, Outcome::kDone).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kComplete);
    EXPECT_EQ(world_.trial(0).value, 0.5);
}

TEST_F(Gangs, TheFirstFailureEndsTheRest) {
    const auto [first, second] = start_pair();
    ASSERT_TRUE(end("2", second, Outcome::kFailed, "exit code 3").has_value());
    const auto told = directives("1", first);
    ASSERT_THAT(told, SizeIs(1));
    EXPECT_EQ(told[0].action, Action::kStop);
    EXPECT_THAT(told[0].reason, HasSubstr("host-2"));
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning) << "processes may still run there";
    ASSERT_TRUE(end("1", first, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kFailed);
    EXPECT_EQ(world_.trial(0).reason, "on host-2: exit code 3");
    EXPECT_EQ(world_.trial(0).user_failures, 1);
}

TEST_F(Gangs, AnAgentThatIsSilentEndsTheAttemptAndTheTrialRunsAgain) {
    const auto [first, second] = start_pair();
    for (int i = 0; i < 5; ++i) {
        world_.advance_ms(World::kTtl_ms / 4);
        ASSERT_TRUE(world_.heartbeat("1", {token(first)}).has_value());
    }
    const auto told = directives("1", first);
    ASSERT_THAT(told, SizeIs(1)) << "the other part is to end";
    EXPECT_THAT(told[0].reason, HasSubstr("on host-2 has been silent"));
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    const auto late = world_.heartbeat("2", {token(second)});
    ASSERT_THAT(late->lost, SizeIs(1)) << "should it come back, it has no part of it any more";
    ASSERT_TRUE(end("1", first, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued);
    EXPECT_EQ(world_.trial(0).lost_attempts, 1);
    EXPECT_FALSE(end("2", second, Outcome::kDone).has_value()) << "an old token";
    wait("1");
    wait("2");
    EXPECT_EQ(given("1")->attempt, 2);
    EXPECT_EQ(given("2")->attempt, 2);
}

TEST_F(Gangs, AnAgentThatLetsGoEndsTheAttempt) {
    const auto [first, second] = start_pair();
    join("2");  // anew, without naming the attempt
    EXPECT_THAT(directives("1", first), SizeIs(1));
    ASSERT_TRUE(end("1", first, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued);
    EXPECT_THAT(world_.trial(0).reason, HasSubstr("let go of it"));
}

TEST_F(Gangs, BothAgentsSilentFreeEverything) {
    start_pair();
    world_.advance_ms(World::kTtl_ms);
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued);
    wait("1");
    wait("2");
    EXPECT_TRUE(given("1"));
    EXPECT_TRUE(given("2"));
}

TEST_F(Gangs, OnlyRankZeroReports) {
    const auto [first, second] = start_pair();
    const auto report = [&](const std::string& id, double value) {
        Answer<ReportReply> answer;
        ReportRequest request;
        request.reports = {
            {.run_id = first.run_id, .attempt = 1, .metrics = {{"loss", value, 1, 1}}}};
        world_.studies().agents().report_metrics(id, std::move(request), answer.done());
        return answer.get()->results.at(0).ok;
    };
    EXPECT_TRUE(report("2", 0.1));
    EXPECT_TRUE(report("1", 0.7));
    ASSERT_TRUE(end("1", first, Outcome::kDone).has_value());
    ASSERT_TRUE(end("2", second, Outcome::kDone).has_value());
    EXPECT_EQ(world_.trial(0).value, 0.7);
}

TEST_F(Gangs, AStopReachesAllRanks) {
    const auto [first, second] = start_pair();
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    EXPECT_THAT(directives("1", first), SizeIs(1));
    EXPECT_THAT(directives("2", second), SizeIs(1));
    ASSERT_TRUE(end("1", first, Outcome::kCancelled).has_value());
    EXPECT_THAT(directives("2", second), SizeIs(1)) << "until it has ended";
    ASSERT_TRUE(end("2", second, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kCancelled);
}

TEST_F(Gangs, ALostAnswerIsGivenAgain) {
    const auto [first, second] = start_pair();
    wait("2", "q2");
    const auto again = given("2");
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, second);
    wait("1", "q1");
    Lease of_first = *given("1");
    EXPECT_NE(of_first.token, "");
    of_first.token = first.token;
    EXPECT_EQ(of_first, first);
}

TEST_F(Gangs, ARestartOfTheServerKeepsThem) {
    const auto [first, second] = start_pair();
    world_.log(first.run_id, "loss", 1, 0.5);
    ASSERT_TRUE(end("2", second, Outcome::kFailed, "broken").has_value());
    world_.reopen();
    join("1", 1, {}, {token(first)});
    join("2");
    EXPECT_THAT(directives("1", first), SizeIs(1)) << "it learns of the fault";
    wait("2");
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    ASSERT_TRUE(end("1", first, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kFailed);
    EXPECT_EQ(world_.trial(0).reason, "on host-2: broken");
}

TEST_F(Gangs, OneMachineComesBeforeSeveral) {
    ASSERT_TRUE(
        world_.create(R"("budget": {"trials": 1}, "resources": {"cpus": 4, "processes": 2})")
            .has_value());
    join("1", 2);
    wait("1");
    const auto alone = given("1");
    ASSERT_TRUE(alone && alone->gang);
    EXPECT_EQ(alone->gang->nproc, 2);
    EXPECT_THAT(alone->gang->nodes, SizeIs(1));
    EXPECT_EQ(alone->cpus_per_trial, 8);
    // Where none has room for both, two agents with one each do.
    ASSERT_TRUE(world_
                    .create(R"("study": "wide", "budget": {"trials": 1},
                                 "resources": {"cpus": 8, "processes": 2})")
                    .has_value());
    join("2");
    join("3");
    wait("2");
    wait("3");
    const auto second = given("2");
    ASSERT_TRUE(second && second->gang);
    EXPECT_EQ(second->gang->nproc, 1);
    EXPECT_EQ(given("3")->gang->node, 1);
}

TEST_F(Gangs, MachinesOfOneTopologyArePreferred) {
    ASSERT_TRUE(
        world_.create(R"("budget": {"trials": 1}, "resources": {"nnodes": 2})").has_value());
    ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
    join("1", 1, {"topology=left"});
    join("2", 1, {"topology=right"});
    join("3", 1, {"topology=right"});
    for (const char* id : {"1", "2", "3"}) wait(id);
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    EXPECT_TRUE(given("2"));
    EXPECT_TRUE(given("3"));
    EXPECT_TRUE(is_waiting("1"));
}

TEST_F(Gangs, AgentsAreHeldForThem) {
    // Small trials would take each place as it becomes free.
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 100})").has_value());
    join("1");
    join("2");
    wait("1");
    wait("2");
    const Lease small = *given("1");
    const Lease other = *given("2");
    ASSERT_TRUE(world_
                    .create(R"("study": "wide", "budget": {"trials": 1},
                                 "resources": {"nnodes": 2})")
                    .has_value());
    ASSERT_TRUE(end("2", other, Outcome::kCancelled).has_value());
    wait("2");
    EXPECT_TRUE(is_waiting("2")) << "it is kept, though there are small trials";
    ASSERT_TRUE(end("1", small, Outcome::kCancelled).has_value());
    wait("1");
    const auto first = given("1");
    const auto second = given("2");
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->study, "wide");
    EXPECT_EQ(second->study, "wide");
}

TEST_F(Gangs, AHoldThatIsInVainEnds) {
    ASSERT_TRUE(world_
                    .create(R"("study": "wide", "budget": {"trials": 1},
                                 "resources": {"nnodes": 2})")
                    .has_value());
    join("1");
    join("2");  // never asks
    wait("1");
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 100})").has_value());
    EXPECT_TRUE(is_waiting("1")) << "it is held";
    world_.advance_ms(24'000);
    EXPECT_TRUE(is_waiting("1"));
    world_.advance_ms(1'000);
    EXPECT_FALSE(given("1")) << "its poll is over";
    wait("1");
    EXPECT_TRUE(is_waiting("1"));
    world_.advance_ms(5'000);
    const auto small = given("1");
    ASSERT_TRUE(small);
    EXPECT_EQ(small->study, "s") << "30 s are over, and the others get their turn";
}

TEST_F(Gangs, PeakMemoryIsLearntAndTrialsThenShareAGpu) {
    ASSERT_TRUE(world_
                    .create(R"("budget": {"trials": 20},
                                 "resources": {"gpus": 1, "gpu_memory": "auto"})")
                    .has_value());
    Answer<RegisterReply> answer;
    world_.studies().agents().register_agent({.agent_id = "1",
                                              .host = "h",
                                              .slots = 16,
                                              .cpus = 16,
                                              .gpus = {"g0"},
                                              .devices = {{"g0", 80 * kGibibyte, "H100", 0}}},
                                             answer.done());
    ASSERT_TRUE(answer.get().has_value());
    for (int i = 0; i < 3; ++i) {
        const auto leases = world_.lease("1", 16)->leases;
        ASSERT_THAT(leases, SizeIs(1)) << "it has the whole GPU";
        EXPECT_EQ(leases[0].devices.at(0), (GrantedGpu{"g0", 0}));
        ASSERT_TRUE(world_
                        .finish("1", token(leases[0]),
                                {.request_id = leases[0].run_id,
                                 .outcome = Outcome::kCancelled,
                                 .peak_gpu_memory_bytes = 10 * kGibibyte})
                        .has_value());
    }
    world_.reopen();  // what was learnt is not lost
    Answer<RegisterReply> again;
    world_.studies().agents().register_agent({.agent_id = "1",
                                              .host = "h",
                                              .slots = 16,
                                              .cpus = 16,
                                              .gpus = {"g0"},
                                              .devices = {{"g0", 80 * kGibibyte, "H100", 0}}},
                                             again.done());
    ASSERT_TRUE(again.get().has_value());
    const auto packed = world_.lease("1", 16)->leases;
    ASSERT_THAT(packed, SizeIs(6)) << "six times 11.5 GiB fit into 80";
    EXPECT_EQ(packed[0].devices.at(0).bytes, 10 * kGibibyte + 10 * kGibibyte * 15 / 100);
    // One that ran out of its part: the next ones get more.
    ASSERT_TRUE(world_
                    .finish("1", token(packed[0]),
                            {.request_id = "f", .outcome = Outcome::kOom, .reason = "oom"})
                    .has_value());
    const auto more = world_.lease("1", 16)->leases;
    ASSERT_THAT(more, SizeIs(1));
    EXPECT_GT(more[0].devices.at(0).bytes, 17 * kGibibyte) << "half as much again";
}

}  // namespace
}  // namespace tune::tuner
