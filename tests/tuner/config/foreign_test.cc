// Spaces of other tuners: documents as those systems' own pages show them, and every way in which
// they do not fit. Those that the packages themselves write are tests/e2e/test_foreign_spaces.py.

#include "tuner/interop/foreign/foreign.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"
#include "tuner/pruner/hyperband_pruner.h"
#include "tuner/pruner/percentile_pruner.h"
#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner::foreign_test {
namespace {

struct Translated {
    StudyConfig study;
    std::string text;
};

Translated translated(const std::string& text) {
    const Result<std::string> made = study_from_foreign(text, std::nullopt);
    EXPECT_TRUE(made) << (made ? "" : made.error().text());
    if (!made) return {};
    StudySource source;
    source.text = *made;
    Result<StudyConfig> read = read_study(source);
    EXPECT_TRUE(read) << *made;
    return {read ? std::move(*read) : StudyConfig(), *made};
}

std::string error_of(const std::string& text, std::optional<ForeignSystem> system = std::nullopt) {
    const Result<std::string> made = study_from_foreign(text, system);
    return made ? "accepted: " + *made : made.error().message;
}

Json space_of(const std::string& text) {
    return translated(text).study.space.to_json();
}

TEST(Wandb, Sweep) {
    const Translated made = translated(R"(
program: train.py
method: bayes
project: my-first-sweep
metric:
  goal: minimize
  name: validation_loss
  target: 0.25
early_terminate:
  type: hyperband
  min_iter: 3
run_cap: 40
parameters:
  batch_size:
    distribution: q_log_uniform_values
    q: 8
    max: 256
    min: 32
  dropout:
    values: [0.15, 0.2, 0.25, 0.3, 0.4]
    probabilities: [1, 2, 3, 2, 1]
  epochs:
    value: 1
  fc_layer_size:
    values: [128, 256, 512]
  learning_rate:
    distribution: log_uniform
    min: -9.21
    max: -2.3
  layers: {min: 1, max: 5}
  momentum: {min: 0.5, max: 0.99}
  weight: {distribution: normal, mu: 1, sigma: 2}
  optimizer:
    parameters:
      name: {values: [adam, sgd]}
      beta: {distribution: q_uniform, min: 0, max: 1, q: 0.1}
)");
    EXPECT_EQ(made.study.metric.name, "validation_loss");
    EXPECT_EQ(made.study.command, (std::vector<std::string>{"python", "train.py", "{args}"}));
    EXPECT_EQ(made.study.sampler.name(), "gp");
    EXPECT_EQ(made.study.pruner.get<AshaOptions>().min, 3);
    EXPECT_EQ(made.study.budget.trials, 40u);
    EXPECT_EQ(made.study.budget.target, std::vector<double>{0.25});
    const Space& space = made.study.space;
    EXPECT_EQ(space.size(), 10u);
    EXPECT_EQ(space[*space.find("layers")].kind, Kind::kInt);
    EXPECT_EQ(space[*space.find("momentum")].kind, Kind::kFloat);
    EXPECT_NEAR(space[*space.find("learning_rate")].low, 1e-4, 1e-6);
    EXPECT_EQ(space[*space.find("dropout")].weights.size(), 5u);
    EXPECT_EQ(space[*space.find("optimizer.beta")].step, 0.1);
    EXPECT_EQ(space[*space.find("weight")].spread, 2);
    EXPECT_NE(made.text.find("# line 4, column 1: not carried over: project"), std::string::npos)
        << made.text;
    EXPECT_NE(made.text.find("batch_size: its step is left out"), std::string::npos) << made.text;
}

TEST(Wandb, Refused) {
    const auto says = [](const std::string& parameter) {
        return error_of("method: random\nparameters:\n  x: " + parameter + "\n");
    };
    EXPECT_EQ(says("{distribution: beta, min: 0, max: 1}"),
              "line 3, column 21: x: distribution 'beta' has no counterpart");
    EXPECT_NE(says("{min: 0}").find("expected value, values, or min and max"), std::string::npos);
    EXPECT_NE(says("{min: a, max: 1}").find("line 3, column 12: x.min: expected a number"),
              std::string::npos);
    EXPECT_NE(says("3").find("expected a map"), std::string::npos);
    EXPECT_NE(says("{min: 3, max: 1}").find("the result is not a study"), std::string::npos);
    EXPECT_NE(
        error_of("method: random\n", ForeignSystem::kWandb).find("expected a map of parameters"),
        std::string::npos);
}

TEST(Nni, SearchSpaceWithNestedChoices) {
    const Json space = space_of(R"({
  "dropout_rate": {"_type": "uniform", "_value": [0.5, 0.9]},
  "conv_size": {"_type": "choice", "_value": [2, 3, 5, 7]},
  "hidden_size": {"_type": "qloguniform", "_value": [124, 1024, 1]},
  "batch_size": {"_type": "quniform", "_value": [16, 64, 16]},
  "learning_rate": {"_type": "loguniform", "_value": [0.0001, 0.1]},
  "n": {"_type": "randint", "_value": [0, 10]},
  "z": {"_type": "normal", "_value": [0, 1]},
  "y": {"_type": "lognormal", "_value": [0, 1]},
  "layer0": {"_type": "choice", "_value": [
    {"_name": "Empty"},
    {"_name": "Conv", "kernel_size": {"_type": "choice", "_value": [1, 2, 3]}},
    {"_name": "Max_pool", "pooling_size": {"_type": "choice", "_value": [2, 3]},
     "inner": {"_type": "choice", "_value": [
        {"_name": "a", "x": {"_type": "uniform", "_value": [0, 1]}},
                                             {"_name": "b"}]}}]}
})");
    EXPECT_EQ(space["n"], (Json{{"int", {0, 9}}}));
    EXPECT_EQ(space["batch_size"], (Json{{"int", {16, 64}}, {"step", 16}}));
    EXPECT_EQ(space["hidden_size"]["log"], true);
    EXPECT_EQ(space["y"]["lognormal"], (Json{1.0, 1.0}));
    EXPECT_EQ(space["layer0"], (Json{{"choice", {"Empty", "Conv", "Max_pool"}}}));
    EXPECT_EQ(space["layer0.kernel_size"]["when"], (Json{{"layer0", "Conv"}}));
    EXPECT_EQ(space["layer0.inner.x"]["when"],
              (Json{{"layer0", "Max_pool"}, {"layer0.inner", "a"}}));
}

