// Suggestions of parallel studies come out again, bit for bit; studies that are extended; warm
// starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/tuner/study/world.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kSpace =
    R"("space": {"lr": {"float": [1e-5, 0.1], "log": true}, "depth": {"int": [1, 6]},
                 "opt": {"choice": ["sgd", "adam"]},
                 "momentum": {"float": [0, 0.99], "when": {"opt": "sgd"}}}, "command": ["run"])";

ReplayReport replayed(World& world) {
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    Result<ReplayReport> report = answer.get();
    EXPECT_TRUE(report.has_value()) << report.error().text();
    return report ? *report : ReplayReport();
}

double loss_of(const std::string& params_json) {
    const Json params = parse_json(params_json).value();
    const double lr = std::log10(params["lr"].get<double>()) + 3;
    return lr * lr + 0.1 * params["depth"].get<double>() + params.value("momentum", 0.5);
}

/// Threads that ask and tell as they like; what each suggestion saw depends on the machine.
/// A failure before the first success would use up no budget, and which comes first is chance here:
/// studies say "stop_after_failures": 0.
void work(World& world, int workers, int objectives = 1,
          const std::vector<std::string>& constraints = {}) {
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker)
        threads.emplace_back([&world, &constraints, worker, objectives] {
            for (int round = 0;; ++round) {
                const auto asked = world.ask();
                if (!asked || asked->empty()) return;
                const AskedTrial& trial = asked->front();
                const auto state = static_cast<int>(trial.number % 7);
                TellRequest told{.trial = {"s", trial.number, 0}};
                if (state == 5) {
                    static_cast<void>(
                        world.report(trial.number, 0, round, loss_of(trial.params_json)));
                    told.state = TrialState::kPruned;
                } else if (state == 6) {
                    told.state = TrialState::kFailed;
                } else {
                    told.value = loss_of(trial.params_json);
                    for (const std::string& name : constraints)
                        told.constraints.emplace_back(name, *told.value);
                    if (objectives == 2) told.more_values = {3 + *told.value / 7};
                }
                EXPECT_TRUE(world.tell(told).has_value());
            }
        });
    for (std::thread& thread : threads) thread.join();
}

class Replay : public ::testing::TestWithParam<const char*> {};

TEST_P(Replay, EightWorkersEverySuggestionComesOutAgain) {
    World world;
    ASSERT_TRUE(world
                    .create(std::string(kSpace) +
                            R"(, "stop_after_failures": 0,
                           "budget": {"trials": 60}, "sampler": )" +
                            GetParam())
                    .has_value());
    ASSERT_TRUE(world.enqueue(R"({"lr": 0.01})").has_value()) << "partly given";
    ASSERT_TRUE(world.enqueue(R"({"lr": 0.02, "depth": 2, "opt": "adam"})").has_value());
    work(world, 8);
    const ReplayReport report = replayed(world);
    EXPECT_EQ(report.compared, 59u);
    EXPECT_EQ(report.given, 1u);
    EXPECT_EQ(report.differing, 0u);
    EXPECT_THAT(report.differences, IsEmpty());
    world.reopen();
    EXPECT_EQ(replayed(world).differing, 0u);
}

INSTANTIATE_TEST_SUITE_P(Samplers, Replay,
                         ::testing::Values(R"({"type": "random", "seed": 1})",
                                           R"({"type": "qmc", "seed": 1})",
                                           R"({"type": "tpe", "seed": 1, "startup": 5})",
                                           R"({"type": "gp", "seed": 1, "startup": 5})",
                                           R"({"type": "grid", "seed": 1, "points": 4})"));

class ReplayOfNumbers : public ::testing::TestWithParam<const char*> {};

/// Samplers that want numbers, or generations.
TEST_P(ReplayOfNumbers, EightWorkersEverySuggestionComesOutAgain) {
    World world;
    ASSERT_TRUE(
        world
            .create(
                R"("space": {"lr": {"float": [1e-5, 0.1], "log": true}, "depth": {"int": [1, 60]}},
                           "command": ["run"], "stop_after_failures": 0,
                           "budget": {"trials": 60}, "sampler": )" +
                std::string(GetParam()))
            .has_value());
    work(world, 8);
    const ReplayReport report = replayed(world);
    EXPECT_EQ(report.compared, 60u);
    EXPECT_EQ(report.differing, 0u);
}

