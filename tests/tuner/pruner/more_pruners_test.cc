// Pruners that Optuna does not have, and the test behind the Wilcoxon pruner.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/pruner/pruner.h"
#include "tuner/pruner/wilcoxon/signed_rank.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Pruner> pruner_of(const Json& config, Goal goal = Goal::kMinimize) {
    return make_pruner(study_config_from_json({{"pruner", config}}).value().pruner, goal);
}

bool prunes(Pruner& pruner, std::uint64_t number, std::int64_t step, double value) {
    return pruner.report(number, step, value) == Verdict::kPrune;
}

TEST(SignedRank, IsScipys) {
    // scipy.stats.wilcoxon(d, alternative="greater", zero_method="zsplit").pvalue of scipy 1.17.1
    EXPECT_NEAR(signed_rank_p(std::vector<double>{0.5, 1.25, -0.25, 2, 0.75}), 0.0625, 1e-15);
    EXPECT_NEAR(signed_rank_p(std::vector<double>{1, 1, -1, 2, 0}), 0.25, 1e-15);
    EXPECT_NEAR(signed_rank_p(std::vector<double>{0, 0, 0}), 1.0, 1e-15);
    EXPECT_NEAR(
        signed_rank_p(std::vector<double>{2.3, -2.3, 0.7, -0.3, -0.2, 0.1,  -1.7, 0.1, -0.6, 3.6,
                                          0.5, -0.1, 0.0, -0.4, -0.8, -0.1, 0.8,  0.1, 1.3,  0.1}),
        0.4038290832837474, 1e-14);
    EXPECT_NEAR(signed_rank_p(std::vector<double>{0.22426, 1.745821, 0.745106, -0.305229, 0.017161,
                                                  0.740525, 2.135088, -0.06962, -0.043559, 1.202314,
                                                  -0.68646, -0.09172, 1.082539, 0.78035}),
                0.02899169921875, 1e-15);
}

TEST(RunningPercentile, ComparesWithTrialsThatStillRun) {
    const auto pruner = pruner_of(
        {{"type", "running_percentile"}, {"percentile", 50}, {"min_trials", 3}, {"keep_best", 0}});
    EXPECT_FALSE(prunes(*pruner, 0, 1, 1));
    EXPECT_FALSE(prunes(*pruner, 1, 1, 5));  // too few values yet
    EXPECT_FALSE(prunes(*pruner, 2, 1, 2));
    EXPECT_TRUE(prunes(*pruner, 3, 1, 4));
    EXPECT_TRUE(prunes(*pruner, 4, 1, kNan));
}

TEST(RunningPercentile, Guards) {
    const Json config = {{"type", "running_percentile"},
                         {"percentile", 0},
                         {"min_trials", 1},
                         {"warmup", 2},
                         {"until", 8},
                         {"keep_best", 2}};
    const auto pruner = pruner_of(config, Goal::kMaximize);
    for (const std::int64_t step : {1, 2, 5, 9}) {
        for (std::uint64_t i = 0; i < 3; ++i) (void)pruner->report(i, step, static_cast<double>(i));
        // 2 and 1 are the best two, but for warm-up and end.
        const bool is_between = step == 2 || step == 5;
        EXPECT_EQ(prunes(*pruner, 10 + static_cast<std::uint64_t>(step), step, 0.5), is_between);
        EXPECT_FALSE(prunes(*pruner, 20 + static_cast<std::uint64_t>(step), step, 1.5)) << step;
    }
}

TEST(RunningPercentile, FailedTrialsMeasureNobody) {
    const auto pruner = pruner_of(
        {{"type", "running_percentile"}, {"percentile", 50}, {"min_trials", 2}, {"keep_best", 0}});
    (void)pruner->report(0, 1, 1);
    (void)pruner->report(1, 1, 1);
    pruner->finish(0, Pruner::End::kGone);
    pruner->finish(1, Pruner::End::kGone);
    EXPECT_FALSE(prunes(*pruner, 2, 1, 9));  // alone
    (void)pruner->report(3, 1, 1);
    pruner->finish(3, Pruner::End::kPruned);  // stays
    EXPECT_TRUE(prunes(*pruner, 4, 1, 10));
}

