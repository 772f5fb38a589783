#include "worker/train/inputs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/worker/train/data_set.h"

namespace tune::train {
namespace {

using loader::ColumnInfo;
using loader::Dtype;
using loader::Value;

ColumnInfo column(std::string name, std::string encoding, Dtype dtype,
                  std::vector<std::int64_t> shape = {}) {
    ColumnInfo info;
    info.name = std::move(name);
    info.encoding = std::move(encoding);
    info.dtype = dtype;
    info.shape = std::move(shape);
    return info;
}

ColumnInfo text_column(std::string name) {
    ColumnInfo info;
    info.name = std::move(name);
    info.encoding = "str";
    info.fixed = false;
    return info;
}

std::vector<ColumnInfo> digits() {
    return {column("image", "ndarray:uint8:8,8", Dtype::kUint8, {8, 8}),
            column("label", "int", Dtype::kInt64), text_column("writer")};
}

TEST(ChooseInputs, FindsImageAndLabel) {
    const auto inputs = choose_inputs({}, digits());
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_EQ(inputs->label, "label");
    EXPECT_TRUE(inputs->is_classification());
    EXPECT_EQ(inputs->shape, (std::vector<std::int64_t>{8, 8}));
    ASSERT_EQ(inputs->columns.size(), 1u);
    EXPECT_EQ(inputs->columns[0].name, "image");
    EXPECT_EQ(inputs->row_elements(), 64);
    EXPECT_EQ(inputs->column_names(), (std::vector<std::string>{"label", "image"}));
}

TEST(ChooseInputs, PutsScalarColumnsInTheirNaturalOrder) {
    const std::vector<ColumnInfo> columns = {
        column("p10", "uint8", Dtype::kUint8), column("p2", "uint8", Dtype::kUint8),
        column("p9", "uint8", Dtype::kUint8), column("target", "float64", Dtype::kFloat64)};
    const auto inputs = choose_inputs({}, columns);
    ASSERT_TRUE(inputs);
    EXPECT_FALSE(inputs->is_classification()) << "a float label is a value";
    EXPECT_EQ(inputs->outputs(), 1);
    ASSERT_EQ(inputs->columns.size(), 3u);
    EXPECT_EQ(inputs->columns[0].name, "p2");
    EXPECT_EQ(inputs->columns[1].name, "p9");
    EXPECT_EQ(inputs->columns[2].name, "p10");
    EXPECT_EQ(inputs->columns[2].offset, 2);
    EXPECT_EQ(inputs->shape, (std::vector<std::int64_t>{3}));
}

TEST(ChooseInputs, FollowsTheConfiguration) {
    std::vector<ColumnInfo> columns = digits();
    columns.push_back(column("kind", "int", Dtype::kInt64));
    TrainConfig config;
    config.label = "kind";
    config.features = "image";
    config.shape = "4,16";
    config.classes = 7;
    const auto inputs = choose_inputs(config, columns);
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_EQ(inputs->label, "kind");
    EXPECT_EQ(inputs->classes, 7);
    EXPECT_EQ(inputs->columns.size(), 1u);
    EXPECT_EQ(inputs->shape, (std::vector<std::int64_t>{4, 16}));
}

TEST(ChooseInputs, SaysWhatTheDataHave) {
    const auto error = [](TrainConfig config, const std::vector<ColumnInfo>& columns) {
        const auto inputs = choose_inputs(config, columns);
        return inputs ? std::string("no error") : inputs.error().message;
    };
    const std::string have = "the data have: image (ndarray:uint8:8,8), label (int), writer (str)";
    TrainConfig config;
    config.label = "digit";
    EXPECT_EQ(error(config, digits()), "label: there is no column 'digit'; " + have);
    config.label = "writer";
    EXPECT_EQ(error(config, digits()), "label: column 'writer' (str) is not one number a sample");
    config.label = "image";
    EXPECT_EQ(error(config, digits()),
              "label: column 'image' (ndarray:uint8:8,8) is not one number a sample");
    config = {};
    config.features = "writer";
    EXPECT_EQ(error(config, digits()),
              "features: 'writer' is not a numeric column besides the label; " + have);
    config = {};
    config.shape = "8,9";
    EXPECT_EQ(error(config, digits()), "shape: 8,9 has 72 elements, a sample has 64");
    EXPECT_EQ(error({}, {text_column("a")}),
              "no column is called label, target, class or y; give --label NAME. "
              "The data have: a (str)");
    EXPECT_EQ(error({}, {column("y", "int", Dtype::kInt64)}),
              "no column besides the label 'y' is numeric with a fixed shape; "
              "the data have: y (int)");
}

TEST(Inputs, SurvivesJson) {
    Inputs inputs;
    inputs.columns = {{.name = "a", .elements = 2, .offset = 0, .mean = 0.1, .scale = 3.0},
                      {.name = "b", .elements = 1, .offset = 2, .mean = -1e300, .scale = 1e-300}};
    inputs.shape = {3};
    inputs.label = "y";
    inputs.classes = 4;
    const auto back = Inputs::from_json(inputs.to_json());
    ASSERT_TRUE(back);
    EXPECT_EQ(back->to_json(), inputs.to_json());
    EXPECT_EQ(back->columns[1].offset, 2);
    Json json = inputs.to_json();
    json["shape"] = {4};
    EXPECT_FALSE(Inputs::from_json(json));
    EXPECT_FALSE(Inputs::from_json(Json::object()));
    EXPECT_FALSE(Inputs::from_json(Json::array()));
    json["columns"] = 3;
    EXPECT_FALSE(Inputs::from_json(json));
}

/// 300 samples in batches of 7: an image of four bytes, a scalar, a class.
class MeasuredInputs : public testing::Test {
protected:
    MeasuredInputs() {
        std::vector<std::vector<Value>> rows;
        for (std::size_t i = 0; i < 300; ++i) {
            for (std::size_t j = 0; j < 4; ++j)
                images_[i][j] = static_cast<std::byte>(i % 10 + 20 * (j % 2));
            rows.push_back({std::span<const std::byte>(images_[i]), static_cast<double>(i) * 0.5,
                            static_cast<std::int64_t>(i % 3)});
        }
        data_.write("train", {{"image", "ndarray:uint8:2,2"}, {"x", "float32"}, {"y", "int"}},
                    rows);
    }
    std::vector<std::array<std::byte, 4>> images_{300};
    DataSet data_;
};

TEST_F(MeasuredInputs, AreStandardised) {
    const auto dataset = data_.open("train", 7);
    auto inputs = choose_inputs({}, dataset->columns());
    ASSERT_TRUE(inputs) << inputs.error().message;
    ASSERT_TRUE(measure_inputs({}, *dataset, *inputs));
    EXPECT_EQ(inputs->classes, 3);
    EXPECT_NEAR(inputs->columns[0].mean, 14.5, 1e-9);  // of i % 10 and i % 10 + 20
    EXPECT_NEAR(inputs->columns[1].mean, 74.75, 1e-9);
    double sum[2] = {};
    double squares[2] = {};
    Samples samples;
    loader::Batch batch;
    std::int64_t seen = 0;
    const auto again = data_.open("train", 11);
    while (*again->next(batch)) {
        ASSERT_TRUE(read_samples(*inputs, batch, samples));
        ASSERT_EQ(samples.features.size(), static_cast<std::size_t>(samples.count) * 5);
        for (std::size_t i = 0; i < static_cast<std::size_t>(samples.count); ++i) {
            EXPECT_EQ(samples.classes[i], seen % 3);
            ++seen;
            for (std::size_t j = 0; j < 5; ++j) {
                const double value = static_cast<double>(samples.features[i * 5 + j]);
                sum[j / 4] += value;
                squares[j / 4] += value * value;
            }
        }
    }
    EXPECT_EQ(seen, 300);
    EXPECT_NEAR(sum[0] / 1200, 0, 1e-5);
    EXPECT_NEAR(squares[0] / 1200, 1, 1e-5);
    EXPECT_NEAR(sum[1] / 300, 0, 1e-5);
    EXPECT_NEAR(squares[1] / 300, 1, 1e-5);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(samples.features.data()) % 64, 0u);
}

TEST_F(MeasuredInputs, AreLeftAloneWhenAsked) {
    TrainConfig config;
    config.normalize = Normalize::kNone;
    config.classes = 5;
    const auto dataset = data_.open("train", 300);
    auto inputs = choose_inputs(config, dataset->columns());
    ASSERT_TRUE(inputs);
    ASSERT_TRUE(measure_inputs(config, *dataset, *inputs));
    EXPECT_EQ(inputs->classes, 5);
    Samples samples;
    loader::Batch batch;
    ASSERT_TRUE(*data_.open("train", 300)->next(batch));
    ASSERT_TRUE(read_samples(*inputs, batch, samples));
    EXPECT_EQ(samples.features[0], 0.0f);
    EXPECT_EQ(samples.features[1], 20.0f);
    EXPECT_EQ(samples.features[5 * 13 + 4], 6.5f);
}

TEST_F(MeasuredInputs, RefuseAClassBeyondThoseOfTheTrainSplit) {
    const auto dataset = data_.open("train", 300);
    auto inputs = choose_inputs({}, dataset->columns());
    inputs->classes = 2;
    Samples samples;
    loader::Batch batch;
    ASSERT_TRUE(*dataset->next(batch));
    const auto read = read_samples(*inputs, batch, samples);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message,
              "sample 2: label 2.0 in column 'y' is not one of the classes 0 to 1; "
              "--classes N sets their number");
}

