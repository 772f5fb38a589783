// Studies of population based training through a real store: what a trial continues is kept,
// reported to whoever runs it, and comes out again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/tuner/study/world.h"
#include "tuner/study/trial/lineage.h"

namespace tune::tuner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kPbt =
    R"("space": {"lr": {"float": [1e-5, 0.1], "log": true}}, "command": ["run"],
       "sampler": {"type": "pbt", "seed": 3, "population": 4, "interval": 5, "max": 20})";

std::vector<std::uint64_t> lineage(World& world, std::uint64_t number, std::size_t count_max = 99) {
    std::vector<std::uint64_t> numbers;
    EXPECT_TRUE(world.studies()
                    .read("s",
                          [&](const Study& study) {
                              for (const Trial* trial :
                                   lineage_of(study, *study.trials().find(number), count_max))
                                  numbers.push_back(trial->number);
                          })
                    .has_value());
    return numbers;
}

/// Asks for one trial after the other and tells its number as its value, until there is none.
std::vector<AskedTrial> run(World& world, int count_max) {
    std::vector<AskedTrial> asked;
    for (int i = 0; i < count_max; ++i) {
        auto one = world.ask();
        if (!one || one->empty()) break;
        const AskedTrial& trial = one->front();
        EXPECT_TRUE(world.tell(trial.number, static_cast<double>(trial.number % 4)).has_value());
        asked.push_back(trial);
    }
    return asked;
}

TEST(PbtStudy, EndsWhenEveryMemberHasTrainedToTheLastStep) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    const std::vector<AskedTrial> first = run(world, 6);
    ASSERT_THAT(first, SizeIs(6));
    EXPECT_EQ(first[1].origin->parent, std::nullopt);
    EXPECT_EQ(first[5].origin->parent, 1u);
    EXPECT_EQ(first[5].steps.from, 5);
    EXPECT_EQ(first[5].steps.to, 10);
    world.reopen();
    const std::vector<AskedTrial> rest = run(world, 99);
    EXPECT_THAT(rest, SizeIs(9)) << "4 members for 4 intervals; one copied another that was ahead";
    EXPECT_EQ(rest.back().steps.to, 20);
    EXPECT_EQ(world.state(), StudyState::kCompleted);
    ASSERT_TRUE(world.studies()
                    .read("s",
                          [](const Study& study) {
                              EXPECT_EQ(study.status().end, StudyEnd::kSteps);
                              EXPECT_THAT(study.status().note, HasSubstr("trained to step 20"));
                          })
                    .has_value());
    EXPECT_THAT(lineage(world, 12), SizeIs(4));
    EXPECT_THAT(lineage(world, 12, 2), SizeIs(2));
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    const Result<ReplayReport> report = answer.get();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->compared, 15u);
    EXPECT_THAT(report->differences, IsEmpty());
}

TEST(PbtStudy, AReplayReportsWhichParentWasChanged) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    run(world, 6);
    const auto documents = world.store().list_documents("tune.trials");
    Json document = parse_json(documents->at(4).json_text).value();
    EXPECT_EQ(document["origin"], Json({0, 1, 0}));
    document["origin"] = {0, 1, 3};
    ASSERT_TRUE(
        world.store()
            .execute(tracker::PutDocument{"tune.trials", documents->at(4).key, to_text(document)})
            .has_value());
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    const Result<ReplayReport> report = answer.get();
    ASSERT_THAT(report->differences, SizeIs(1));
    EXPECT_EQ(report->differences[0].parameter, "parent");
    EXPECT_EQ(report->differences[0].recorded, 3);
    EXPECT_EQ(report->differences[0].replayed, 0);
}

/// What failed before any succeeded counts towards nothing; its members are made up for by the
/// sampler, which lets nobody go on from it.
TEST(PbtStudy, MembersThatFailedBeforeAnySuccessAreMadeUpFor) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    const auto asked = world.ask(3);
    ASSERT_TRUE(asked && asked->size() == 3);
    for (const AskedTrial& trial : *asked) {
        ASSERT_TRUE(world
                        .tell({.trial = {"s", trial.number, 0},
                               .state = TrialState::kFailed,
                               .reason = "no such file"})
                        .has_value());
    }
    EXPECT_EQ(world.state(), StudyState::kStopped);
    world.reopen();
    ASSERT_TRUE(world.create(kPbt).has_value());
    ASSERT_TRUE(world.studies()
                    .read("s", [](const Study& study) { EXPECT_EQ(study.beginning().count(), 3u); })
                    .has_value());
    const std::vector<AskedTrial> trials = run(world, 99);
    EXPECT_EQ(world.state(), StudyState::kCompleted);
    std::map<int, int> last_steps;
    for (const AskedTrial& trial : trials) {
        ASSERT_TRUE(trial.origin.has_value());
        EXPECT_GE(trial.number, 3u);
        EXPECT_EQ(trial.origin->generation == 0, !trial.origin->parent.has_value());
        EXPECT_GE(trial.origin->parent.value_or(3), 3u) << "nobody goes on from what failed";
        last_steps[trial.origin->member] =
            std::max(last_steps[trial.origin->member], static_cast<int>(trial.steps.to));
    }
    for (const auto& [member, step] : last_steps) EXPECT_EQ(step, 20) << member;
    EXPECT_THAT(last_steps, SizeIs(4));
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    const Result<ReplayReport> report = answer.get();
    ASSERT_TRUE(report.has_value()) << report.error().text();
    EXPECT_THAT(report->differences, IsEmpty());
}