/// clip(round(u / q) * q, low, high): no value lies outside the bounds.
TEST(Nni, SteppedValuesStayWithinTheBounds) {
    const auto of = [](const std::string& value) {
        return space_of("x: {_type: quniform, _value: " + value + "}")["x"];
    };
    EXPECT_EQ(of("[8, 128, 32]"), (Json{{"ordinal", {8, 32, 64, 96, 128}}}));
    EXPECT_EQ(of("[2, 10, 5]"), (Json{{"ordinal", {2, 5, 10}}}));
    EXPECT_EQ(of("[1, 11, 2.5]"), (Json{{"ordinal", {1, 2.5, 5, 7.5, 10}}}));
    EXPECT_EQ(of("[0, 11.5, 2.5]"), (Json{{"ordinal", {0, 2.5, 5, 7.5, 10, 11.5}}}));
    EXPECT_EQ(of("[0.05, 0.4, 0.1]"), (Json{{"ordinal", {0.05, 0.1, 0.2, 0.3, 0.4}}}));
    EXPECT_EQ(of("[10, 12, 100]"), (Json{{"ordinal", {10}}}));
    EXPECT_EQ(of("[0, 10, 3]"), (Json{{"int", {0, 9}}, {"step", 3}})) << "nothing is clipped";
    EXPECT_EQ(of("[0.3, 0.9, 0.1]"), (Json{{"float", {0.3, 0.9}}, {"step", 0.1}}));
    const Translated many = translated("x: {_type: quniform, _value: [8, 12799, 32]}");
    EXPECT_EQ(many.study.space.to_json()["x"], (Json{{"int", {32, 12768}}, {"step", 32}}));
    EXPECT_NE(many.text.find("# line 1, column 1: x: only multiples of 32.0; the bounds"),
              std::string::npos)
        << many.text;
    EXPECT_NE(error_of("x: {_type: quniform, _value: [9, 1, 4]}"), "");
}

TEST(Nni, SettingsOfTunerAndAssessor) {
    const Translated made = translated(R"(
searchSpace: {lr: {_type: uniform, _value: [0, 1]}}
tuner:
  name: TPE
  classArgs:
    optimize_mode: minimize
    seed: 12
    tpe_args: {n_startup_jobs: 15, n_ei_candidates: 30, gamma: 0.3, prior_weight: null}
assessor: {name: Medianstop, classArgs: {optimize_mode: minimize, start_step: 7}}
)");
    EXPECT_EQ(made.study.sampler.seed, 12u);
    EXPECT_EQ(made.study.sampler.get<TpeOptions>().startup, 15);
    EXPECT_EQ(made.study.sampler.get<TpeOptions>().candidates, 30);
    EXPECT_EQ(made.study.pruner.name(), "median");
    EXPECT_EQ(made.study.pruner.get<PercentileOptions>().warmup, 7);
    EXPECT_EQ(made.study.pruner.get<PercentileOptions>().startup, 1);
    EXPECT_NE(made.text.find("not carried over: tuner.classArgs.tpe_args.gamma"), std::string::npos)
        << made.text;
    EXPECT_NE(made.text.find("line 9, column 11: median: compares with"), std::string::npos)
        << made.text;
}