INSTANTIATE_TEST_SUITE_P(Samplers, ReplayOfNumbers,
                         ::testing::Values(R"({"type": "cmaes", "seed": 1})",
                                           R"({"type": "auto", "seed": 1})",
                                           R"({"type": "nsga2", "seed": 1, "population": 8})",
                                           R"({"type": "pbt", "seed": 1, "population": 8})",
                                           R"({"type": "tpe", "seed": 1, "startup": 5})"));

TEST(Replay, EightWorkersOnSeveralObjectives) {
    for (const char* sampler : {R"({"type": "nsga3", "seed": 1, "population": 8})",
                                R"({"type": "nsga2", "seed": 1, "population": 8})",
                                R"({"type": "tpe", "seed": 1, "startup": 5})"}) {
        World world;
        ASSERT_TRUE(world
                        .create(std::string(kSpace) +
                                R"(, "metric": [{"name": "loss"}, {"name": "acc", "goal": "max"}],
                                   "stop_after_failures": 0,
                           "budget": {"trials": 60}, "sampler": )" +
                                sampler)
                        .has_value());
        work(world, 8, 2);
        const ReplayReport report = replayed(world);
        EXPECT_EQ(report.compared, 60u);
        EXPECT_THAT(report.differences, IsEmpty()) << sampler;
        world.reopen();
        EXPECT_EQ(replayed(world).differing, 0u) << sampler;
    }
}

TEST(Replay, EightWorkersWithOneModelAConstraint) {
    World world;
    ASSERT_TRUE(
        world
            .create(std::string(kSpace) +
                    R"(, "constraints": [{"name": "ms", "max": 1}, {"name": "gb", "max": 2}],
                               "stop_after_failures": 0,
                           "budget": {"trials": 60},
                               "sampler": {"type": "tpe", "seed": 1, "startup": 5,
                                           "constraints": "each"})")
            .has_value());
    work(world, 8, 1, {"ms", "gb"});
    const ReplayReport report = replayed(world);
    EXPECT_EQ(report.compared, 60u);
    EXPECT_THAT(report.differences, IsEmpty());
    world.reopen();
    EXPECT_EQ(replayed(world).differing, 0u);
}

TEST(Replay, SaysWhatDiffers) {
    World world;
    ASSERT_TRUE(world.create(R"("sampler": {"type": "tpe", "seed": 4})").has_value());
    ASSERT_THAT(*world.ask(3), SizeIs(3));
    ASSERT_TRUE(world.tell(0, 1).has_value());
    // Somebody has changed the journal.
    const auto documents = world.store().list_documents("tune.trials");
    ASSERT_THAT(*documents, SizeIs(3));
    Json document = parse_json(documents->at(1).json_text).value();
    document["point"][0] = 0.123;
    ASSERT_TRUE(
        world.store()
            .execute(tracker::PutDocument{"tune.trials", documents->at(1).key, to_text(document)})
            .has_value());
    const ReplayReport report = replayed(world);
    EXPECT_EQ(report.compared, 3u);
    EXPECT_EQ(report.differing, 1u);
    ASSERT_THAT(report.differences, SizeIs(1));
    EXPECT_EQ(report.differences[0].number, 1u);
    EXPECT_EQ(report.differences[0].parameter, "x");
    EXPECT_EQ(report.differences[0].recorded, 0.123);
}

TEST(Replay, GoesOnOverAnotherSamplerAnExtensionAndRestarts) {
    World world;
    const char* tpe = R"("sampler": {"type": "tpe", "seed": 4, "startup": 3})";
    const auto some = [&](int count) {
        for (int i = 0; i < count; ++i) {
            const auto asked = world.ask();
            ASSERT_THAT(*asked, SizeIs(1));
            const Json params = parse_json(asked->at(0).params_json).value();
            ASSERT_TRUE(world.tell(asked->at(0).number, params["x"].get<double>()).has_value());
        }
    };
    ASSERT_TRUE(world.create(tpe).has_value());
    some(8);
    const auto running = world.ask();
    ASSERT_TRUE(world.create(R"("sampler": {"type": "gp", "seed": 4, "startup": 3})").has_value());
    some(6);
    world.reopen();
    ASSERT_TRUE(
        world
            .extend(std::string(tpe) +
                    R"(, "space": {"x": {"float": [-1, 2]}, "y": {"int": [1, 9], "init": 4}})")
            .has_value());
    some(8);
    ASSERT_TRUE(world.tell(running->at(0).number, 0.5).has_value());
    some(3);
    for (int i = 0; i < 2; ++i) {
        const ReplayReport report = replayed(world);
        EXPECT_EQ(report.compared, 26u);
        EXPECT_EQ(report.differing, 0u);
        world.reopen();
    }
}

