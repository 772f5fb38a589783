#include "tuner/sampler/tpe/trial_split.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tune::tuner::trial_split_test {
namespace {

Observation complete(std::uint64_t number, double value) {
    Observation o;
    o.number = number;
    o.state = Observation::State::kComplete;
    o.value = value;
    return o;
}

Observation pruned(std::uint64_t number, std::int64_t step, double value) {
    Observation o;
    o.number = number;
    o.state = Observation::State::kPruned;
    o.last_step = step;
    o.last_value = value;
    return o;
}

Observation silent(std::uint64_t number) {
    Observation o;
    o.number = number;
    o.state = Observation::State::kPruned;
    return o;
}

/// The order of a few observations, best first.
std::vector<std::uint64_t> order(const std::vector<Observation>& observations, Goal goal) {
    std::vector<Rank> ranks;
    for (const Observation& o : observations) ranks.push_back(rank_of(o, goal));
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::uint64_t> numbers;
    for (const Rank& rank : ranks) numbers.push_back(rank.number);
    return numbers;
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Rank, CompleteBeforePrunedBeforeSilent) {
    EXPECT_EQ(order({silent(0), pruned(1, 5, -100), complete(2, 1e9)}, Goal::kMinimize),
              (std::vector<std::uint64_t>{2, 1, 0}));
}

TEST(Rank, LongerLivedPrunedTrialsComeFirst) {
    EXPECT_EQ(order({pruned(0, 3, 0), pruned(1, 9, 5), pruned(2, 9, 4)}, Goal::kMinimize),
              (std::vector<std::uint64_t>{2, 1, 0}));
}

TEST(Rank, MaximizingTurnsValuesRound) {
    EXPECT_EQ(order({complete(0, 1), complete(1, 3), complete(2, 2)}, Goal::kMaximize),
              (std::vector<std::uint64_t>{1, 2, 0}));
    EXPECT_EQ(order({pruned(0, 3, 1), pruned(1, 3, 2)}, Goal::kMaximize),
              (std::vector<std::uint64_t>{1, 0}));
}

TEST(Rank, NanOfAPrunedTrialIsTheWorst) {
    for (const Goal goal : {Goal::kMinimize, Goal::kMaximize})
        EXPECT_EQ(order({pruned(0, 3, kNan), pruned(1, 3, 7)}, goal),
                  (std::vector<std::uint64_t>{1, 0}));
}

TEST(Rank, InfiniteValuesAreOrdered) {
    EXPECT_EQ(order({complete(0, kInf), complete(1, -kInf), complete(2, 0)}, Goal::kMinimize),
              (std::vector<std::uint64_t>{1, 2, 0}));
}

TEST(Rank, TiesKeepTheOrderOfTrials) {
    EXPECT_EQ(order({complete(2, 1), complete(0, 1), complete(1, 1)}, Goal::kMinimize),
              (std::vector<std::uint64_t>{0, 1, 2}));
    EXPECT_EQ(order({complete(2, 1), complete(0, 1)}, Goal::kMaximize),
              (std::vector<std::uint64_t>{0, 2}));
}

TEST(Ranking, GoodOnesFollowInsertionsAndRemovals) {
    Ranking ranking;
    for (std::uint64_t i = 0; i < 30; ++i)
        ranking.insert(rank_of(complete(i, static_cast<double>(30 - i)), Goal::kMinimize));
    EXPECT_EQ(ranking.good(), (std::vector<std::uint64_t>{29, 28, 27}));
    ranking.erase(rank_of(complete(28, 2), Goal::kMinimize));
    EXPECT_EQ(ranking.good(), (std::vector<std::uint64_t>{29, 27, 26}));
}

TEST(Ranking, PrunedTrialsAreGoodOnlyWhenCompleteOnesRunOut) {
    Ranking ranking;
    ranking.insert(rank_of(complete(0, 99), Goal::kMinimize));
    for (std::uint64_t i = 1; i <= 14; ++i)
        ranking.insert(rank_of(pruned(i, static_cast<std::int64_t>(i), 0), Goal::kMinimize));
    EXPECT_EQ(ranking.good(), (std::vector<std::uint64_t>{0, 14}));
}

}  // namespace
}  // namespace tune::tuner::trial_split_test
