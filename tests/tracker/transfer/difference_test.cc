#include "tracker/transfer/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/tracker/transfer/example_run.h"

namespace tune::tracker {
namespace {

SourceRun example() {
    SourceRun source = example_run();
    DatasetInput input;
    input.dataset = {"ds", "d", "local", "source", {}, {}};
    source.run.dataset_inputs = {input};
    return source;
}

RunDigest points_of(std::vector<Point> points) {
    RunDigest digest;
    digest.add("loss", points);
    return digest;
}

std::string changed(const std::function<void(SourceRun&)>& change) {
    SourceRun other = example();
    change(other);
    return first_difference(example(), {}, other, {});
}

TEST(FirstDifference, NamesTheFieldOfARun) {
    EXPECT_EQ(changed([](SourceRun&) {}), "");
    EXPECT_EQ(changed([](SourceRun& r) { std::swap(r.run.params[0], r.run.params[1]); }), "");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.info.run_name = std::string("name\0", 5); }),
              "run_name");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.info.end_time_ms = 0; }), "end_time");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.params[1].value = "3"; }), "param 'b'");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.params.pop_back(); }), "param 'b'");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.tags.push_back({"u\x1b", ""}); }), "tag 'u?'");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.dataset_inputs[0].dataset.schema = ""; }),
              "dataset 'ds', schema");
    EXPECT_EQ(changed([](SourceRun& r) {
                  r.run.dataset_inputs[0].tags = {{"k", "v"}};
              }),
              "dataset 'ds', tag 'k'");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.dataset_inputs.clear(); }),
              "the number of its dataset inputs");
    EXPECT_EQ(changed([](SourceRun& r) { r.run.model_outputs[0].step = 4; }),
              "its model inputs and outputs");
}

TEST(FirstDifference, NamesTheMetric) {
    const auto of = [](std::vector<Point> a, std::vector<Point> b) {
        return first_difference(example(), points_of(std::move(a)), example(),
                                points_of(std::move(b)));
    };
    EXPECT_EQ(of({{1, 2, 3.0}}, {{1, 2, 3.0}}), "");
    EXPECT_EQ(of({{1, 2, NAN}}, {{1, 2, NAN}}), "");
    EXPECT_EQ(of({{1, 2, 3.0}}, {{1, 2, 4.0}}), "the history of metric 'loss'");
    EXPECT_EQ(of({}, {{1, 2, 4.0}}), "the history of metric 'loss'");
    EXPECT_EQ(of({{1, 2, 4.0}}, {}), "the history of metric 'loss'");
}

TEST(FirstDifference, NamesTheFieldOfARegisteredModel) {
    SourceRegisteredModel model;
    model.model.name = "reg";
    model.versions.resize(2);
    model.versions[0].version = 1;
    model.versions[1].version = 2;
    SourceRegisteredModel other = model;
    EXPECT_EQ(first_difference(model, other), "");
    other.versions[1].tags = {{"k", "v"}};
    EXPECT_EQ(first_difference(model, other), "version 2, tag 'k'");
    other.versions.pop_back();
    EXPECT_EQ(first_difference(model, other), "version 2 is missing on one side");
    other.model.aliases = {{"champion", 1}};
    EXPECT_EQ(first_difference(model, other), "its aliases");
}

TEST(FirstDifference, NamesTheFieldOfAnExperimentAndOfALoggedModel) {
    Experiment experiment;
    Experiment other = experiment;
    EXPECT_EQ(first_difference(experiment, other), "");
    other.name = "x";
    EXPECT_EQ(first_difference(experiment, other), "name");
    SourceModel model;
    SourceModel changed = model;
    changed.model.params = {{"p", "1"}};
    EXPECT_EQ(first_difference(model, changed), "param 'p'");
    EXPECT_EQ(difference_line("logged model m", "param 'p'"),
              "logged model m reads back differently: param 'p'");
    EXPECT_EQ(difference_line("run r", ""), "run r reads back differently");
}

}  // namespace
}  // namespace tune::tracker
