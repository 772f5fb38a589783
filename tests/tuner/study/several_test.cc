// Studies with several objectives and with constraints, through a real store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTwo =
    R"({"study": "s",
    "metric": [{"name": "loss"}, {"name": "acc", "goal": "max"}], "space": {"x": {"float": [0, 1]}},
    "sampler": {"type": "random", "seed": 1}, "command": ["run", "{x}"]})";
constexpr const char* kBounded =
    R"({"study": "s", "metric": "loss:min",
    "constraints": [{"name": "ms", "max": 20}], "space": {"x": {"float": [0, 1]}},
    "sampler": {"type": "random", "seed": 1}, "command": ["run", "{x}"]})";

class SeveralTest : public ::testing::Test {
protected:
    Result<Studies::Created> create(const std::string& json) {
        Result<StudyConfig> config = study_config_from_json(parse_json(json).value());
        if (!config) return config.error();
        Answer<Studies::Created> answer;
        world_.studies().create(std::move(config).value(), answer.done());
        return answer.get();
    }
    template <class Read>
    auto look(Read read) {
        decltype(read(std::declval<const Study&>())) seen{};
        EXPECT_TRUE(world_.studies()
                        .read("s", [&](const Study& study) { seen = read(study); })
                        .has_value());
        return seen;
    }
    std::vector<std::uint64_t> best() {
        return look([](const Study& study) {
            std::vector<std::uint64_t> numbers;
            for (const Trial* trial : study.front().trials()) numbers.push_back(trial->number);
            return numbers;
        });
    }
    std::vector<double> more_values(std::uint64_t number) {
        return look([=](const Study& study) { return study.trials().find(number)->more_values; });
    }
    std::vector<double> constraint_values(std::uint64_t number) {
        return look(
            [=](const Study& study) { return study.trials().find(number)->constraint_values; });
    }
    void tell(std::uint64_t number, double value, std::vector<double> more) {
        const auto told = world_.tell(
            {.trial = {"s", number, 0}, .value = value, .more_values = std::move(more)});
        ASSERT_TRUE(told.has_value()) << told.error().text();
    }

    World world_;
};

TEST_F(SeveralTest, TheFrontIsWhatNoOtherTrialDominates) {
    ASSERT_TRUE(create(kTwo).has_value());
    ASSERT_TRUE(world_.ask(6).has_value());
    EXPECT_THAT(best(), IsEmpty());
    tell(0, 2, {0.5});
    tell(1, 1, {0.4});
    EXPECT_THAT(best(), ElementsAre(0, 1)) << "acc is maximised";
    tell(2, 3, {0.3});
    EXPECT_THAT(best(), ElementsAre(0, 1));
    tell(3, 2, {0.5});
    EXPECT_THAT(best(), ElementsAre(0, 1, 3)) << "an equal one is as good";
    tell(4, 1, {0.6});
    EXPECT_THAT(best(), ElementsAre(4));
    tell(5, -INFINITY, {0.1});
    EXPECT_THAT(best(), ElementsAre(4, 5));
    world_.reopen();
    EXPECT_THAT(best(), ElementsAre(4, 5));
    EXPECT_THAT(more_values(4), ElementsAre(0.6));
    EXPECT_EQ(look([](const Study& study) { return study.front().best() == nullptr; }), true);
}