TEST(Nni, Experiment) {
    const Translated made = translated(R"(
experimentName: mnist
searchSpace:
  lr: {_type: loguniform, _value: [0.0001, 0.1]}
trialCommand: python3 mnist.py
trialCodeDirectory: .
trialConcurrency: 2
maxTrialNumber: 10
maxExperimentDuration: 1h
tuner:
  name: TPE
  classArgs: {optimize_mode: maximize}
assessor: {name: Medianstop}
trainingService: {platform: local}
)");
    EXPECT_EQ(made.study.study, "mnist");
    EXPECT_EQ(made.study.metric.goal, Goal::kMaximize);
    EXPECT_EQ(made.study.budget.parallel, 2);
    EXPECT_EQ(made.study.budget.time_ms, 3'600'000);
    EXPECT_EQ(made.study.pruner.name(), "median");
    EXPECT_NE(made.text.find("not carried over: trainingService"), std::string::npos);
    EXPECT_NE(error_of("searchSpaceFile: search_space.json\n").find("give that one"),
              std::string::npos);
    EXPECT_NE(error_of("x: {_type: mystery, _value: [0, 1]}").find("'mystery' has no counterpart"),
              std::string::npos);
    EXPECT_NE(error_of("x: {_type: uniform, _value: [0]}").find("a list of 2 numbers"),
              std::string::npos);
}

constexpr const char* kKatib = R"(
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {namespace: kubeflow, name: random}
spec:
  objective:
    type: minimize
    goal: 0.001
    objectiveMetricName: loss
  algorithm: {algorithmName: bayesianoptimization}
  parallelTrialCount: 3
  maxTrialCount: 12
  maxFailedTrialCount: 3
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace: {min: "0.01", max: "0.05", distribution: logUniform}
    - {name: momentum, parameterType: double, feasibleSpace: {min: "0.5", max: "0.9", step: "0.1"}}
    - name: width
      parameterType: double
      feasibleSpace: {min: "0", max: "6", distribution: normal}
    - {name: layers, parameterType: int, feasibleSpace: {min: "1", max: "9", step: "2"}}
    - {name: size, parameterType: discrete, feasibleSpace: {list: ["16", "32", "0.5"]}}
    - {name: opt, parameterType: categorical, feasibleSpace: {list: [sgd, adam]}}
  trialTemplate:
    primaryContainerName: training-container
    trialParameters:
      - {name: learningRate, description: Learning rate, reference: lr}
      - {name: momentum, reference: momentum}
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: training-container
                image: docker.io/kubeflowkatib/pytorch-mnist-cpu:latest
                command:
                  - python3
                  - /opt/mnist.py
                  - "--lr=${trialParameters.learningRate}"
                  - "--momentum=${trialParameters.momentum}"
)";

TEST(Katib, Experiment) {
    const Translated made = translated(kKatib);
    EXPECT_EQ(made.study.study, "random");
    EXPECT_EQ(made.study.command, (std::vector<std::string>{"python3", "/opt/mnist.py", "--lr={lr}",
                                                            "--momentum={momentum}"}));
    EXPECT_EQ(made.study.sampler.name(), "gp");
    EXPECT_EQ(made.study.budget.trials, 12u);
    const Json space = made.study.space.to_json();
    EXPECT_EQ(space["lr"], (Json{{"float", {0.01, 0.05}}, {"log", true}}));
    EXPECT_EQ(space["layers"], (Json{{"int", {1, 9}}, {"step", 2}}));
    EXPECT_EQ(space["width"], (Json{{"float", {0.0, 6.0}}, {"normal", {3.0, 1.0}}}));
    EXPECT_EQ(space["size"], (Json{{"choice", {16, 32, 0.5}}}));
    EXPECT_EQ(made.study.budget.target, std::vector<double>{0.001});
    EXPECT_NE(made.text.find("not carried over: spec.maxFailedTrialCount"), std::string::npos)
        << made.text;
}