/// Before the grids of floats were decimal, [0, 1] by 0.3 ended at 0.8999999999999999.
TEST(Replay, GridsOfEarlierVersionsLoadResumeAndReplay) {
    const std::string fields = R"("space": {"x": {"float": [0, 1], "step": 0.3}},
        "sampler": {"type": "tpe", "seed": 4, "startup": 3, "duplicates": "allow"})";
    World world;
    ASSERT_TRUE(world.create(fields).has_value());
    for (std::uint64_t n = 0; n < 12; ++n) {
        const auto asked = world.ask();
        ASSERT_THAT(*asked, SizeIs(1));
        const Json params = parse_json(asked->at(0).params_json).value();
        ASSERT_TRUE(world.tell(n, -params["x"].get<double>()).has_value());
    }
    int aged = 0;
    for (const char* collection : {"tune.studies", "tune.trials"}) {
        const auto documents = world.store().list_documents(collection);
        ASSERT_TRUE(documents.has_value());
        for (const tracker::Document& document : *documents) {
            Json json = parse_json(document.json_text).value();
            Json& last = json.contains("point") ? json["point"][0]
                                                : json["config"]["space"]["x"]["float"][1];
            if (last != Json(0.9)) continue;
            last = 0.8999999999999999;
            ++aged;
            const auto put = tracker::PutDocument{collection, document.key, to_text(json)};
            ASSERT_TRUE(world.store().execute(put).has_value());
        }
    }
    EXPECT_GE(aged, 3) << "the study and some of its trials";
    world.reopen();
    EXPECT_THAT(world.journal(), HasSubstr("0.8999999999999999")) << "what a trial ran with stays";
    EXPECT_EQ(replayed(world).differing, 0u);
    ASSERT_TRUE(world.create(fields).has_value()) << "the same study";
    ASSERT_TRUE(world.enqueue(R"({"x": 0.9})").has_value());
    EXPECT_EQ(world.ask()->at(0).params_json, R"({"x":0.9})");
}

// --- extensions ----------------------------------------------------------------------------------

TEST(Extend, OldTrialsCountWithTheInitOfNewParameters) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    ASSERT_TRUE(world.tell(0, 0.5).has_value());
    const std::string wider =
        R"("space": {"x": {"float": [0, 5]}, "y": {"choice": ["a", "b"], "init": "b"}})";
    const auto refused = world.create(wider);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kResourceConflict);
    EXPECT_THAT(refused.error().message, HasSubstr("space.y is new"));
    EXPECT_THAT(refused.error().message, HasSubstr("--extend"));
    ASSERT_TRUE(world.extend(wider).has_value());
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(world.studies()
                        .read("s",
                              [](const Study& study) {
                                  const Json params =
                                      study.config().space.to_json(study.trials().find(0)->point);
                                  EXPECT_EQ(params["y"], "b");
                              })
                        .has_value());
        world.reopen();
    }
    ASSERT_TRUE(world.tell(1, 0.25).has_value()) << "it ran all along";
    EXPECT_THAT(world.ask()->at(0).params_json, HasSubstr("\"y\""));
    ASSERT_TRUE(world.create(wider).has_value()) << "no extension any more";
}

TEST(Extend, RefusesWhatWouldMakeTrialsUntrue) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": 0.9})").has_value());
    const std::string journal = world.journal();
    const auto no_init = world.extend(R"("space": {"x": {"float": [0, 1]}, "y": {"int": [1, 9]}})");
    ASSERT_FALSE(no_init.has_value());
    EXPECT_THAT(no_init.error().message, HasSubstr("give it the one they had with `init`"));
    const auto narrower = world.extend(R"("space": {"x": {"float": [0, 0.5]}})");
    ASSERT_FALSE(narrower.has_value());
    EXPECT_THAT(narrower.error().message, HasSubstr("trial 0 does not fit"));
    const auto other_metric = world.extend(R"("metric": {"name": "acc"})");
    ASSERT_FALSE(other_metric.has_value());
    EXPECT_THAT(other_metric.error().message, HasSubstr("metric is 'acc'"));
    EXPECT_EQ(world.journal(), journal) << "a refusal changes nothing";
}

