#include "worker/train/config/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tune::train {
namespace {

std::string error_of(const std::string& name, const std::string& value) {
    TrainConfig config;
    const auto set = set_parameter(config, name, value);
    return set ? "no error" : set.error().message;
}

TEST(TrainConfig, SetsEveryParameterToWhatItGives) {
    const TrainConfig defaults;
    for (const Parameter& parameter : parameters()) {
        TrainConfig config;
        const std::string text = parameter.get(defaults);
        if (text.empty()) continue;
        ASSERT_TRUE(parameter.set(config, text)) << parameter.name << " " << text;
        EXPECT_EQ(parameter.get(config), text) << parameter.name;
        EXPECT_FALSE(parameter.help.empty() && parameter.type.empty()) << parameter.name;
    }
}

TEST(TrainConfig, TakesUnderscoresHyphensAndAliases) {
    TrainConfig config;
    for (const char* name : {"batch-size", "batch_size", "batch"}) {
        config.batch_size = 0;
        ASSERT_TRUE(set_parameter(config, name, "64")) << name;
        EXPECT_EQ(config.batch_size, 64);
    }
    ASSERT_TRUE(set_parameter(config, "learning_rate", "1e-2"));
    EXPECT_EQ(config.lr, 0.01);
    ASSERT_TRUE(set_parameter(config, "optimizer", "sgd"));
    EXPECT_EQ(config.optimizer, OptimizerKind::kSgd);
    ASSERT_TRUE(set_parameter(config, "nesterov", "true"));
    EXPECT_TRUE(config.nesterov);
    ASSERT_TRUE(set_parameter(config, "patience", "0"));
    EXPECT_EQ(config.patience, 0);
}

TEST(TrainConfig, NamesTheNearestKnownParameter) {
    const std::string message = error_of("learning_rte", "1");
    EXPECT_TRUE(message.starts_with("there is no parameter 'learning-rte'")) << message;
    EXPECT_NE(error_of("widht", "1").find("did you mean 'width'?"), std::string::npos);
    const std::string unknown = error_of("foo", "1");
    EXPECT_EQ(unknown.find("did you mean"), std::string::npos);
    EXPECT_NE(unknown.find("Known parameters: data, data-cache,"), std::string::npos);
    EXPECT_NE(unknown.find(", lr, "), std::string::npos);
}

TEST(TrainConfig, RefusesValuesOutOfRange) {
    EXPECT_EQ(error_of("lr", "0"), "lr: '0' is not a number above 0");
    EXPECT_EQ(error_of("lr", "nan"), "lr: 'nan' is not a number above 0");
    EXPECT_EQ(error_of("lr", "inf"), "lr: 'inf' is not a number above 0");
    EXPECT_EQ(error_of("lr", "1e-3x"), "lr: '1e-3x' is not a number above 0");
    EXPECT_EQ(error_of("lr", ""), "lr: '' is not a number above 0");
    EXPECT_EQ(error_of("dropout", "1"), "dropout: '1' is not a number from 0 below 1");
    EXPECT_EQ(error_of("dropout", "-0.1"), "dropout: '-0.1' is not a number from 0 below 1");
    EXPECT_EQ(error_of("width", "0"), "width: '0' is not an integer from 1 to 1000000");
    EXPECT_EQ(error_of("width", "1.5"), "width: '1.5' is not an integer from 1 to 1000000");
    EXPECT_EQ(error_of("width", "99999999999999999999"),
              "width: '99999999999999999999' is not an integer from 1 to 1000000");
    EXPECT_EQ(error_of("optimizer", "adam"), "optimizer: 'adam' is not one of adamw|sgd");
    EXPECT_EQ(error_of("stopping-threshold", "inf"),
              "stopping-threshold: 'inf' is not a finite number");
    EXPECT_EQ(error_of("nesterov", "yes"), "nesterov: 'yes' is not true or false");
}

TEST(TrainConfig, ReadsYaml) {
    TrainConfig config;
    const auto set = set_from_yaml(config,
                                   "# comment\n"
                                   "data: /data/digits\n"
                                   "batch_size: 64\n"
                                   "lr: 1e-2\n"
                                   "shape: [8, 8]\n"
                                   "nesterov: true\n",
                                   "run.yaml");
    ASSERT_TRUE(set) << set.error().text();
    EXPECT_EQ(config.data, "/data/digits");
    EXPECT_EQ(config.batch_size, 64);
    EXPECT_EQ(config.lr, 0.01);
    EXPECT_EQ(config.shape, "8,8");
    EXPECT_TRUE(config.nesterov);
    EXPECT_TRUE(set_from_yaml(config, "", "empty.yaml"));
}

TEST(TrainConfig, SaysWhereYamlIsWrong) {
    const auto error = [](const std::string& text) {
        TrainConfig config;
        const auto set = set_from_yaml(config, text, "run.yaml");
        return set ? std::string("no error") : set.error().text();
    };
    EXPECT_EQ(error("lr: 0.1\nwidth: zero\n"),
              "run.yaml:2:1: width: 'zero' is not an integer from 1 to 1000000");
    EXPECT_TRUE(error("lr: 0.1\nwidht: 3\n").starts_with("run.yaml:2:1: there is no parameter"));
    EXPECT_EQ(error("- lr\n"), "run.yaml:1:1: expected lines of the form `parameter: value`");
    EXPECT_EQ(error("lr: {a: 1}\n"), "run.yaml:1:5: lr: expected a value or a list of values");
    EXPECT_TRUE(error("lr: [0.1\nwidth: 3").starts_with("run.yaml:")) << error("lr: [0.1");
}

TEST(TrainConfig, ChecksWhatNoSingleFieldCanTell) {
    TrainConfig good;
    good.data = "digits";
    EXPECT_TRUE(validate(good));
    TrainConfig config = good;
    config.data.clear();
    EXPECT_TRUE(validate(config).error().message.starts_with("no data: give --data DIR"));
    config = good;
    config.val_split = "train";
    EXPECT_FALSE(validate(config));
    config = good;
    config.warmup_steps = 1;
    config.warmup_epochs = 1;
    EXPECT_EQ(validate(config).error().message, "give warmup-steps or warmup-epochs, not both");
    config = good;
    config.early_stopping = "val_f1";
    EXPECT_FALSE(validate(config));
    config = good;
    config.shape = "8;8";
    EXPECT_FALSE(validate(config));
}

TEST(TrainConfig, EarlyStoppingIsOnOnceARuleIsGiven) {
    TrainConfig config;
    EXPECT_FALSE(early_stopping_rule(config)->has_value());
    config.patience = 5;
    auto rule = **early_stopping_rule(config);
    EXPECT_EQ(rule.metric, "val_loss");
    EXPECT_EQ(rule.patience, 5);
    config = {};
    config.early_stopping = "val_accuracy:max";
    config.min_delta = 0.5;
    config.stopping_threshold = 0.99;
    rule = **early_stopping_rule(config);
    EXPECT_EQ(rule.mode, Mode::kMax);
    EXPECT_EQ(rule.patience, 3);
    EXPECT_EQ(rule.min_delta, 0.5);
    EXPECT_EQ(rule.stopping_threshold, 0.99);
}

TEST(TrainConfig, KnowsACheckpointOfAnotherRun) {
    TrainConfig config;
    const Json record = result_deciding(config);
    EXPECT_TRUE(check_same_training(config, record));
    config.epochs = 99;  // a run may be made longer
    config.data = "moved";
    config.threads = 2;
    EXPECT_TRUE(check_same_training(config, record));
    config.lr = 0.5;
    config.width = 7;
    const auto check = check_same_training(config, record);
    ASSERT_FALSE(check);
    EXPECT_EQ(check.error().message,
              "the checkpoint is of another training run: width was '128' and is '7', lr was "
              "'0.001' and is '0.5'; give another --checkpoint-dir, or remove the old checkpoint");
}

TEST(TrainConfig, ReadsShapesAndLists) {
    using Shape = std::vector<std::int64_t>;
    EXPECT_EQ(*parse_shape("8,8"), (Shape{8, 8}));
    EXPECT_EQ(*parse_shape("28x28x3"), (Shape{28, 28, 3}));
    EXPECT_EQ(*parse_shape(""), Shape{});
    for (const char* bad : {",", "8,", "0,8", "-1", "8;8", "9999999", "a", "1,1,1,1,1,1,1,1,1"})
        EXPECT_FALSE(parse_shape(bad)) << bad;
    EXPECT_EQ(split_list(" a, b c ,,d"), (std::vector<std::string>{"a", "b c", "d"}));
}

}  // namespace
}  // namespace tune::train