Translated katib_with(const std::string& fields) {
    return translated(
        "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nspec:\n"
        "  objective: {type: maximize, goal: \"0.99\", objectiveMetricName: acc,\n"
        "              additionalMetricNames: [loss]}\n"
        "  parameters: [{name: x, parameterType: double,\n"
        "                feasibleSpace: {min: \"0\", max: \"1\"}}]\n" +
        fields);
}

TEST(Katib, SettingsOfTheAlgorithmAndOfEarlyStopping) {
    const Translated stop = katib_with(R"(
  algorithm:
    algorithmName: tpe
    algorithmSettings:
      - {name: random_state, value: "5"}
      - {name: n_EI_candidates, value: "40"}
      - {name: gamma, value: "0.3"}
  earlyStopping:
    algorithmName: medianstop
    algorithmSettings:
      - {name: min_trials_required, value: "1"}
      - {name: start_step, value: "2"}
)");
    EXPECT_EQ(stop.study.metric.goal, Goal::kMaximize);
    EXPECT_EQ(stop.study.budget.target, std::vector<double>{0.99});
    EXPECT_EQ(stop.study.sampler.seed, 5u);
    EXPECT_EQ(stop.study.sampler.get<TpeOptions>().candidates, 40);
    EXPECT_EQ(stop.study.pruner.name(), "median");
    EXPECT_EQ(stop.study.pruner.get<PercentileOptions>().startup, 1);
    EXPECT_EQ(stop.study.pruner.get<PercentileOptions>().warmup, 2);
    for (const char* said :
         {"not carried over: spec.algorithm.algorithmSettings.gamma", "median: compares with",
          "not carried over: spec.objective.additionalMetricNames"})
        EXPECT_NE(stop.text.find(said), std::string::npos) << said << "\n" << stop.text;

    const Translated bare = katib_with("  earlyStopping: {algorithmName: medianstop}\n");
    EXPECT_EQ(bare.study.pruner.get<PercentileOptions>().startup, 3) << "Katib's defaults";
    EXPECT_EQ(bare.study.pruner.get<PercentileOptions>().warmup, 4);

    const Translated band = katib_with(R"(
  algorithm:
    algorithmName: hyperband
    algorithmSettings:
      - {name: resource_name, value: num-epochs}
      - {name: eta, value: "2"}
      - {name: r_l, value: "9"}
)");
    EXPECT_EQ(band.study.sampler.name(), "random");
    EXPECT_EQ(band.study.pruner.name(), "hyperband");
    EXPECT_EQ(band.study.pruner.get<HyperbandOptions>().eta, 2);
    EXPECT_EQ(band.study.pruner.get<HyperbandOptions>().max, 9);
    for (const char* said : {"hyperband: trials are pruned by the steps", "resource_name"})
        EXPECT_NE(band.text.find(said), std::string::npos) << band.text;

    const Translated pbt = katib_with(R"(
  algorithm:
    algorithmName: pbt
    algorithmSettings:
      - {name: n_population, value: "12"}
      - {name: truncation_threshold, value: "0.4"}
      - {name: suggestion_trial_dir, value: /opt}
)");
    EXPECT_EQ(pbt.study.sampler.name(), "pbt");
    EXPECT_EQ(pbt.study.sampler.get<PbtOptions>().population, 12);
    EXPECT_EQ(pbt.study.sampler.get<PbtOptions>().quantile, 0.4);
    EXPECT_EQ(katib_with("  algorithm: {algorithmName: cmaes}\n").study.sampler.name(), "cmaes");
}

TEST(Katib, Refused) {
    const auto with = [](const std::string& parameter) {
        return error_of("apiVersion: kubeflow.org/v1beta1\nspec:\n  parameters:\n    - " +
                        parameter);
    };
    EXPECT_NE(with("{name: x, parameterType: double, feasibleSpace: {min: a, max: \"1\"}}")
                  .find("line 4, column 61: x.min: expected a number"),
              std::string::npos);
    EXPECT_NE(with("{name: x, parameterType: tensor, feasibleSpace: {}}").find("no counterpart"),
              std::string::npos);
    EXPECT_NE(with("{name: x}").find("expected name, parameterType"), std::string::npos);
    EXPECT_NE(error_of("apiVersion: x\n").find("expected a list of parameters"), std::string::npos);
}

