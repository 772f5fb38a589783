#include "worker/agent/output/log_rules.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

using tuner::LogAction;

LogRules rules(const std::vector<tuner::LogRule>& list) {
    return LogRules::create(list).value();
}

TEST(LogRules, TheFirstRuleWinsWhateverCameFirst) {
    LogRules some = rules({{"socket closed", LogAction::kNoRetry}, {"NCCL", LogAction::kRetry}});
    EXPECT_FALSE(some.hit());
    some.read("nothing of interest\n");
    EXPECT_FALSE(some.hit());
    some.read("rank 3: NCCL timeout\n");
    EXPECT_EQ(some.hit()->action, LogAction::kRetry);
    EXPECT_EQ(some.hit()->line, "rank 3: NCCL timeout");
    some.read("NCCL again\n");
    EXPECT_EQ(some.hit()->line, "rank 3: NCCL timeout") << "its first line";
    some.read("the socket closed\n");
    EXPECT_EQ(some.hit()->action, LogAction::kNoRetry);
    some.read("NCCL once more\n");
    EXPECT_EQ(some.hit()->line, "the socket closed");
}

TEST(LogRules, LongLinesAreCut) {
    LogRules some = rules({{"x", LogAction::kRetry}});
    some.read(std::string(1000, 'x') + "\n");
    EXPECT_EQ(some.hit()->line.size(), 300u);
}

TEST(LogRules, WithoutAnyNothingIsFound) {
    LogRules none = rules({});
    none.read("uncorrectable ECC error\n");
    EXPECT_FALSE(none.hit());
}

TEST(LogRules, ABadPatternIsNamed) {
    const Result<LogRules> bad = LogRules::create({{"a(b", LogAction::kRetry}});
    EXPECT_EQ(bad.error().code, Code::kInvalidParameterValue);
    EXPECT_TRUE(
        bad.error().message.starts_with("the log rule 'a(b' is not a regular expression (RE2): "));
}

bool is_of_the_gpu(const std::string& line) {
    LogRules some = rules(gpu_log_rules());
    some.read(line);
    return some.hit() && some.hit()->action == LogAction::kExcludeDevice;
}

TEST(GpuLogRules, KnowDamage) {
    for (const char* line :
         {"RuntimeError: CUDA error: uncorrectable ECC error encountered",
          "cudaErrorECCUncorrectable (code 214)",
          "Unable to determine the device handle: GPU is lost",
          "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
          "NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>'", "dmesg says Xid 95"})
        EXPECT_TRUE(is_of_the_gpu(line)) << line;
}

TEST(GpuLogRules, KnowWhatIsTheProgramsOwn) {
    for (const char* line :
         {"NVRM: Xid (PCI:0000:3b:00): 31, pid=79, Ch 00000008", "Xid 13", "ECC is on",
          "corrected ECC errors: 79", "CUDA out of memory", "xid 79 of the transaction"})
        EXPECT_FALSE(is_of_the_gpu(line)) << line;
}

}  // namespace
}  // namespace tune::worker
