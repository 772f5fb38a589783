#include "tuner/study/trial/front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Front, OfEqualsTheEarliestWhoeverEndedFirst) {
    Table table;
    Front front(table.config(), table.trials);
    Trial& first = table.start();
    front.consider(table.complete(1));
    front.consider(table.end(first, TrialState::kComplete, 1));
    EXPECT_EQ(front.best(), &first);
    const std::uint64_t version = front.version();
    front.consider(table.complete(1));
    front.consider(table.complete(2));
    EXPECT_EQ(front.version(), version) << "nothing is better";
    Trial& best = table.complete(0.5);
    front.consider(best);
    EXPECT_THAT(front.trials(), ElementsAre(&best));
    EXPECT_GT(front.version(), version);
}

TEST(Front, OnlyCompleteTrialsWithAValue) {
    Table table;
    Front front(table.config(), table.trials);
    front.consider(table.end(table.start(), TrialState::kPruned, 1));
    front.consider(table.complete(std::nan("")));
    front.consider(table.fail("no"));
    EXPECT_THAT(front.trials(), IsEmpty());
    EXPECT_EQ(front.best(), nullptr);
}

TEST(Front, OfSeveralObjectivesThoseThatNoneDominates) {
    Table table(R"("metric": [{"name": "loss"}, {"name": "size"}])");
    Front front(table.config(), table.trials);
    const auto add = [&](double loss, double size) {
        Trial& trial = table.complete(loss);
        trial.more_values = {size};
        front.consider(trial);
        return &trial;
    };
    const Trial* const both = add(2, 2);
    const Trial* const small = add(3, 1);
    EXPECT_THAT(front.trials(), ElementsAre(both, small));
    add(3, 3);
    EXPECT_THAT(front.trials(), ElementsAre(both, small));
    const Trial* const better = add(1, 2);
    EXPECT_THAT(front.trials(), ElementsAre(small, better));
    EXPECT_EQ(front.best(), nullptr) << "there is no single one";
}

}  // namespace
}  // namespace tune::tuner
