#include "worker/launch/grant.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace tune::launch {
namespace {

namespace fs = std::filesystem;

class Grants : public ::testing::Test {
protected:
    Grant read() {
        const auto variable = [this](const char* name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
        };
        return read_grant(variable, root, cgroup);
    }
    void limit(const std::string& folder, const std::string& file, const std::string& text) {
        fs::create_directories(root / folder);
        std::ofstream(root / folder / file) << text << "\n";
    }
    void SetUp() override {
        root = fs::path(::testing::TempDir()) /
               ::testing::UnitTest::GetInstance()->current_test_info()->name();
        fs::remove_all(root);
        fs::create_directories(root);
    }
    void TearDown() override { fs::remove_all(root); }

    std::map<std::string, std::string> variables;
    std::string cgroup;
    fs::path root;
};

TEST_F(Grants, WithoutAnEngineNothingIsKnown) {
    const Grant grant = read();
    EXPECT_EQ(grant.engine, "");
    EXPECT_FALSE(grant.cpus);
    EXPECT_FALSE(grant.has_gpus);
    EXPECT_EQ(grant_text(grant), "");
}

TEST_F(Grants, SlurmsAreReadFromItsVariables) {
    variables = {{"SLURM_JOB_ID", "17"},        {"SLURM_ARRAY_JOB_ID", "12"},
                 {"SLURM_ARRAY_TASK_ID", "5"},  {"SLURMD_NODENAME", "n3"},
                 {"SLURM_CPUS_ON_NODE", "8"},   {"SLURM_CPUS_PER_TASK", "4"},
                 {"SLURM_MEM_PER_NODE", "500"}, {"CUDA_VISIBLE_DEVICES", "0,3"},
                 {"SLURM_RESTART_COUNT", "2"}};
    const Grant grant = read();
    EXPECT_EQ(grant.cpus, 4);
    EXPECT_EQ(grant.has_gpus, true);
    EXPECT_EQ(grant.memory_bytes, std::int64_t{500} << 20);
    EXPECT_EQ(grant_text(grant),
              "slurm job 12_5 on n3: 4 cores, GPUs 0,3, 500 MiB, restarted 2 times");
}

TEST_F(Grants, AJobOfSlurmWithoutAMaskHasNoGpu) {
    variables = {{"SLURM_JOB_ID", "17"}};
    EXPECT_EQ(read().has_gpus, false);
    variables["CUDA_VISIBLE_DEVICES"] = "NoDevFiles";
    EXPECT_EQ(read().has_gpus, false);
}

TEST_F(Grants, MemoryPerCoreCountsForAllCores) {
    variables = {{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "3"}, {"SLURM_MEM_PER_CPU", "100"}};
    EXPECT_EQ(read().memory_bytes, std::int64_t{300} << 20);
}

TEST_F(Grants, TheNarrowestCgroupCounts) {
    cgroup = "/kubepods/pod7/agent";
    limit("kubepods", "cpu.max", "max 100000");
    limit("kubepods/pod7", "cpu.max", "250000 100000");
    limit("kubepods/pod7", "memory.max", "4096");
    limit("kubepods/pod7/agent", "cpu.max", "600000 100000");
    limit("kubepods/pod7/agent", "memory.max", "max");
    variables = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"HOSTNAME", "pod-1"}};
    const Grant grant = read();
    EXPECT_EQ(grant.engine, "kubernetes");
    EXPECT_EQ(grant.cpus, 2);
    EXPECT_EQ(grant.memory_bytes, 4096);
    EXPECT_FALSE(grant.has_gpus) << "a pod sees only the GPUs that it was given";
}

TEST_F(Grants, LessThanACoreIsOne) {
    limit("", "cpu.max", "50000 100000");
    EXPECT_EQ(read().cpus, 1);
}

TEST_F(Grants, APathThatLeavesTheTreeIsNotFollowed) {
    cgroup = "/../../etc";
    EXPECT_FALSE(read().cpus);
}

TEST_F(Grants, NumbersThatAreNoneAreLeftOut) {
    variables = {{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "many"}, {"SLURM_MEM_PER_NODE", ""}};
    limit("", "cpu.max", "");
    const Grant grant = read();
    EXPECT_FALSE(grant.cpus);
    EXPECT_FALSE(grant.memory_bytes);
}

}  // namespace
}  // namespace tune::launch