TEST(PbtStudy, NoMoreTrialsThanMembersRunAtOnce) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    EXPECT_THAT(*world.ask(7), SizeIs(4));
    EXPECT_THAT(*world.ask(1), IsEmpty());
    EXPECT_EQ(world.state(), StudyState::kRunning);
    ASSERT_TRUE(world.tell(2, 0.5).has_value());
    const auto asked = world.ask(3);
    ASSERT_THAT(*asked, SizeIs(1));
    EXPECT_EQ(asked->front().origin->parent, 2u);
}

TEST(PbtStudy, ALeaseNamesTheCheckpointAndTheSteps) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    const Lease first = world.lease("a")->leases.at(0);
    EXPECT_EQ(first.resume_from, "");
    EXPECT_THAT(first.env, Contains(EnvironmentVariable{"TUNE_STEP_TO", "5"}));
    world.log(first.run_id, "loss", 5, 0.5);
    ASSERT_TRUE(world.finish("a", token(first), {.request_id = "f", .outcome = Outcome::kDone})
                    .has_value());
    for (int i = 0; i < 3; ++i) EXPECT_THAT(world.lease("a")->leases, SizeIs(1));
    const Lease second = world.lease("a")->leases.at(0);
    EXPECT_EQ(second.number, 4);
    EXPECT_EQ(second.resume_from, first.checkpoint_dir);
    EXPECT_EQ(second.params_json, first.params_json);
    for (const auto& [name, value] :
         {std::pair("TUNE_PARENT", "0"), std::pair("TUNE_STEP_FROM", "5"),
          std::pair("TUNE_STEP_TO", "10")})
        EXPECT_THAT(second.env, Contains(EnvironmentVariable{name, value}));
    // Another attempt of it continues the same.
    ASSERT_TRUE(
        world.finish("a", token(second), {.request_id = "g", .outcome = Outcome::kPreempted})
            .has_value());
    EXPECT_EQ(world.lease("a")->leases.at(0).resume_from, first.checkpoint_dir);
}

/// Runs what the agent gets until nothing is left or `count_max` trials ended; the last answer.
FinishReply run_as_agent(World& world, int count_max) {
    FinishReply last;
    for (int i = 0; i < count_max; ++i) {
        const LeaseReply leased = world.lease("a").value();
        if (leased.leases.empty()) break;
        const Lease& lease = leased.leases[0];
        world.log(lease.run_id, "loss", 1, static_cast<double>(lease.number % 4));
        auto ended = world.finish(
            "a", token(lease),
            {.request_id = "f" + std::to_string(lease.number), .outcome = Outcome::kDone});
        EXPECT_TRUE(ended.has_value());
        if (ended) last = std::move(ended).value();
    }
    return last;
}

TEST(PbtStudy, AnEndListsTheCheckpointsThatAreNeeded) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    FinishReply reply = run_as_agent(world, 4);
    ASSERT_TRUE(reply.checkpoints.has_value());
    EXPECT_THAT(reply.checkpoints->trials, ElementsAre(0, 1, 2, 3));
    reply = run_as_agent(world, 1);  // continues 0
    EXPECT_EQ(reply.checkpoints->below, 5u);
    EXPECT_THAT(reply.checkpoints->trials, ElementsAre(0, 1, 2, 3, 4)) << "0 is the best trial";
    // Number 5 continues 1 and is interrupted: both are needed until it has ended.
    const Lease fifth = world.lease("a")->leases.at(0);
    reply = world.finish("a", token(fifth), {.request_id = "p", .outcome = Outcome::kPreempted})
                .value();
    EXPECT_THAT(reply.checkpoints->trials, ElementsAre(0, 1, 2, 3, 4, 5));
    world.reopen();
    ASSERT_TRUE(world.register_agent("a").has_value());
    reply = run_as_agent(world, 1);
    EXPECT_THAT(reply.checkpoints->trials, ElementsAre(0, 2, 3, 4, 5));
    EXPECT_EQ(reply.checkpoints->from, 0u);
    // The answer came twice: the same again.
    const FinishReply again =
        world.finish("a", {fifth.run_id, 2}, {.request_id = "f5", .outcome = Outcome::kDone})
            .value();
    EXPECT_EQ(to_json(again), to_json(reply));
    reply = run_as_agent(world, 99);
    EXPECT_EQ(world.state(), StudyState::kCompleted);
    EXPECT_THAT(reply.checkpoints->trials, SizeIs(5)) << "four members and the best";
}