/// Trial 0 is complete, 1 runs, 2 waits, and all have values of x and o.
TEST(Extend, RefusesToLoseOrRewriteWhatTrialsRanWith) {
    const std::string o = R"("o": {"choice": ["a", "b"]})";
    World world;
    ASSERT_TRUE(world.create(R"("space": {"x": {"float": [0, 1]}, "k": {"const": 1}, )" + o + "}")
                    .has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": 0.25, "o": "a"})").has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": 0.5, "o": "b"})").has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    ASSERT_TRUE(world.tell(0, 1).has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": 0.75, "o": "a"})").has_value());
    const std::string journal = world.journal();
    const auto refusal = [&](const std::string& space) {
        const auto refused = world.extend(R"("command": ["run"], "space": {)" + space + "}");
        EXPECT_FALSE(refused.has_value()) << space;
        if (refused) return std::string();
        EXPECT_EQ(refused.error().code, Code::kResourceConflict);
        return refused.error().message;
    };
    const std::string k = R"("k": {"const": 1}, )";
    EXPECT_THAT(refusal(k + o), HasSubstr("trial 0 does not fit the new space: space.x: the trial "
                                          "had 0.25, and the parameter is gone"));
    EXPECT_THAT(refusal(k + R"("x": {"float": [0, 1], "when": {"o": "a"}}, )" + o),
                HasSubstr("trial 1 does not fit the new space: space.x: the trial had 0.5, and its "
                          "conditions switch it off"))
        << "it runs";
    EXPECT_THAT(refusal(k + R"("x": {"float": [0, 1], "when": {"o": "b"}, "init": 0.5}, )" + o),
                HasSubstr("trial 0 does not fit"));
    EXPECT_THAT(refusal(R"("x": {"float": [0, 1]}, )" + o),
                HasSubstr("space.k: the trial had 1, and the parameter is gone"))
        << "a constant could come back as another one";
    EXPECT_THAT(refusal(R"("k": {"const": 2}, "x": {"float": [0, 1]}, )" + o),
                HasSubstr("space.k: a trial had 1"));
    EXPECT_EQ(world.journal(), journal) << "a refusal changes nothing";
    ASSERT_TRUE(world.tell(1, 1).has_value());
    EXPECT_THAT(refusal(k + o), HasSubstr("space.x")) << "and one that has run";

    ASSERT_TRUE(world
                    .extend(R"("command": ["run"], "space": {"k": {"ordinal": [0, 1]},
                               "x": {"float": [0, 2], "when": {"o": ["a", "b"]}},
                               "o": {"choice": ["c", "b", "a"]}})")
                    .has_value());
    ASSERT_TRUE(world.studies()
                    .read("s",
                          [](const Study& study) {
                              const Space& space = study.config().space;
                              EXPECT_EQ(to_text(space.to_json(study.trials().find(0)->point)),
                                        R"({"k":1,"o":"a","x":0.25})");
                              EXPECT_EQ(to_text(space.to_json(study.trials().find(2)->point)),
                                        R"({"k":1,"o":"a","x":0.75})");
                          })
                    .has_value());
}

// --- warm start ----------------------------------------------------------------------------------

StudyConfig second(const std::string& fields) {
    StudyConfig config = World::config(fields);
    config.study = "second";
    return config;
}

Result<Studies::Created> create(World& world, StudyConfig config) {
    Answer<Studies::Created> answer;
    world.studies().create(std::move(config), answer.done());
    return answer.get();
}

std::vector<std::string> queued_params(World& world, const std::string& name) {
    std::vector<std::string> params;
    EXPECT_TRUE(world.studies()
                    .read(name,
                          [&](const Study& study) {
                              for (const std::uint64_t number : study.trials().queued())
                                  params.push_back(to_text(study.config().space.to_json(
                                      study.trials().find(number)->point)));
                          })
                    .has_value());
    return params;
}