TEST(MeasureInputs, RefusesLabelsAndFeaturesThatCannotBeLearnt) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto error = [](const std::string& label, const std::vector<std::vector<Value>>& rows) {
        const DataSet data;
        data.write("train", {{"x", "float64"}, {"y", label}}, rows);
        const auto dataset = data.open("train", 2);
        auto inputs = choose_inputs({}, dataset->columns());
        const auto measured = measure_inputs({}, *dataset, *inputs);
        return measured ? std::string("no error") : measured.error().message;
    };
    EXPECT_EQ(error("int", {{1.0, std::int64_t{0}}, {1.0, std::int64_t{-1}}}),
              "sample 1: label -1.0 in column 'y' is not a class; "
              "classes are 0, 1, 2, ... below 1000000");
    EXPECT_EQ(error("int", {{nan, std::int64_t{0}}}),
              "column 'x' holds values that are not finite");
    EXPECT_EQ(error("float64", {{1.0, nan}}), "column 'y' holds values that are not finite");
    EXPECT_EQ(error("float64", {{1.0, 2.0}, {1.0, 2.0}}), "no error")
        << "constant columns are fine";
}

/// A split of three rows of four tokens, with a class each.
void write_tokens(const DataSet& data) {
    static const std::array<std::array<std::int32_t, 4>, 3> kTokens = {
        {{0, 1, 2, 3}, {4, 4, 4, 4}, {9, 8, 7, 6}}};
    std::vector<std::vector<loader::Value>> rows;
    for (const auto& tokens : kTokens)
        rows.push_back({std::as_bytes(std::span(tokens)), std::int64_t{1}});
    data.write("train", {{"tokens", "ndarray:int32:4"}, {"label", "int"}}, rows);
}

