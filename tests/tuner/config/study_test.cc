#include "tuner/config/study_config.h"
#include "tuner/pruner/asha_pruner.h"
#include "tuner/sampler/auto_choice.h"
#include "tuner/sampler/gp/gp_options.h"
#include "tuner/sampler/tpe/tpe_options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

const char* const kYaml = R"yaml(version: 1
study: resnet-cifar           # created or resumed by name
command: ["python", "train.py", "--lr={lr}", "--batch={batch}", "{args}"]
metric: {name: val_loss, goal: min, step: epoch, take: mean_last_3}
space:
  opt:      {choice: [sgd, adamw]}
  lr:       {float: [1e-5, 1e-1], log: true, init: 3e-4}
  batch:    {int: [32, 1024], log: true, step: 32}
  depth:    {ordinal: [18, 34, 50, 101]}
  warm:     {float: [0, 0.2], step: 0.01}
  momentum: {float: [0, 0.99], when: {opt: sgd}}
  betas:    {choice: [[0.9, 0.999], [0.9, 0.95]], when: {opt: adamw}}
  short:    1..8:int@4
  seed:     {const: 1}
sampler: {type: tpe, seed: 7}
pruner: {type: asha, min: 1, max: 90, eta: 3}
budget: {trials: 200, time: 12h, parallel: 8, gpus_per_trial: 1, cpus_per_trial: 2}
retry: {max: 2, on: [preempted, oom]}
scrape: [val_loss, {name: acc, pattern: "acc ([0-9.]+)"
}]
grace: 90
timeout: 1h30m
env: {A: 1, B: 0.5, C: on, D: "x y"}
working_dir: /tmp
)yaml";

StudyConfig read(const std::string& text, const std::string& file = "s.yaml") {
    StudySource source;
    source.text = text;
    source.file = file;
    Result<StudyConfig> config = read_study(source);
    EXPECT_TRUE(config) << config.error().text();
    return config ? *config : StudyConfig();
}

