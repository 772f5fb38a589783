#include "tuner/study/registration_state.h"

#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

TEST(RegistrationState, IsWantedOnceForTheBestTrialOfACompletedStudy) {
    Table table(R"("register": "m")");
    StudyStatus status;
    Front front(table.config(), table.trials);
    RegistrationState registration(table.config(), status, front);
    front.consider(table.complete(1));
    EXPECT_FALSE(registration.is_wanted()) << "it still runs";
    status.state = StudyState::kCompleted;
    EXPECT_TRUE(registration.is_wanted());
    registration.set({.name = "m", .trial = 0, .version = 1});
    EXPECT_FALSE(registration.is_wanted());
    registration.forget_failed();
    EXPECT_TRUE(registration.last()) << "it did not fail";
    front.consider(table.complete(0.5));
    EXPECT_TRUE(registration.is_wanted()) << "another trial is the best";
    registration.set({.name = "m", .trial = 1, .error = "no model was logged"});
    EXPECT_FALSE(registration.is_wanted()) << "it is impossible";
    registration.forget_failed();
    EXPECT_TRUE(registration.is_wanted());
}

TEST(RegistrationState, IsNotWantedWithoutANameOrATrial) {
    Table nameless;
    const StudyStatus completed{.state = StudyState::kCompleted};
    Front front(nameless.config(), nameless.trials);
    front.consider(nameless.complete(1));
    EXPECT_FALSE(RegistrationState(nameless.config(), completed, front).is_wanted());
    Table empty(R"("register": "m")");
    const Front none(empty.config(), empty.trials);
    EXPECT_FALSE(RegistrationState(empty.config(), completed, none).is_wanted());
}

}  // namespace
}  // namespace tune::tuner