TEST(PbtStudy, CheckpointsOfOtherSamplersAreLeftAlone) {
    const auto create = [](World& world, const std::string& sampler) {
        return world
            .create(R"("space": {"lr": {"float": [1e-5, 0.1], "log": true}}, "command": ["run"],
                       "sampler": )" +
                    sampler)
            .has_value();
    };
    World world;
    ASSERT_TRUE(create(world, R"({"type": "random", "seed": 3})"));
    ASSERT_TRUE(world.register_agent("a").has_value());
    EXPECT_FALSE(run_as_agent(world, 3).checkpoints.has_value());
    ASSERT_TRUE(create(world, R"({"type": "pbt", "seed": 3, "population": 4})"));
    EXPECT_EQ(run_as_agent(world, 9).checkpoints->from, 3u);
    // A smaller population leaves members behind; a larger one takes them up again.
    ASSERT_TRUE(create(world, R"({"type": "pbt", "seed": 3, "population": 2})"));
    const FinishReply small = run_as_agent(world, 6);
    ASSERT_TRUE(create(world, R"({"type": "pbt", "seed": 3, "population": 4})"));
    for (int i = 0; i < 4; ++i) {
        const Lease lease = world.lease("a")->leases.at(0);
        ASSERT_NE(lease.resume_from, "");
        const auto parent = std::stoull(lease.resume_from.substr(lease.resume_from.find('/') + 1));
        EXPECT_THAT(small.checkpoints->trials, Contains(parent));
    }
    ASSERT_TRUE(create(world, R"({"type": "random", "seed": 3})"));
    EXPECT_EQ(run_as_agent(world, 1).checkpoints->from, small.checkpoints->below + 5);
}

TEST(PbtStudy, GoesOnWithAnotherPopulationAndAnotherSampler) {
    World world;
    ASSERT_TRUE(world.create(kPbt).has_value());
    run(world, 6);
    for (const char* sampler :
         {R"({"type": "pbt", "seed": 3, "population": 3, "interval": 5})",
          R"({"type": "tpe", "seed": 3})", R"({"type": "pbt", "seed": 3, "population": 4})"}) {
        ASSERT_TRUE(
            world
                .create(
                    std::string(
                        R"("space": {"lr": {"float": [1e-5, 0.1], "log": true}}, "command": ["run"],
                                "sampler": )") +
                    sampler)
                .has_value())
            << sampler;
        EXPECT_THAT(run(world, 5), SizeIs(5)) << sampler;
    }
    world.reopen();
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    const Result<ReplayReport> report = answer.get();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->compared, 21u);
    EXPECT_EQ(report->differing, 0u);
}

TEST(PbtStudy, RefusesWhatItCannotDo) {
    const auto error = [](const std::string& fields) {
        const Result<StudyConfig> config =
            study_config_from_json(parse_json(R"({"study": "s", "space": {"x": {"float": [0, 1]}},
                           "sampler": {"type": "pbt"}, )" +
                                              fields + "}")
                                       .value());
        EXPECT_TRUE(config.has_value()) << config.error().text();
        const Result<void> checked = check_study(*config, false);
        return checked ? std::string() : checked.error().text();
    };
    EXPECT_EQ(error(R"("metric": "loss")"), "");
    EXPECT_THAT(error(R"("metric": ["loss", "ms"])"), HasSubstr("takes one objective"));
    EXPECT_THAT(error(R"("metric": "loss", "constraints": [{"name": "ms", "max": 1}])"),
                HasSubstr("takes one objective"));
    EXPECT_THAT(error(R"("metric": "loss", "warm_start": {"from": "t", "history": 5})"),
                HasSubstr("learns nothing"));
    EXPECT_EQ(error(R"("metric": "loss", "warm_start": {"from": "t"})"), "");
}

}  // namespace
}  // namespace tune::tuner
