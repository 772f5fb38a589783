#include "worker/agent/models/logged_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/id.h"

namespace tune::worker {
namespace {

TEST(LoggedModel, IdsOfTheServerTakeThePlaceOfOthers) {
    const auto text = with_ids(
        "---\nartifact_path: /tmp/x\nflavors:\n  mine:\n    run_id: of the flavor\n"
        "run_id: null\nmodel_id: m-old\nsignature:\n  inputs: '[]'\n",
        "m-new", "run", "mlflow-artifacts:/1/models/m-new/artifacts");
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text,
              "artifact_path: \"mlflow-artifacts:/1/models/m-new/artifacts\"\nmodel_id: m-new\n"
              "run_id: run\nflavors:\n  mine:\n    run_id: of the flavor\nsignature:\n"
              "  inputs: '[]'\n");
}

TEST(LoggedModel, AValueOfSeveralLinesGoesWithItsKey) {
    const auto text = with_ids("model_id: >\n  m-\n  old\nflavors: {}\n", "m-1", "r", "l");
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->find("old"), std::string::npos);
    EXPECT_NE(text->find("flavors: {}\n"), std::string::npos);
}

TEST(LoggedModel, WhatIsNoMappingIsRefused) {
    for (const char* wrong : {"", "run_id: only\n", "{flavors: {}}\n", "just words\n", "[1]\n"}) {
        const auto text = with_ids(wrong, "m-1", "r", "l");
        ASSERT_FALSE(text) << wrong;
        EXPECT_EQ(text.error().code, Code::kInvalidParameterValue);
        EXPECT_NE(text.error().message.find("MLmodel"), std::string::npos);
    }
}

TEST(LoggedModel, AFolderHoldsAModelByItsFile) {
    const auto folder = std::filesystem::temp_directory_path() / ("model_test." + random_hex(6));
    EXPECT_FALSE(holds_model(folder));
    std::filesystem::create_directories(folder / "MLmodel");
    EXPECT_FALSE(holds_model(folder));
    std::filesystem::remove(folder / "MLmodel");
    std::ofstream(folder / "MLmodel") << "flavors: {}\n";
    EXPECT_TRUE(holds_model(folder));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tune::worker
