// The `resources` section, and amounts of memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"
#include "tuner/options/bytes.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<StudyConfig> with_resources(const std::string& resources, const std::string& more = "") {
    return read_study({.text = "metric: loss\nspace: {x: 0..1}\ncommand: [run]\n" + more +
                               "resources: " + resources + "\n",
                       .file = "s.yaml",
                       .inline_parameters = {}});
}
std::string resources_refusal(const std::string& resources) {
    const auto found = with_resources(resources);
    EXPECT_FALSE(found) << resources;
    return found ? std::string() : found.error().message;
}

TEST(Resources, AreReadAndWritten) {
    const auto config = with_resources(
        "{cpus: 4, memory: 16GiB, gpus: 2, gpu_memory: 10GB, labels: [b, a, b], nproc: 4, nnodes: "
        "2}");
    ASSERT_TRUE(config) << config.error().text();
    const ResourcesConfig& resources = config->resources;
    EXPECT_EQ(resources.cpus, 4);
    EXPECT_EQ(resources.memory_bytes, std::int64_t{16} << 30);
    EXPECT_EQ(resources.gpus, 2);
    EXPECT_EQ(resources.gpu_memory_bytes, 10'000'000'000);
    EXPECT_THAT(resources.labels, ElementsAre("a", "b"));
    EXPECT_EQ(processes_of(resources), 8);
    const auto again = study_config_from_json(to_json(*config));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(again->resources, resources);
}

TEST(Resources, AreLeftOutWhereThereAreNone) {
    const auto config = with_resources("{}");
    ASSERT_TRUE(config);
    EXPECT_EQ(config->resources, ResourcesConfig());
    EXPECT_FALSE(to_json(*config).contains("resources"));
    EXPECT_EQ(processes_of(config->resources), 1);
}

TEST(Resources, MayBeLearnt) {
    const auto config = with_resources("{memory: auto, gpu_memory: auto}");
    ASSERT_TRUE(config);
    EXPECT_TRUE(config->resources.learns_memory);
    EXPECT_TRUE(config->resources.learns_gpu_memory);
    EXPECT_EQ(config->resources.gpus, 1) << "memory of a GPU is that of one GPU";
    EXPECT_EQ(study_config_from_json(to_json(*config))->resources, config->resources);
}

TEST(Resources, AndTheBudgetsOlderWordsAgree) {
    const auto older = with_resources("{}", "budget: {gpus_per_trial: 2, cpus_per_trial: 3}\n");
    ASSERT_TRUE(older);
    EXPECT_EQ(gpus_of_process(*older), 2);
    EXPECT_EQ(cpus_of_process(*older), 3);
    const auto both = with_resources("{gpus: 1}", "budget: {gpus_per_trial: 2}\n");
    ASSERT_TRUE(both);
    const auto checked = check_study(*both, true);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("gpus_per_trial"));
    EXPECT_TRUE(check_study(*with_resources("{gpus: 2}", "budget: {gpus_per_trial: 2}\n"), true));
}

TEST(Resources, ABudgetOfGpuTimeNeedsGpus) {
    const std::string budget = "budget: {cost: {of: gpu_seconds, max: 1h}}\n";
    EXPECT_TRUE(check_study(*with_resources("{gpus: 1}", budget), true));
    const auto none = check_study(*with_resources("{}", budget), true);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("gpu_seconds needs"));
}

TEST(Resources, RefusalsSayWhereAndWhat) {
    EXPECT_THAT(resources_refusal("{memory: lots}"),
                HasSubstr("line 4, column 21: resources.memory: expected an amount of memory such "
                          "as 8GiB"));
    EXPECT_THAT(resources_refusal("{memory: 0}"), HasSubstr("expected more than 0"));
    EXPECT_THAT(resources_refusal("{memory: [1]}"), HasSubstr("resources.memory"));
    EXPECT_THAT(resources_refusal("{processes: 4, nproc: 2}"),
                HasSubstr("give either processes, or"));
    EXPECT_THAT(resources_refusal("{nproc: 4096, nnodes: 2}"), HasSubstr("at most 4096 processes"));
    EXPECT_THAT(resources_refusal("{nproc: 0}"), HasSubstr("resources.nproc"));
    EXPECT_THAT(resources_refusal("{labels: ['a,b']}"), HasSubstr("a label is a word"));
    EXPECT_THAT(resources_refusal("{gpu: 1}"), HasSubstr("did you mean 'gpus'"));
}

TEST(Bytes, AreReadInEveryUnit) {
    EXPECT_EQ(parse_bytes("8GiB").value(), std::int64_t{8} << 30);
    EXPECT_EQ(parse_bytes("8G").value(), std::int64_t{8} << 30);
    EXPECT_EQ(parse_bytes("1.5 MiB").value(), 3 << 19);
    EXPECT_EQ(parse_bytes("80GB").value(), 80'000'000'000);
    EXPECT_EQ(parse_bytes("12").value(), 12);
    for (const char* text : {"", "G", "-1G", "8 apples", "8GiBs", "9999999TiB"})
        EXPECT_FALSE(parse_bytes(text)) << text;
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1536} << 20, kBytesMax})
        EXPECT_EQ(parse_bytes(bytes_text(bytes)).value(), bytes) << bytes;
    EXPECT_EQ(bytes_text(std::int64_t{16} << 30), "16GiB");
    EXPECT_EQ(rounded_bytes_text((std::int64_t{3} << 30) / 2), "1.5 GiB");
}

}  // namespace
}  // namespace tune::tuner