TEST(Inputs, TokensAreReadAsTheyAre) {
    DataSet data;
    write_tokens(data);
    const auto dataset = data.open("train", 3);
    TrainConfig config;
    config.model = ModelKind::kTransformer;
    auto inputs = choose_inputs(config, dataset->columns());
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_TRUE(inputs->is_tokens());
    EXPECT_FALSE(inputs->is_language());
    ASSERT_TRUE(measure_inputs(config, *dataset, *inputs));
    EXPECT_EQ(inputs->vocabulary, 10);
    EXPECT_EQ(inputs->classes, 2);
    const auto again = Inputs::from_json(inputs->to_json());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->vocabulary, 10);
    loader::Batch batch;
    ASSERT_TRUE(data.open("train", 3)->next(batch));
    Samples samples;
    ASSERT_TRUE(read_samples(*inputs, batch, samples));
    const std::vector<std::int64_t> expected = {0, 1, 2, 3, 4, 4, 4, 4, 9, 8, 7, 6};
    EXPECT_TRUE(
        std::equal(samples.tokens.begin(), samples.tokens.end(), expected.begin(), expected.end()));
    inputs->vocabulary = 9;
    const auto refused = read_samples(*inputs, batch, samples);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "sample 2: token 9 in column 'tokens' is not one of 0 to 8; --vocabulary N sets "
              "their number");
}

TEST(Inputs, ALanguageHasNoLabel) {
    DataSet data;
    write_tokens(data);
    TrainConfig config;
    config.model = ModelKind::kGpt;
    config.features = "tokens";
    const auto dataset = data.open("train", 3);
    auto inputs = choose_inputs(config, dataset->columns());
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_TRUE(inputs->is_language());
    EXPECT_EQ(inputs->column_names(), (std::vector<std::string>{"tokens"}));
    ASSERT_TRUE(measure_inputs(config, *dataset, *inputs));
    EXPECT_EQ(inputs->places(), 3);
    EXPECT_EQ(inputs->outputs(), 10);
    EXPECT_EQ(inputs->targets_of_sample(), 3);
    config.features = "";
    const auto unclear = choose_inputs(config, dataset->columns());
    ASSERT_FALSE(unclear);
    EXPECT_NE(unclear.error().message.find("name it with --features"), std::string::npos);
}

TEST(Inputs, TheTaskDecidesWhatAnIntegerLabelIs) {
    DataSet data;
    write_tokens(data);
    const auto dataset = data.open("train", 3);
    TrainConfig config;
    config.task = TaskKind::kRegression;
    EXPECT_FALSE(choose_inputs(config, dataset->columns())->is_classification());
    config.task = TaskKind::kAuto;
    config.loss = LossKind::kHuber;
    EXPECT_FALSE(choose_inputs(config, dataset->columns())->is_classification());
    config.loss = LossKind::kBce;
    auto inputs = choose_inputs(config, dataset->columns());
    ASSERT_TRUE(measure_inputs(config, *dataset, *inputs));
    EXPECT_EQ(inputs->label_scale, 1.0) << "probabilities stay what they are";
    EXPECT_EQ(inputs->label_mean, 0.0);
}

}  // namespace
}  // namespace tune::train
