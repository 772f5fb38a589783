#include "worker/train/collective/ranks.h"

#include <gtest/gtest.h>

#include <map>

namespace tune::train {
namespace {

Result<Ranks> ranks_of(const std::map<std::string, std::string>& variables) {
    return read_ranks([&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
}

TEST(Ranks, AreOneWithoutVariables) {
    for (const auto& variables :
         {std::map<std::string, std::string>{}, {{"WORLD_SIZE", "1"}, {"RANK", "0"}}}) {
        const auto ranks = ranks_of(variables);
        ASSERT_TRUE(ranks);
        EXPECT_EQ(ranks->rank, 0);
        EXPECT_EQ(ranks->size, 1);
    }
}

TEST(Ranks, AreReadAsTorchrunSetsThem) {
    const auto ranks = ranks_of({{"WORLD_SIZE", "8"},
                                 {"RANK", "5"},
                                 {"LOCAL_RANK", "1"},
                                 {"MASTER_ADDR", "node-3"},
                                 {"MASTER_PORT", "29500"},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                 {"TORCHELASTIC_RUN_ID", "job"},
                                 {"TORCHELASTIC_RESTART_COUNT", "2"}});
    ASSERT_TRUE(ranks) << ranks.error().text();
    EXPECT_EQ(ranks->rank, 5);
    EXPECT_EQ(ranks->size, 8);
    EXPECT_EQ(ranks->local_rank, 1);
    EXPECT_EQ(ranks->master_host, "node-3");
    EXPECT_EQ(ranks->master_port, 29500);
    EXPECT_TRUE(ranks->store_is_running);
    EXPECT_EQ(ranks->store_prefix, "tune/job/2");
}

TEST(Ranks, SayWhichVariableIsWrong) {
    const std::map<std::string, std::string> right = {
        {"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
    ASSERT_TRUE(ranks_of(right));
    for (const auto& [name, value] : std::map<std::string, std::string>{{"WORLD_SIZE", "0"},
                                                                        {"RANK", "2"},
                                                                        {"LOCAL_RANK", "x"},
                                                                        {"MASTER_ADDR", ""},
                                                                        {"MASTER_PORT", "65536"}}) {
        auto wrong = right;
        wrong[name] = value;
        const auto ranks = ranks_of(wrong);
        ASSERT_FALSE(ranks) << name;
        EXPECT_EQ(ranks.error().code, Code::kInvalidParameterValue);
        EXPECT_NE(ranks.error().message.find(name), std::string::npos) << ranks.error().message;
    }
}

}  // namespace
}  // namespace tune::train
