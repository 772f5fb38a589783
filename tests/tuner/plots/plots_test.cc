#include "tuner/plots/plots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "tuner/chart/scene.h"
#include "tuner/chart/svg.h"
#include "tuner/chart/terminal.h"

namespace tune::tuner {
namespace {

Json study_json(const char* more = "{}") {
    Json study = {
        {"name", "s"},
        {"metric", {{"name", "loss"}, {"goal", "min"}, {"take", "best"}}},
        {"space", parse_json(R"({"lr": {"float": [1e-5, 0.1], "log": true}, "n": {"int": [1, 8]},
                                 "opt": {"choice": ["sgd", "adam"]},
                                 "mom": {"float": [0, 1], "when": {"opt": "sgd"}}})")
                      .value()}};
    study.update(parse_json(more).value());
    return study;
}

Json trial_json(int number, const char* state, const Json& value) {
    Json params = {{"lr", 1e-5 * (1 + number % 900)},
                   {"n", 1 + number % 8},
                   {"opt", number % 2 == 0 ? "sgd" : "adam"}};
    if (number % 2 == 0) params["mom"] = 0.5;
    return {{"number", number},
            {"state", state},
            {"params", params},
            {"value", value},
            {"start_ms", 1'000'000 + number * 1000},
            {"end_ms", 1'000'900 + number * 1000},
            {"worker", "w"},
            {"intermediate", Json::array({{0, 3.0}, {1, 2.0}, {2, "NaN"}})}};
}

StudyData data_of(const Json& study, const Json& trials) {
    Result<StudyData> data = study_data(study, trials);
    EXPECT_TRUE(data) << data.error().message;
    return std::move(data).value();
}

Json many(int count) {
    Json trials = Json::array();
    for (int i = 0; i < count; ++i) trials.push_back(trial_json(i, "complete", 0.1 + i % 17));
    return trials;
}

TEST(Plots, EveryKindDrawsEveryStudy) {
    Json odd = Json::array({trial_json(0, "complete", "NaN"), trial_json(1, "failed", nullptr),
                            trial_json(2, "running", nullptr), trial_json(3, "queued", nullptr),
                            trial_json(4, "pruned", nullptr), trial_json(5, "complete", "Infinity"),
                            trial_json(6, "complete", -3), trial_json(7, "complete", 1e300)});
    Json constant = Json::array();
    for (int i = 0; i < 20; ++i) constant.push_back(trial_json(i, "complete", 2));
    for (const Json& trials : {Json::array(), many(1), odd, constant, many(300)}) {
        const StudyData data = data_of(study_json(), trials);
        for (const PlotWord& word : plot_words()) {
            const Result<chart::Figure> figure = make_plot(word.kind, data);
            ASSERT_TRUE(figure) << word.name << figure.error().message;
            const std::string svg = chart::to_svg(chart::layout(*figure));
            EXPECT_EQ(svg.find("nan"), std::string::npos) << word.name;
            EXPECT_FALSE(chart::to_terminal(*figure, {}).empty());
            EXPECT_FALSE(to_text(chart::to_json(*figure)).empty());
        }
    }
}

TEST(Plots, TenThousandTrialsStaySmall) {
    const StudyData data = data_of(study_json(), many(10'000));
    for (const PlotWord& word : plot_words()) {
        if (word.kind == PlotKind::kIntermediate) continue;
        const std::string svg = chart::to_svg(chart::layout(make_plot(word.kind, data).value()));
        EXPECT_LT(svg.size(), 4'000'000u) << word.name;
    }
}

TEST(Plots, HistoryFollowsTheGoal) {
    Json trials = Json::array();
    const double values[] = {3, 5, 2, 4};
    for (int i = 0; i < 4; ++i) trials.push_back(trial_json(i, "complete", values[i]));
    const auto best_of = [&](const char* more) {
        const chart::Figure figure =
            make_plot(PlotKind::kHistory, data_of(study_json(more), trials)).value();
        return figure.panels[0].layers[1].y;
    };
    EXPECT_EQ(best_of("{}"), (std::vector<double>{3, 2, 2}));
    EXPECT_EQ(best_of(R"({"metric": {"name": "loss", "goal": "max"}})"),
              (std::vector<double>{3, 5, 5}));
}

TEST(Plots, LogParametersHaveLogAxesAndChoicesTheirNames) {
    const chart::Figure figure =
        make_plot(PlotKind::kSlice, data_of(study_json(), many(30)), {.params = {"lr", "opt"}})
            .value();
    ASSERT_EQ(figure.panels.size(), 2u);
    EXPECT_EQ(figure.panels[0].x.kind, chart::ScaleKind::kLog);
    EXPECT_EQ(figure.panels[1].x.categories, (std::vector<std::string>{"sgd", "adam"}));
}

TEST(Plots, SayWhyTheyAreEmpty) {
    const auto note_of = [](const Json& trials) {
        return make_plot(PlotKind::kHistory, data_of(study_json(), trials)).value().note;
    };
    EXPECT_EQ(note_of(Json::array({trial_json(0, "failed", nullptr)})),
              "no trial has completed (1 trial)");
    EXPECT_EQ(note_of(Json::array({trial_json(0, "complete", "Infinity")})),
              "the complete trial has no finite value");
}

TEST(Plots, CurvesOfOneValueAreDots) {
    Json trials = many(3);
    for (Json& trial : trials) trial["intermediate"] = Json::array({{0, trial["value"]}});
    const chart::Scene scene =
        chart::layout(make_plot(PlotKind::kIntermediate, data_of(study_json(), trials)).value());
    const auto dots = std::count_if(
        scene.shapes.begin(), scene.shapes.end(),
        [](const auto& shape) { return std::holds_alternative<chart::DotShape>(shape); });
    EXPECT_EQ(dots, 3);
}

TEST(Plots, TheTimelineSaysHowTrialsEnded) {
    Json trials = Json::array({trial_json(0, "failed", nullptr)});
    trials[0]["worker"] = "";
    const chart::Figure figure =
        make_plot(PlotKind::kTimeline, data_of(study_json(), trials)).value();
    EXPECT_EQ(figure.panels[0].layers[0].labels[0], "#0: failed, 0.9 s");
}

TEST(Plots, EdfIsTheShareAtLeastAsGood) {
    Json trials = Json::array();
    for (int i = 0; i < 4; ++i) trials.push_back(trial_json(i, "complete", i));
    const chart::Layer line =
        make_plot(PlotKind::kEdf, data_of(study_json(), trials)).value().panels[0].layers[0];
    EXPECT_EQ(line.x, (std::vector<double>{0, 1, 2, 3, 3}));
    EXPECT_EQ(line.y, (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
}

TEST(Plots, RefusesWhatTheStudyDoesNotHave) {
    const StudyData data = data_of(study_json(), many(5));
    EXPECT_NE(make_plot(PlotKind::kSlice, data, {.params = {"x"}}).error().message.find("lr, mom"),
              std::string::npos);
    EXPECT_FALSE(make_plot(PlotKind::kHistory, data, {.metric = "acc"}));
    EXPECT_FALSE(make_plot(PlotKind::kContour, data, {.params = {"lr"}}));
    Json small = study_json();
    small["space"] = parse_json(R"({"x": {"float": [0, 1]}})").value();
    EXPECT_FALSE(make_plot(PlotKind::kRank, data_of(small, Json::array())));
}

Json objectives(std::initializer_list<double> values, int number) {
    Json trial = trial_json(number, "complete", *values.begin());
    trial["values"] = values;
    return trial;
}

TEST(Pareto, FrontOfTwoAndThreeObjectives) {
    const Json trials =
        Json::array({objectives({1, 5}, 0), objectives({2, 6}, 1), objectives({2, 2}, 2),
                     objectives({3, 9}, 3), objectives({1, 5}, 4)});
    const StudyData two = data_of(
        study_json(
            R"({"metrics": [{"name": "loss", "goal": "min"}, {"name": "acc", "goal": "max"}]})"),
        trials);
    EXPECT_EQ(pareto_front(two, two.complete(0)),
              (std::vector<bool>{true, true, false, true, true}));
    const chart::Figure figure = make_plot(PlotKind::kPareto, two).value();
    EXPECT_EQ(figure.panels.size(), 1u);
    EXPECT_NE(figure.note.find("4 trials"), std::string::npos) << figure.note;
    const StudyData three = data_of(
        study_json(R"({"metrics": [{"name": "a", "goal": "min"}, {"name": "b", "goal": "min"},
                                   {"name": "c", "goal": "min"}]})"),
        Json::array(
            {objectives({1, 2, 3}, 0), objectives({1, 2, 4}, 1), objectives({0, 9, 9}, 2)}));
    EXPECT_EQ(pareto_front(three, three.complete(0)), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(make_plot(PlotKind::kPareto, three).value().panels.size(), 3u);
}

TEST(Pareto, TheStaircaseBeginsAtTheBestOfTheFirstObjective) {
    const Json trials = Json::array({objectives({1, 5}, 0), objectives({2, 6}, 1)});
    const auto xs_of = [&](const char* metrics) {
        const StudyData data = data_of(study_json(metrics), trials);
        return make_plot(PlotKind::kPareto, data).value().panels[0].layers[0].x;
    };
    EXPECT_EQ(xs_of(R"({"metrics": [{"name": "a", "goal": "min"}, {"name": "b", "goal": "max"}]})"),
              (std::vector<double>{1, 2}));
    EXPECT_EQ(xs_of(R"({"metrics": [{"name": "a", "goal": "max"}, {"name": "b", "goal": "min"}]})"),
              (std::vector<double>{2, 1}));
}

TEST(Pareto, TrialsBeyondTheirBoundsDoNotCount) {
    Json good = objectives({2, 2}, 0);
    good["violation"] = 0;
    Json better = objectives({1, 1}, 1);
    better["violation"] = 0.5;
    const StudyData data = data_of(
        study_json(R"({"metrics": [{"name": "a", "goal": "min"}, {"name": "b", "goal": "min"}]})"),
        Json::array({good, better}));
    EXPECT_EQ(pareto_front(data, data.complete(0)), (std::vector<bool>{true, false}));
    const auto beyond = data.complete(0).back();
    EXPECT_EQ(pareto_front(data, {beyond}), std::vector<bool>{false}) << "as the API has it";
}

}  // namespace
}  // namespace tune::tuner