TEST_F(SeveralTest, ValuesComeFromLoggedMetrics) {
    ASSERT_TRUE(create(kTwo).has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const Lease lease = world_.lease("a")->leases.at(0);
    world_.log(lease.run_id, "loss", 1, 0.5);
    world_.log(lease.run_id, "acc", 1, 0.9);
    world_.log(lease.run_id, "acc", 2, 0.8);
    world_.log(lease.run_id, "loss", 2, 0.4);
    world_.reopen();
    ASSERT_TRUE(world_.register_agent("a", {token(lease)}).has_value());
    ASSERT_TRUE(world_.finish("a", token(lease), {.outcome = Outcome::kDone}).has_value());
    EXPECT_EQ(world_.trial(0).value, 0.4);
    EXPECT_THAT(more_values(0), ElementsAre(0.9)) << "the best of each, also before the restart";
}

TEST_F(SeveralTest, AMissingOrNaNMetricFailsTheTrialByName) {
    ASSERT_TRUE(create(kTwo).has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const Lease first = world_.lease("a")->leases.at(0);
    world_.log(first.run_id, "loss", 1, 0.5);
    ASSERT_TRUE(world_.finish("a", token(first), {.outcome = Outcome::kDone}).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kFailed);
    EXPECT_THAT(world_.trial(0).reason, HasSubstr("metric 'acc' never arrived"));
    const Lease second = world_.lease("a")->leases.at(0);
    world_.log(second.run_id, "loss", 1, 0.5);
    world_.log(second.run_id, "acc", 1, NAN);
    ASSERT_TRUE(world_.finish("a", token(second), {.outcome = Outcome::kDone}).has_value());
    EXPECT_EQ(world_.trial(1).reason, "metric 'acc' is NaN");
    EXPECT_THAT(best(), IsEmpty());
}

TEST_F(SeveralTest, ATellNeedsOneValueAnObjective) {
    ASSERT_TRUE(create(kTwo).has_value());
    ASSERT_TRUE(world_.ask(2).has_value());
    const auto one = world_.tell(0, 0.5);
    ASSERT_FALSE(one.has_value());
    EXPECT_EQ(one.error().code, Code::kInvalidParameterValue);
    EXPECT_THAT(one.error().message, HasSubstr("has 2 objectives; tell one value of each"));
    const auto three = world_.tell({.trial = {"s", 0, 0}, .value = 1, .more_values = {2, 3}});
    EXPECT_THAT(three.error().message, HasSubstr("found 3"));
    const auto none = world_.tell({.trial = {"s", 0, 0}});
    EXPECT_THAT(none.error().message, HasSubstr("no value of metric 'loss' was given"));
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    tell(0, 1, {2});
    tell(0, 1, {2});  // a repeat
    const auto other = world_.tell({.trial = {"s", 0, 0}, .value = 1, .more_values = {3}});
    EXPECT_EQ(other.error().code, Code::kResourceConflict);
    tell(1, 1, {NAN});
    EXPECT_EQ(world_.trial(1).reason, "metric 'acc' is NaN");
}

TEST_F(SeveralTest, AReportSaysWhichMetric) {
    ASSERT_TRUE(create(kTwo).has_value());
    ASSERT_TRUE(world_.ask(1).has_value());
    const auto unnamed = world_.report(0, 1, 1, 0.5);
    ASSERT_FALSE(unnamed.has_value());
    EXPECT_THAT(unnamed.error().message, HasSubstr("measures loss, acc; say in 'metric'"));
    for (const char* metric : {"loss", "acc", "time"}) {
        Answer<std::optional<Action>> answer;
        world_.studies().clients().report(
            {.trial = {"s", 0, 1}, .step = 1, .value = 0.5, .metric = metric}, answer.done());
        EXPECT_EQ(answer.get().has_value(), metric != std::string("time"));
    }
    ASSERT_TRUE(world_.tell({.trial = {"s", 0, 0}}).has_value()) << "what was reported counts";
    EXPECT_THAT(more_values(0), ElementsAre(0.5));
}

TEST_F(SeveralTest, AnInfeasibleTrialIsNeverTheBest) {
    ASSERT_TRUE(create(kBounded).has_value());
    ASSERT_TRUE(world_.ask(4).has_value());
    const auto tell_bounded = [this](std::uint64_t number, double value, double ms) {
        const auto told =
            world_.tell({.trial = {"s", number, 0}, .value = value, .constraints = {{"ms", ms}}});
        ASSERT_TRUE(told.has_value()) << told.error().text();
    };
    tell_bounded(0, 1, 21);
    EXPECT_EQ(world_.trial(0).state, TrialState::kComplete);
    EXPECT_THAT(best(), IsEmpty());
    tell_bounded(1, 3, 20);
    tell_bounded(2, 2, 30);
    EXPECT_THAT(best(), ElementsAre(1));
    EXPECT_THAT(constraint_values(2), ElementsAre(30));
    const auto unknown =
        world_.tell({.trial = {"s", 3, 0}, .value = 1, .constraints = {{"speed", 1}}});
    EXPECT_THAT(unknown.error().message, HasSubstr("has no constraint on 'speed'"));
    const auto missing = world_.tell(3, 0.5);
    EXPECT_THAT(missing.error().message, HasSubstr("no value of metric 'ms' was given"));
    world_.reopen();
    EXPECT_THAT(best(), ElementsAre(1));
    EXPECT_THAT(constraint_values(2), ElementsAre(30));
}

TEST_F(SeveralTest, OtherMetricsOrBoundsAreAnotherStudy) {
    ASSERT_TRUE(create(kBounded).has_value());
    std::string text = kBounded;
    text.replace(text.find("20"), 2, "25");
    const auto other = create(text);
    ASSERT_FALSE(other.has_value());
    EXPECT_THAT(other.error().message, HasSubstr("constraints are [{\"max\":25"));
    const auto several = create(kTwo);
    EXPECT_THAT(several.error().message, HasSubstr("there are 2 objectives, were 1"));
    EXPECT_THAT(several.error().message,
                HasSubstr("replace it, as none of its trials is complete"));
    EXPECT_TRUE(create(kBounded).has_value());
}

TEST_F(SeveralTest, AJournalThatLacksValuesIsSetAsideAndTheOthersContinue) {
    ASSERT_TRUE(create(kTwo).has_value());
    std::string other = kTwo;
    ASSERT_TRUE(create(other.replace(other.find("\"s\""), 3, "\"t\"")).has_value());
    ASSERT_TRUE(world_.ask(1).has_value());
    tell(0, 1, {2});
    const auto documents = world_.store().list_documents("tune.trials");
    Json document = parse_json(documents->at(0).json_text).value();
    document.erase("more_values");
    ASSERT_TRUE(
        world_.store()
            .execute(tracker::PutDocument{"tune.trials", documents->at(0).key, to_text(document)})
            .has_value());
    const auto damaged = world_.store().list_documents("tune.studies");
    world_.reopen();
    const auto expect_set_aside = [&](const auto& answer) {
        ASSERT_FALSE(answer.has_value());
        EXPECT_EQ(answer.error().code, Code::kDataLoss);
        EXPECT_THAT(answer.error().message,
                    HasSubstr("study 's' cannot be read and is left as it is"));
        EXPECT_THAT(answer.error().message, HasSubstr(documents->at(0).key));
    };
    expect_set_aside(world_.ask(1));
    expect_set_aside(create(kTwo));
    EXPECT_TRUE(world_.studies().read("t", [](const Study&) {}).has_value());
    const auto after = world_.store().list_documents("tune.studies");
    ASSERT_EQ(after->size(), damaged->size());
    for (std::size_t i = 0; i < after->size(); ++i)
        EXPECT_EQ(after->at(i).json_text, damaged->at(i).json_text);
}

TEST_F(SeveralTest, AWarmStartTakesTheFrontFirst) {
    ASSERT_TRUE(create(kTwo).has_value());
    ASSERT_EQ(world_.ask(4)->size(), 4u);
    tell(0, 0.5, {0.5});
    tell(1, 0.1, {0.4});
    tell(2, 0.6, {0.4});
    tell(3, 0.7, {0.9});
    const auto point = [&](const char* study, std::uint64_t number) {
        double x = -1;
        EXPECT_TRUE(
            world_.studies()
                .read(study, [&](const Study& seen) { x = seen.trials().find(number)->point[0]; })
                .has_value());
        return x;
    };
    std::string warm = kTwo;
    warm.replace(warm.find("\"s\""), 3, "\"t\"");
    warm.insert(warm.size() - 1, R"(, "warm_start": {"from": "s", "top": 3})");
    const auto made = create(warm);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    EXPECT_EQ(point("t", 0), point("s", 0));
    EXPECT_EQ(point("t", 1), point("s", 1));
    EXPECT_EQ(point("t", 2), point("s", 3)) << "trial 2 is dominated";
    std::string one = kBounded;
    one.replace(one.find("\"s\""), 3, "\"u\"");
    one.insert(one.size() - 1, R"(, "warm_start": {"from": "s"})");
    EXPECT_THAT(create(one).error().text(), HasSubstr("has 2 objectives and this one 1"));
    one.insert(one.size() - 2, R"(, "history": 3)");
    EXPECT_THAT(create(one).error().text(), HasSubstr("leave history out"));
}

}  // namespace
}  // namespace tune::tuner