TEST(Optuna, DistributionsOfAllReleases) {
    const Json space = space_of(R"({
  "a": {"name": "FloatDistribution",
        "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}},
  "b": {"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 1, "high": 9}},
  "c": {"name": "CategoricalDistribution", "attributes": {"choices": ["x", null, 3, true]}},
  "d": "{\"name\": \"DiscreteUniformDistribution\",\n \"attributes\": {\"low\": 0, \"high\": 1}}",
  "e": {"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 2}},
  "f": {"name": "DiscreteUniformDistribution", "attributes": {"low": 0, "high": 1, "q": 0.5}},
  "g": {"type": "int", "low": 1, "high": 8, "log": true}
})");
    EXPECT_EQ(space["a"], (Json{{"float", {1e-5, 0.1}}, {"log", true}}));
    EXPECT_EQ(space["b"], (Json{{"int", {1, 9}}, {"step", 2}}));
    EXPECT_EQ(space["c"]["choice"][1], nullptr);
    EXPECT_EQ(space["d"], (Json{{"float", {0.0, 1.0}}}));
    EXPECT_EQ(space["f"]["step"], 0.5);
    EXPECT_EQ(space["g"]["log"], true);
    EXPECT_NE(
        error_of(R"({"a": {"name": "Odd", "attributes": {}}})").find("unknown distribution 'Odd'"),
        std::string::npos);
    EXPECT_NE(error_of(R"({"a": {"name": "IntDistribution", "attributes": {"low": 1}}})")
                  .find("'high' is missing"),
              std::string::npos);
    EXPECT_NE(error_of(R"({"a": "{"})", ForeignSystem::kOptuna).find("a: "), std::string::npos);
}

TEST(Hyperopt, NestedChoicesBecomeConditions) {
    const Json space =
        space_of(R"({"hyperopt": 1, "space": {"hp": "choice", "label": "model", "options": [
  {"map": {"type": {"value": "svm"}, "C": {"hp": "lognormal", "label": "C", "args": [0, 1]},
           "kernel": {"hp": "choice", "label": "kernel", "options": [{"value": "linear"},
             {"map": {"k": {"value": "rbf"},
                     "width": {"hp": "loguniform", "label": "width", "args": [-2, 2]}}}]}}},
  {"map": {"type": {"value": "tree"},
           "depth": {"hp": "quniform", "label": "depth", "args": [1, 9, 2]},
           "seed": {"hp": "randint", "label": "seed", "args": [5]},
           "C": {"hp": "lognormal", "label": "C", "args": [0, 1]}}}]}})");
    EXPECT_EQ(space["model"], (Json{{"choice", {"svm", "tree"}}}));
    EXPECT_EQ(space["kernel"]["choice"], (Json{"linear", "rbf"}));
    EXPECT_EQ(space["width"]["when"], (Json{{"model", "svm"}, {"kernel", "rbf"}}));
    EXPECT_EQ(space["C"]["when"], (Json{{"model", {"svm", "tree"}}}));
    EXPECT_EQ(space["seed"]["int"], (Json{0, 4}));
    EXPECT_EQ(space["depth"], (Json{{"int", {0, 8}}, {"step", 2}, {"when", {{"model", "tree"}}}}));
    EXPECT_NE(error_of(R"({"hyperopt": 1})").find("hyperopt_space.py"), std::string::npos);
    EXPECT_NE(error_of(R"({"hyperopt": 1, "space": {"hp": "odd", "label": "x", "args": [1, 2]}})")
                  .find("'odd' has no counterpart"),
              std::string::npos);
}

TEST(Foreign, HostileDocumentsAreErrors) {
    for (const char* text :
         {"", "[]", "3", "{", "x: &a {b: *a}", "x: 3",
          "hyperopt: 1\nspace: {map: {map: {list: {}}}}", "apiVersion: 1\nspec: []",
          "method: 1\nparameters: {x: {parameters: {}}}",
          "method: []\nparameters: {x: {values: []}}", "x: {_type: randint, _value: [1, 1]}",
          "x: {attributes: {}, name: IntDistribution}"})
        EXPECT_FALSE(study_from_foreign(text, std::nullopt)) << text;
    std::string deep = "hyperopt: 1\nspace: ";
    for (int i = 0; i < 500; ++i) deep += "{map: {a: ";
    EXPECT_FALSE(study_from_foreign(deep, std::nullopt));
    for (const ForeignSystem system :
         {ForeignSystem::kOptuna, ForeignSystem::kWandb, ForeignSystem::kNni, ForeignSystem::kKatib,
          ForeignSystem::kHyperopt})
        for (const char* text :
             {"{}", "a: null", "spec: null", "parameters: null", "space: {hp: choice}"})
            (void)study_from_foreign(text, system);
}

}  // namespace
}  // namespace tune::tuner::foreign_test
