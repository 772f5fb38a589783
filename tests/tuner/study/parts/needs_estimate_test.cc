#include "tuner/study/placement/needs_estimate.h"

#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

TEST(NeedsEstimate, LearnsMemoryFromTrialsThatEnded) {
    Table table(R"("resources": {"memory": "auto"})");
    NeedsEstimate needs(table.definition, table.trials);
    EXPECT_TRUE(needs.of_next().is_learned);
    EXPECT_EQ(needs.of_next().memory_bytes, 0) << "not counted until some have ended";
    for (int i = 0; i < static_cast<int>(PeakMemory::kFirst); ++i) {
        Trial& trial = table.start();
        needs.note_peaks(trial, {.outcome = Outcome::kDone, .peak_memory_bytes = 1000});
        EXPECT_EQ(trial.peak_memory_bytes, 1000);
    }
    const std::int64_t learned = needs.of_next().memory_bytes;
    EXPECT_GT(learned, 1000);
    NeedsEstimate restored(table.definition, table.trials);
    for (const Trial& trial : table.trials) restored.note_peaks(trial);
    EXPECT_EQ(restored.of_next().memory_bytes, learned);
}

TEST(NeedsEstimate, ATrialThatMayKillItsPoolRunsAlone) {
    Table table(R"("resources": {"pool": 4, "memory": "1GB"})");
    NeedsEstimate needs(table.definition, table.trials);
    EXPECT_EQ(needs.of_next().pool, 4);
    const std::string shared = needs.of_next().pool_of;
    Trial& next = table.add();
    table.add();
    next.lost_attempts = 2;
    EXPECT_EQ(needs.of_next().pool, 1);
    EXPECT_NE(needs.of_next().pool_of, shared);
    table.trials.move(next, TrialState::kRunning);
    EXPECT_EQ(needs.of_next().pool, 4) << "the next one has no such past";
}

}  // namespace
}  // namespace tune::tuner
