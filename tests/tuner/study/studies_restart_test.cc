// What a restart of the server finds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::SizeIs;

TEST(Restart, EverythingAnsweredIsThere) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"trials": 6})").has_value());
    ASSERT_TRUE(world.ask(4).has_value());
    ASSERT_TRUE(world.tell(0, 0.5).has_value());
    ASSERT_TRUE(world.report(1, 1, 3, 0.75).has_value());
    ASSERT_TRUE(world.tell({.trial = {"s", 2, 0}, .state = TrialState::kFailed, .reason = "boom"})
                    .has_value());
    const std::string journal = world.journal();
    world.reopen();
    EXPECT_EQ(world.journal(), journal);
    EXPECT_EQ(world.trial(0).value, 0.5);
    EXPECT_EQ(world.trial(2).reason, "boom");
    EXPECT_EQ(world.count(TrialState::kRunning), 2u);
    ASSERT_TRUE(world.tell({.trial = {"s", 1, 0}}).has_value());
    EXPECT_EQ(world.trial(1).value, 0.75) << "what was reported before is known";
    EXPECT_EQ(world.ask(9)->size(), 2u) << "the budget counts all";
}

TEST(Restart, SuggestionsResumeAsIfNothingHappened) {
    const char* fields = R"("budget": {"trials": 30}, "sampler": {"type": "tpe", "seed": 3})";
    std::vector<std::string> plain;
    std::vector<std::string> restarted;
    for (std::vector<std::string>* params : {&plain, &restarted}) {
        World world;
        ASSERT_TRUE(world.create(fields).has_value());
        for (std::uint64_t i = 0; i < 30; ++i) {
            const auto asked = world.ask();
            ASSERT_TRUE(asked.has_value());
            params->push_back(asked->at(0).params_json);
            if (params == &restarted && i % 7 == 3) world.reopen();
            const double x = std::stod(params->back().substr(5));
            ASSERT_TRUE(world.tell(i, (x - 0.3) * (x - 0.3)).has_value());
        }
    }
    EXPECT_EQ(plain, restarted);
}

TEST(Restart, LiveLeasesGetOneTimeToLiveOfGrace) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    const Lease lease = world.lease("a")->leases.at(0);
    world.advance_ms(World::kTtl_ms - 1000);
    world.reopen();
    world.advance_ms(World::kTtl_ms - 1);
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning);
    const auto registered = world.register_agent("a", {token(lease)});
    EXPECT_TRUE(registered->lost.empty()) << "the agent goes on with it";
    world.advance_ms(World::kTtl_ms - 1);
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning);
    world.log(lease.run_id, "loss", 1, 1);
    ASSERT_TRUE(world.finish("a", token(lease), {.request_id = "f", .outcome = Outcome::kDone})
                    .has_value());
    world.reopen();
    EXPECT_TRUE(
        world.finish("a", token(lease), {.request_id = "f", .outcome = Outcome::kDone}).has_value())
        << "a finish whose answer was lost with the server";
}

TEST(Restart, AnUnheardAgentLosesItsLeaseAfterTheGrace) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    ASSERT_THAT(world.lease("a")->leases, SizeIs(1));
    world.reopen();
    world.advance_ms(World::kTtl_ms);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
}

TEST(Restart, RequestIdsAreRemembered) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    const auto asked = world.ask(2, "ask-1");
    const auto leased = world.lease("a", 1, "lease-1");
    world.reopen();
    EXPECT_EQ(world.ask(2, "ask-1")->at(1).run_id, asked->at(1).run_id);
    ASSERT_TRUE(world.register_agent("a", {token(leased->leases.at(0))}).has_value());
    const auto again = world.lease("a", 1, "lease-1");
    ASSERT_THAT(again->leases, SizeIs(1));
    EXPECT_EQ(again->leases[0].run_id, leased->leases[0].run_id);
    EXPECT_EQ(world.count(TrialState::kRunning), 3u);
}

TEST(Restart, ThePrunerKnowsWhatWasReportedBefore) {
    World world;
    const char* fields = R"("pruner": {"type": "median", "startup": 2})";
    ASSERT_TRUE(world.create(fields).has_value());
    ASSERT_TRUE(world.ask(3).has_value());
    for (std::uint64_t number = 0; number < 2; ++number) {
        ASSERT_TRUE(world.report(number, 1, 1, 0.1).has_value());
        ASSERT_TRUE(world.tell(number, 0.1).has_value());
    }
    world.reopen();
    EXPECT_EQ(*world.report(2, 1, 1, 9), Action::kPrune);
}