TEST(WarmStart, TheBestEarlierPointsAreTriedFirst) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    for (const double x : {0.5, 0.25, 0.75, 0.125}) {
        ASSERT_TRUE(world.enqueue("{\"x\": " + std::to_string(x) + "}").has_value());
        ASSERT_TRUE(world.tell(world.ask()->at(0).number, x).has_value());
    }
    ASSERT_TRUE(create(world, second(R"("warm_start": {"from": "s", "top": 2})")).has_value());
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(queued_params(world, "second"), ElementsAre(R"({"x":0.125})", R"({"x":0.25})"));
        world.reopen();
    }
    const auto missing = create(world, [] {
        StudyConfig config = second(R"("warm_start": {"from": "nobody"})");
        config.study = "third";
        return config;
    }());
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, Code::kResourceDoesNotExist);
    EXPECT_THAT(missing.error().message, HasSubstr("nobody"));
}

TEST(WarmStart, ReportsWhatDoesNotFitAndLeavesItToTheSampler) {
    World world;
    ASSERT_TRUE(create(world, second(R"("space": {"x": {"float": [0, 0.5]}, "z": {"int": [1, 3]}},
        "warm_start": {"top": 5, "history": 5, "trials": [
            {"params": {"x": 0.9, "old": 1}, "value": 1},
            {"params": {"x": 0.25, "old": 2}, "value": 2}]})"))
                    .has_value());
    ASSERT_TRUE(world.studies()
                    .read("second",
                          [](const Study& study) {
                              EXPECT_THAT(study.config().warm_start->notes,
                                          ElementsAre(HasSubstr("'old' is not in this space"),
                                                      HasSubstr("'x' lies outside"),
                                                      HasSubstr("'z' is new"),
                                                      HasSubstr("no history for the sampler")));
                          })
                    .has_value());
    EXPECT_THAT(queued_params(world, "second"), ElementsAre(HasSubstr("\"x\":0.25")))
        << "a point of which nothing fits is none";
}

TEST(WarmStart, AHistoryMovesTheSamplerAndReplays) {
    World world;
    Json trials = Json::array();
    for (int i = 0; i < 40; ++i) {
        const double x = i / 40.0;
        trials.push_back({{"params", {{"x", x}}}, {"value", (x - 0.8) * (x - 0.8)}});
    }
    const Json warm = {{"top", 0}, {"history", 40}, {"trials", trials}};
    ASSERT_TRUE(
        world.create(R"("sampler": {"type": "tpe", "seed": 5}, "warm_start": )" + to_text(warm))
            .has_value());
    double near = 0;
    for (int i = 0; i < 10; ++i) {
        const auto asked = world.ask();
        const double x = parse_json(asked->at(0).params_json).value()["x"].get<double>();
        near += std::abs(x - 0.8) < 0.25 ? 1 : 0;
        ASSERT_TRUE(world.tell(asked->at(0).number, (x - 0.8) * (x - 0.8)).has_value());
        if (i == 4) world.reopen();
    }
    EXPECT_GE(near, 8) << "uniform draws would give 4.5; it has no start-up trials of its own";
    EXPECT_EQ(replayed(world).differing, 0u);
    EXPECT_EQ(replayed(world).compared, 10u);
}

// --- two at once ---------------------------------------------------------------------------------

TEST(Create, TwoStudiesOfOneNameAtOnceAreOneOrARefusal) {
    for (int round = 0; round < 10; ++round) {
        World world;
        Answer<Studies::Created> one;
        Answer<Studies::Created> same;
        Answer<Studies::Created> other;
        {
            std::thread first([&] { world.studies().create(World::config(""), one.done()); });
            std::thread second([&] { world.studies().create(World::config(""), same.done()); });
            std::thread third([&] {
                world.studies().create(World::config(R"("space": {"y": {"int": [1, 3]}},
                                                        "command": ["run"])"),
                                       other.done());
            });
            first.join();
            second.join();
            third.join();
        }
        const auto a = one.get();
        const auto b = same.get();
        const auto c = other.get();
        const int made = (a && a->is_new) + (b && b->is_new) + (c && c->is_new);
        EXPECT_EQ(made, 1);
        EXPECT_EQ(a.has_value(), b.has_value()) << "the same study";
        EXPECT_NE(a.has_value(), c.has_value()) << "another one: one of them is refused";
        const Error& refusal = c ? a.error() : c.error();
        EXPECT_EQ(refusal.code, Code::kResourceConflict);
        EXPECT_THAT(refusal.message, HasSubstr("space."));
        EXPECT_THAT(*world.store().list_documents("tune.studies"), SizeIs(1));
    }
}

}  // namespace
}  // namespace tune::tuner
