#include "worker/train/saved_model/model_files.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tune::train {
namespace {

ModelFiles some_files() {
    return {.input = {"uint8", {-1, 8, 8}},
            .output = {"float32", {-1, 10}},
            .torch_version = "2.15.0",
            .bytes = 4711,
            .uuid = "0123456789abcdef0123456789abcdef",
            .time_ms = 1'700'000'000'123,
            .metadata = R"({"tune":{"columns":["it's","\"b\": c"],"epoch":3}})"};
}

TEST(ModelFiles, SignatureIsMlflowsOfOneTensorWithoutAName) {
    EXPECT_EQ(signature_text({"uint8", {-1, 8, 8}}),
              R"([{"type":"tensor","tensor-spec":{"dtype":"uint8","shape":[-1,8,8]}}])");
}

TEST(ModelFiles, MlmodelIsYamlWithBothFlavors) {
    const YAML::Node model = YAML::Load(mlmodel_text(some_files()));
    EXPECT_EQ(model["flavors"]["pytorch"]["model_data"].as<std::string>(), "data");
    EXPECT_EQ(model["flavors"]["pytorch"]["pytorch_version"].as<std::string>(), "2.15.0");
    const YAML::Node pyfunc = model["flavors"]["python_function"];
    EXPECT_EQ(pyfunc["loader_module"].as<std::string>(), "mlflow.pytorch");
    EXPECT_EQ(pyfunc["env"]["virtualenv"].as<std::string>(), "python_env.yaml");
    EXPECT_EQ(model["model_size_bytes"].as<int>(), 4711);
    EXPECT_EQ(model["model_uuid"].as<std::string>(), "0123456789abcdef0123456789abcdef");
    EXPECT_EQ(model["utc_time_created"].as<std::string>(), "2023-11-14 22:13:20.123000");
    EXPECT_EQ(model["signature"]["inputs"].as<std::string>(),
              signature_text({"uint8", {-1, 8, 8}}));
    EXPECT_EQ(model["metadata"]["tune"]["columns"][0].as<std::string>(), "it's");
    EXPECT_EQ(model["metadata"]["tune"]["columns"][1].as<std::string>(), "\"b\": c");
}

TEST(ModelFiles, EnvironmentsNameTheSamePackages) {
    const auto files = environment_files("2.15.0");
    ASSERT_EQ(files.size(), 3u);
    EXPECT_NE(files[0].second.find("torch==2.15.0\n"), std::string::npos);
    const YAML::Node conda = YAML::Load(files[1].second);
    std::string lines;
    for (const YAML::Node& each : conda["dependencies"][2]["pip"])
        lines += each.as<std::string>() + "\n";
    EXPECT_EQ(lines, files[0].second);
    EXPECT_TRUE(YAML::Load(files[2].second)["python"].IsScalar());
}

}  // namespace
}  // namespace tune::train