/// Whether each report ended its trial, in a study of 18 trials, three at a time; the server is
/// started anew before each report whose number `is_restart` names.
std::vector<bool> verdicts(const std::string& pruner,
                           const std::function<bool(std::size_t)>& is_restart) {
    World world;
    EXPECT_TRUE(world.create("\"pruner\": " + pruner).has_value());
    std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same study each time
    struct Live {
        std::uint64_t number;
        std::int64_t step;
        std::int64_t last;
    };
    std::vector<Live> live;
    std::vector<bool> said;
    for (std::uint64_t asked = 0; asked < 18 || !live.empty();) {
        world.advance_ms(1);
        if (asked < 18 && live.size() < 3) {
            EXPECT_TRUE(world.ask().has_value());
            live.push_back({asked++, 1, 4 + static_cast<std::int64_t>(random() % 9)});
            continue;
        }
        const std::size_t at = random() % live.size();
        Live& trial = live[at];
        // Levels are a matter of the trial's number, steps of little.
        const double value = static_cast<double>(trial.number * 7 % 18) +
                             static_cast<double>(random() % 1000) / 1000;
        bool is_over = trial.step > trial.last;
        if (is_over) {
            EXPECT_TRUE(world.tell(trial.number, value).has_value());
        } else {
            if (is_restart(said.size())) world.reopen();
            const auto action = world.report(trial.number, 1, trial.step++, value);
            EXPECT_TRUE(action.has_value());
            is_over = action && action->has_value();
            said.push_back(is_over);
            if (is_over) {
                EXPECT_TRUE(
                    world.tell({.trial = {"s", trial.number, 0}, .state = TrialState::kPruned})
                        .has_value());
            }
        }
        if (is_over) live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return said;
}

TEST(Restart, PrunersDecideAsIfNothingHappened) {
    for (const char* pruner :
         {R"({"type": "asha"})", R"({"type": "hyperband"})",
          R"({"type": "patience", "wait": 1, "of": {"type": "asha", "eta": 2}})",
          R"({"type": "all", "of": [{"type": "asha", "min": 1, "eta": 2}, {"type": "median"}]})"}) {
        const std::vector<bool> plain = verdicts(pruner, [](std::size_t) { return false; });
        EXPECT_GT(std::count(plain.begin(), plain.end(), true), 1) << pruner;
        const auto restarted =
            verdicts(pruner, [](std::size_t report) { return report % 30 == 29; });
        EXPECT_EQ(restarted, plain) << pruner;
    }
}

TEST(Restart, APrunerThatIsChangedLaterSeesTheHistory) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask(4).has_value());
    for (std::uint64_t number = 0; number < 2; ++number) {
        ASSERT_TRUE(world.report(number, 1, 1, 0.1).has_value());
        ASSERT_TRUE(world.tell(number, 0.1).has_value());
    }
    ASSERT_TRUE(world.create(R"("pruner": {"type": "median", "startup": 2})").has_value());
    bool knows = false;
    while (!knows)  // on a reader thread of the store
        ASSERT_TRUE(world.studies()
                        .read("s", [&](const Study& study) { knows = !study.pruner().is_behind(); })
                        .has_value());
    EXPECT_EQ(*world.report(2, 1, 1, 9), Action::kPrune);
}

TEST(Restart, AFullDiskLosesNothingThatWasAnswered) {
    World world;
    world.close();
    world.set_database_bytes_max(600'000);
    world.open();
    ASSERT_TRUE(world.create().has_value());
    std::vector<std::pair<std::uint64_t, double>> told;
    bool refused = false;
    for (int i = 0; i < 3000 && !refused; ++i) {
        const auto asked = world.ask();
        if (!asked) {
            EXPECT_THAT(asked.error().message, ::testing::HasSubstr("is full"));
            refused = true;
            break;
        }
        const std::uint64_t number = asked->at(0).number;
        const auto answer = world.tell(number, static_cast<double>(i));
        if (answer)
            told.emplace_back(number, i);
        else
            refused = true;
    }
    ASSERT_TRUE(refused);
    // The refused one may have wanted more pages than another does; a few are left.
    int more = 0;
    while (more < 100 && world.ask().has_value()) ++more;
    EXPECT_LT(more, 100) << "still full, still alive";
    world.close();
    world.set_database_bytes_max(0);
    world.open();
    for (const auto& [number, value] : told) EXPECT_EQ(world.trial(number).value, value);
    const auto asked = world.ask();
    ASSERT_TRUE(asked.has_value()) << "with room again it goes on";
    EXPECT_TRUE(world.tell(asked->at(0).number, 1).has_value());
}

TEST(Restart, WhatTheDiskRefusedIsWrittenOnceItHasRoom) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask(2).has_value());
    // The store refuses a run whose experiment is gone, and takes it again once that is back.
    const auto experiment = world.store().get_experiment_by_name("s");
    ASSERT_TRUE(
        world.store().execute(tracker::DeleteExperiment{experiment->experiment_id}).has_value());
    EXPECT_FALSE(world.ask().has_value());
    ASSERT_TRUE(
        world.store().execute(tracker::RestoreExperiment{experiment->experiment_id}).has_value());
    world.advance_ms(2000);
    ASSERT_TRUE(world.change(Studies::Change::kResume).has_value());
    const auto asked = world.ask();
    ASSERT_TRUE(asked.has_value()) << asked.error().text();
    EXPECT_EQ(asked->at(0).number, 2u) << "the trial that could not be written";
    world.reopen();
    EXPECT_EQ(world.trial(2).state, TrialState::kRunning);
}

}  // namespace
}  // namespace tune::tuner