TEST(Study, ReadsTheWholeSchema) {
    const StudyConfig c = read(kYaml);
    EXPECT_EQ(c.study, "resnet-cifar");
    EXPECT_EQ(c.command.size(), 5u);
    EXPECT_EQ(c.metric,
              (MetricConfig{"val_loss", Goal::kMinimize, "epoch", Aggregation::kMeanLast, 3}));
    EXPECT_EQ(c.space.size(), 9u);
    EXPECT_EQ(c.space[0].name, "opt");  // the order of the file
    EXPECT_EQ(c.space[7].init, 4.0);
    SamplerConfig sampler = sampler_named("tpe");
    sampler.seed = 7;
    EXPECT_EQ(sampler.get<TpeOptions>(), (TpeOptions{.startup = 10, .candidates = 24}));
    EXPECT_EQ(c.sampler, sampler);
    EXPECT_EQ(c.pruner.name(), "asha");
    EXPECT_EQ(c.pruner.get<AshaOptions>().eta, 3);
    EXPECT_EQ(c.pruner.get<AshaOptions>().max, 90);
    EXPECT_EQ(c.budget, (BudgetConfig{200, 12 * 3'600'000, 8, 1, 2}));
    EXPECT_EQ(c.retry, (RetryConfig{2, {RetryOn::kPreempted, RetryOn::kOom}}));
    EXPECT_EQ(c.scrape, (std::vector<ScrapeConfig>{{"", "val_loss"}, {"acc", "acc ([0-9.]+)"}}));
    EXPECT_EQ(c.grace_ms, 90'000);
    EXPECT_EQ(c.timeout_ms, 5'400'000);
    EXPECT_EQ(c.env, (std::map<std::string, std::string>{
                         {"A", "1"}, {"B", "0.5"}, {"C", "on"}, {"D", "x y"}}));
    EXPECT_EQ(c.working_dir, "/tmp");
    EXPECT_TRUE(check_study(c, true));
}

TEST(Study, JsonRoundTripKeepsEverythingAndTheOrder) {
    const StudyConfig c = read(kYaml);
    const Json written = to_json(c);
    const StudyConfig back = study_config_from_json(written).value();
    EXPECT_TRUE(back == c);
    EXPECT_EQ(to_json(back), written);
    EXPECT_TRUE(read(written.dump(2), "s.json") == c);
    EXPECT_TRUE(study_config_from_json(to_json(StudyConfig{})).value() == StudyConfig{});
}

TEST(Study, EveryPrunerRoundTrips) {
    for (const char* pruner :
         {"none", "{type: median, startup: 3, warmup: 4, interval: 5, min_trials: 6}",
          "{type: percentile, percentile: 12.5}", "asha", "{type: asha, min: auto, rate: 2}",
          "{type: asha, min: 3, bootstrap: 4}"}) {
        const StudyConfig c = read(std::string("pruner: ") + pruner);
        EXPECT_TRUE(study_config_from_json(to_json(c)).value() == c) << pruner;
    }
}

TEST(Study, JsonFilesMayHaveComments) {
    const StudyConfig c =
        read("{ // note\n \"space\": {\"lr\": /* here */ {\"float\": [0, 1]}}}", "s.json");
    EXPECT_EQ(c.space.size(), 1u);
}

TEST(Study, ShortForms) {
    EXPECT_EQ(read("metric: acc:max").metric.goal, Goal::kMaximize);
    EXPECT_EQ(read("sampler: random").sampler.name(), "random");
    EXPECT_EQ(read("pruner: median").pruner.name(), "median");
    EXPECT_EQ(read("pruner: ~").pruner.name(), "none");
    EXPECT_EQ(read("command: python 'my train.py' --x").command,
              (std::vector<std::string>{"python", "my train.py", "--x"}));
    EXPECT_EQ(read("command: [sleep, 1, 0.5]").command,
              (std::vector<std::string>{"sleep", "1", "0.5"}));
    EXPECT_EQ(read("scrape: loss").scrape.size(), 1u);
    EXPECT_TRUE(read("") == StudyConfig{});
    EXPECT_TRUE(read("# nothing\n") == StudyConfig{});
}

std::pair<Warp, std::optional<double>> warp_and_noise(const SamplerConfig& sampler) {
    if (const auto* gp = sampler.get_if<GpOptions>()) return {gp->warp, gp->noise};
    return {sampler.get<AutoOptions>().warp, sampler.get<AutoOptions>().noise};
}

TEST(Study, SettingsOfTheGaussianProcessComeBack) {
    for (const char* type : {"gp", "auto"}) {
        const std::string words = std::string("sampler: {type: ") + type;
        const StudyConfig plain = read(words + ", warp: auto, noise: auto}");
        EXPECT_EQ(warp_and_noise(plain.sampler), std::pair(Warp::kAuto, std::optional<double>()));
        const StudyConfig set = read(words + ", warp: on, noise: 0.25}");
        EXPECT_EQ(warp_and_noise(set.sampler), std::pair(Warp::kOn, std::optional(0.25)));
        for (const StudyConfig& config : {plain, set, read(words + ", warp: off, noise: 0}")})
            EXPECT_TRUE(
                study_config_from_json({{"sampler", to_json(config.sampler)}}).value().sampler ==
                config.sampler);
    }
}

TEST(Study, CheckSaysWhatIsMissing) {
    StudyConfig c;
    EXPECT_EQ(check_study(c, true).error().message,
              "metric: no metric is named; give -m val_loss:min, or metric: {name: val_loss, goal: "
              "min} in the study file");
    c.metric.name = "loss";
    EXPECT_EQ(check_study(c, true).error().message,
              "space: there is nothing to tune; give at least one parameter, such as "
              "lr=1e-5..1e-1:log");
    c.space = read("space: {lr: 0..1}").space;
    EXPECT_EQ(check_study(c, true).error().message,
              "command: there is no command to run; give it after --, such as -- python train.py "
              "{args}");
    EXPECT_TRUE(check_study(c, false));
    c.command = {"x", "{lrr}"};
    EXPECT_NE(check_study(c, true).error().message.find("did you mean 'lr'?"), std::string::npos);
}

TEST(MetricFlag, NameAndGoal) {
    MetricConfig metric;
    metric.step = "epoch";
    EXPECT_TRUE(parse_metric_flag("val/loss:max", metric));
    EXPECT_EQ(metric, (MetricConfig{"val/loss", Goal::kMaximize, "epoch", Aggregation::kBest, 1}));
    EXPECT_TRUE(parse_metric_flag("loss", metric));
    EXPECT_EQ(metric.goal, Goal::kMinimize);
    EXPECT_TRUE(parse_metric_flag("a:b:min", metric));
    EXPECT_EQ(metric.name, "a:b");
    EXPECT_EQ(parse_metric_flag("loss:mni", metric).error().message,
              "expected NAME:min or NAME:max, found 'loss:mni'; did you mean 'min'?");
    EXPECT_FALSE(parse_metric_flag("", metric));
    EXPECT_FALSE(parse_metric_flag(":min", metric));
    EXPECT_FALSE(parse_metric_flag("lo\tss", metric));
}

TEST(Duration, ReadsAndWrites) {
    const std::pair<const char*, std::int64_t> good[] = {
        {"90", 90'000}, {"90s", 90'000},     {"1h30m", 5'400'000},
        {"250ms", 250}, {"2d", 172'800'000}, {"1.5h", 5'400'000},
        {"0", 0},       {"0.0005s", 1}};
    for (const auto& [text, ms] : good) {
        EXPECT_EQ(parse_duration_ms(text).value(), ms) << text;
        EXPECT_EQ(parse_duration_ms(duration_text(ms)).value(), ms) << text;
    }
    for (const char* bad : {"", "x", "1x", "-1s", "1h30", "h", "1 h", "1e3s", "inf", "nan", "9999d",
                            "99999999999999999999s"})
        EXPECT_FALSE(parse_duration_ms(bad)) << bad;
    EXPECT_EQ(duration_text(5'400'000), "1h30m");
    EXPECT_EQ(duration_text(0), "0s");
}

}  // namespace
}  // namespace tune::tuner