TEST(Combined, AnyAndAll) {
    const Json parts = {{{"type", "threshold"}, {"upper", 10}},
                        {{"type", "threshold"}, {"lower", 0}}};
    const auto any = pruner_of({{"type", "any"}, {"of", parts}});
    EXPECT_TRUE(prunes(*any, 0, 0, 11));
    EXPECT_TRUE(prunes(*any, 1, 0, -1));
    EXPECT_FALSE(prunes(*any, 2, 0, 5));
    const auto all =
        pruner_of({{"type", "all"}, {"of", {parts[0], {{"type", "threshold"}, {"upper", 5}}}}});
    EXPECT_FALSE(prunes(*all, 0, 0, 7));
    EXPECT_TRUE(prunes(*all, 1, 0, 11));
}

TEST(Combined, PartsKeepTheirOwnRecordWhateverTheOthersSay) {
    const auto all = pruner_of(
        {{"type", "all"},
         {"of",
          {{{"type", "asha"}, {"min", 1}, {"eta", 2}}, {{"type", "threshold"}, {"upper", 0}}}}});
    EXPECT_FALSE(prunes(*all, 0, 1, -1));
    EXPECT_FALSE(prunes(*all, 1, 1, -0.5));  // asha says prune, the threshold does not
    EXPECT_TRUE(prunes(*all, 2, 1, 2));
}

TEST(Hyperband, BracketsAreAMatterOfNameAndNumber) {
    PrunerConfig config =
        study_config_from_json({{"pruner", {{"type", "hyperband"}, {"max", 27}}}}).value().pruner;
    const auto verdicts = [&](std::string_view study) {
        const auto pruner = make_pruner(config, Goal::kMinimize, study);
        std::vector<bool> found;
        for (std::uint64_t i = 0; i < 200; ++i)
            found.push_back(prunes(*pruner, i, 1, static_cast<double>(i)));
        return found;
    };
    EXPECT_EQ(verdicts("a"), verdicts("a"));
    EXPECT_NE(verdicts("a"), verdicts("b"));
    // Only the bracket whose first rung is at step 1 prunes there.
    const std::vector<bool> a = verdicts("a");
    const auto pruned = std::count(a.begin(), a.end(), true);
    EXPECT_GT(pruned, 50);
    EXPECT_LT(pruned, 150);
}

TEST(PrunerConfig, JsonReadsBackToTheSame) {
    const Json configs[] = {
        {{"type", "hyperband"}, {"min", 2}, {"max", 50}, {"eta", 4}},
        {{"type", "threshold"}, {"lower", -1.5}},
        {{"type", "wilcoxon"}, {"p", 0.2}},
        {{"type", "running_percentile"}, {"percentile", 25}, {"until", 40}},
        {{"type", "patience"}, {"wait", 3}, {"min_delta", 0.5}, {"of", "median"}},
        {{"type", "any"},
         {"of",
          {"median", {{"type", "all"}, {"of", {"asha", {{"type", "threshold"}, {"upper", 3}}}}}}}}};
    for (const Json& config : configs) {
        const PrunerConfig read = study_config_from_json({{"pruner", config}}).value().pruner;
        const Json written = to_json(read);
        EXPECT_EQ(study_config_from_json({{"pruner", written}}).value().pruner, read) << written;
    }
}

TEST(PrunerConfig, Refusals) {
    const auto refusal = [](const Json& config) {
        const auto read = study_config_from_json({{"pruner", config}});
        return read ? std::string("accepted") : read.error().message;
    };
    EXPECT_THAT(refusal({{"type", "threshold"}}), HasSubstr("give 'lower', 'upper' or both"));
    EXPECT_THAT(refusal({{"type", "threshold"}, {"lower", 2}, {"upper", 1}}),
                HasSubstr("above 'upper'"));
    EXPECT_THAT(refusal({{"type", "patience"}}), HasSubstr("'wait' is missing"));
    EXPECT_THAT(refusal({{"type", "any"}}), HasSubstr("'of' is missing"));
    EXPECT_THAT(refusal({{"type", "any"}, {"of", Json::array()}}), HasSubstr("1 to 8"));
    EXPECT_THAT(refusal({{"type", "hyperband"}, {"bootstrap", 3}}),
                HasSubstr("needs a fixed 'max'"));
    EXPECT_THAT(refusal({{"type", "hyperband"}, {"rate", 3}}), HasSubstr("rate"));
    EXPECT_THAT(refusal({{"type", "any"}, {"of", {{{"type", "asha"}, {"eta", 1}}}}}),
                HasSubstr("pruner.of[0]"));
    Json deep = "median";
    for (int i = 0; i < kPrunerDepthMax; ++i) deep = {{"type", "any"}, {"of", {deep}}};
    EXPECT_THAT(refusal(deep), HasSubstr("nested more than 4 deep"));
}

}  // namespace
}  // namespace tune::tuner
