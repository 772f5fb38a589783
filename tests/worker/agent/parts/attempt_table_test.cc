#include "worker/agent/attempts/attempt_table.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

std::unique_ptr<Attempt> make(std::uint64_t serial, const std::string& run_id,
                              std::int64_t grace_ms = 0) {
    auto attempt = std::make_unique<Attempt>(AttemptFiles(""));
    attempt->record.serial = serial;
    attempt->record.lease.run_id = run_id;
    attempt->record.lease.attempt = 1;
    attempt->record.lease.grace_ms = grace_ms;
    return attempt;
}

std::vector<std::string> held(const AttemptTable& table) {
    std::vector<tuner::AttemptId> ids;
    table.add_held(ids);
    std::vector<std::string> runs;
    for (const tuner::AttemptId& id : ids) runs.push_back(id.run_id);
    return runs;
}

TEST(AttemptTable, FindsBySerialAndById) {
    AttemptTable table;
    EXPECT_TRUE(table.is_empty());
    table.insert(make(7, "a"));
    table.insert(make(3, "b"));
    EXPECT_EQ(table.find(7)->lease().run_id, "a");
    EXPECT_EQ(table.find(tuner::AttemptId{"b", 1})->serial(), 3u);
    EXPECT_EQ(table.find(tuner::AttemptId{"b", 2}), nullptr);
    EXPECT_EQ(table.all().front()->serial(), 3u);
    table.erase(3);
    EXPECT_EQ(table.find(3), nullptr);
    EXPECT_FALSE(table.is_empty());
}

TEST(AttemptTable, KeepsLeasesUntilTheEndIsReported) {
    AttemptTable table;
    Attempt& runs = table.insert(make(1, "runs", 500));
    Attempt& ended = table.insert(make(2, "ended", 9'000));
    Attempt& lost = table.insert(make(3, "lost"));
    ended.alive = false;
    lost.intent.intent = Intent::kLost;
    AttemptCounts counts;
    table.add_counts(counts);
    EXPECT_EQ(counts.running, 2);
    EXPECT_EQ(counts.unreported, 1);
    EXPECT_EQ(table.longest_grace_ms(), 500) << "of those that run";
    EXPECT_EQ(held(table), (std::vector<std::string>{"runs", "ended"}));
    ended.finish_done = true;
    EXPECT_EQ(held(table), std::vector<std::string>{"runs"});
    EXPECT_FALSE(ended.is_settled()) << "its logs are not";
    ended.logs_done = true;
    EXPECT_TRUE(ended.is_settled());
    EXPECT_FALSE(runs.is_settled());
}

}  // namespace
}  // namespace tune::worker
