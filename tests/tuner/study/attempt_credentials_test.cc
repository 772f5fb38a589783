// The credentials of leased attempts: who gets one, how long it holds, and what is kept of it.

#include "tuner/study/registry/attempt_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class AttemptCredentialsTest : public ::testing::Test {
protected:
    void begin(const std::string& fields = "") {
        ASSERT_TRUE(world_.create(fields).has_value());
        ASSERT_TRUE(world_.register_agent("a").has_value());
    }
    [[nodiscard]] bool is_current(const std::string& token) {
        const auto standing = world_.studies().credentials().find(token);
        EXPECT_TRUE(standing.has_value()) << "not even known: " << token;
        return standing && standing->current->load();
    }
    [[nodiscard]] std::optional<std::string> objection(const std::string& run_id,
                                                       const std::string& attempt_run_id,
                                                       const std::string& key) {
        const tracker::Metric metric{.key = key};
        return world_.studies().credentials().objection(run_id, attempt_run_id, {&metric, 1});
    }

    World world_;
};

TEST_F(AttemptCredentialsTest, ALeaseBringsASecretOfWhichOnlyTheHashIsStored) {
    begin();
    const Lease lease = world_.lease_with_token("a")->leases.at(0);
    EXPECT_THAT(lease.token, MatchesRegex("tune-attempt\\." + lease.run_id + "\\.1\\.[0-9a-f]+"));
    const std::string secret = lease.token.substr(lease.token.rfind('.') + 1);
    EXPECT_EQ(secret.size(), 32u) << "128 bits";
    const auto standing = world_.studies().credentials().find(lease.token);
    ASSERT_TRUE(standing.has_value());
    EXPECT_TRUE(standing->current->load());
    EXPECT_EQ(standing->run_id, lease.run_id);
    EXPECT_EQ(standing->attempt, 1);
    EXPECT_EQ(std::to_string(standing->experiment_id), lease.experiment_id);
    const std::string journal = world_.journal();
    EXPECT_THAT(journal, Not(HasSubstr(secret)));
    EXPECT_THAT(journal, HasSubstr(hash_of_token(lease.token)));
    EXPECT_NE(world_.lease_with_token("a")->leases.at(0).token, lease.token);
}

TEST_F(AttemptCredentialsTest, NoneForAnAgentOrAStudyThatLogsInItself) {
    begin();
    EXPECT_EQ(world_.lease("a")->leases.at(0).token, "");
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    World other;
    ASSERT_TRUE(other.create(R"("env": {"MLFLOW_TRACKING_TOKEN": "mine"})").has_value());
    ASSERT_TRUE(other.register_agent("a").has_value());
    EXPECT_EQ(other.lease_with_token("a")->leases.at(0).token, "");
}

TEST_F(AttemptCredentialsTest, EndsWithTheAttempt) {
    begin();
    const Lease first = world_.lease_with_token("a")->leases.at(0);
    world_.advance_ms(World::kTtl_ms);
    EXPECT_FALSE(is_current(first.token)) << "its lease is over";
    ASSERT_TRUE(world_.register_agent("b").has_value());
    const Lease second = world_.lease_with_token("b")->leases.at(0);
    ASSERT_EQ(second.attempt, 2);
    EXPECT_FALSE(is_current(first.token));
    EXPECT_TRUE(is_current(second.token));
    world_.log(second.run_id, "loss", 1, 0.5);
    ASSERT_TRUE(world_.finish("b", token(second), {.request_id = "f"}).has_value());
    EXPECT_EQ(world_.trial(0).value, 0.5);
    EXPECT_FALSE(is_current(second.token)) << "its trial is complete";
}

TEST_F(AttemptCredentialsTest, AForgedSecretIsOverAndAForeignTokenUnknown) {
    begin();
    const Lease lease = world_.lease_with_token("a")->leases.at(0);
    std::string forged = lease.token;
    forged.back() = forged.back() == '0' ? '1' : '0';
    EXPECT_FALSE(is_current(forged));
    const AttemptCredentials& credentials = world_.studies().credentials();
    for (const char* foreign :
         {"", "abc", "tune-attempt.", "tune-attempt..", "tune-attempt.x.1", "tune-attempt...1.",
          "tune-attempt.00000000000000000000000000000000.1.00000000000000000000000000000000"})
        EXPECT_FALSE(credentials.find(foreign).has_value()) << foreign;
    EXPECT_FALSE(credentials.find("tune-attempt." + lease.run_id + ".one.00").has_value());
}

TEST_F(AttemptCredentialsTest, SurvivesARestartOfTheServer) {
    begin();
    const Lease ended = world_.lease_with_token("a")->leases.at(0);
    ASSERT_TRUE(world_
                    .finish("a", token(ended),
                            {.request_id = "f", .outcome = Outcome::kFailed, .reason = "boom"})
                    .has_value());
    const Lease running = world_.lease_with_token("a")->leases.at(0);
    world_.reopen();
    EXPECT_TRUE(is_current(running.token));
    EXPECT_FALSE(is_current(ended.token));
    EXPECT_FALSE(world_.studies().credentials().is_unheard(running.run_id))
        << "what it sent to the server before is not known";
    world_.advance_ms(World::kTtl_ms);
    EXPECT_FALSE(is_current(running.token));
    world_.reopen();
    EXPECT_FALSE(is_current(running.token));
}

TEST_F(AttemptCredentialsTest, ALeaseWhoseAnswerWasLostComesAgainWithAnother) {
    begin();
    const Lease lost = world_.lease_with_token("a", "q")->leases.at(0);
    const Lease again = world_.lease_with_token("a", "q")->leases.at(0);
    EXPECT_EQ(token(again), token(lost));
    EXPECT_NE(again.token, lost.token);
    EXPECT_TRUE(is_current(again.token));
    EXPECT_FALSE(is_current(lost.token)) << "nobody has it";
    world_.reopen();
    EXPECT_TRUE(is_current(again.token));
    ASSERT_TRUE(world_.register_agent("a", {token(again)}).has_value());
    const Lease after_restart = world_.lease_with_token("a", "q")->leases.at(0);
    EXPECT_EQ(token(after_restart), token(lost));
    EXPECT_TRUE(is_current(after_restart.token));
}

TEST_F(AttemptCredentialsTest, WithoutOneTheObjectiveIsOpenInTheFirstAttempt) {
    begin();
    const std::string run_id = world_.lease_with_token("a")->leases.at(0).run_id;
    const std::string other = world_.lease_with_token("a")->leases.at(0).run_id;
    EXPECT_EQ(objection(run_id, "", "loss"), std::nullopt) << "a script that knows no tokens";
    EXPECT_EQ(objection(run_id, other, "note"), std::nullopt);
    EXPECT_THAT(objection(run_id, other, "loss").value_or(""),
                HasSubstr("metric 'loss' decides about trial 0 of study 's'"));
    world_.advance_ms(World::kTtl_ms);
    EXPECT_EQ(objection(run_id, "", "loss"), std::nullopt) << "it does not run";
    ASSERT_TRUE(world_.register_agent("b").has_value());
    ASSERT_EQ(world_.lease_with_token("b")->leases.at(0).run_id, run_id);
    EXPECT_THAT(objection(run_id, "", "loss").value_or(""),
                HasSubstr("an earlier attempt may still be running"));
    EXPECT_EQ(objection(run_id, "", "accuracy"), std::nullopt);
    EXPECT_EQ(objection(run_id, run_id, "loss"), std::nullopt) << "its own attempt";
}

TEST_F(AttemptCredentialsTest, OnceItWasShownTheObjectiveTakesNothingElse) {
    begin();
    const Lease lease = world_.lease_with_token("a")->leases.at(0);
    const std::string silent = world_.lease_with_token("a")->leases.at(0).run_id;
    EXPECT_EQ(objection(lease.run_id, "", "loss"), std::nullopt);
    ASSERT_TRUE(is_current(lease.token));
    EXPECT_THAT(objection(lease.run_id, "", "loss").value_or(""),
                HasSubstr("whose attempt has sent requests with its credential"));
    EXPECT_EQ(objection(lease.run_id, "", "accuracy"), std::nullopt);
    EXPECT_EQ(objection(lease.run_id, lease.run_id, "loss"), std::nullopt);
    EXPECT_EQ(objection(silent, "", "loss"), std::nullopt) << "another trial's is another matter";
    world_.reopen();
    EXPECT_EQ(objection(silent, "", "loss"), std::nullopt) << "nor does a restart make it heard";
}

TEST_F(AttemptCredentialsTest, AfterAnyEarlierAttemptTheObjectiveTakesNothingElse) {
    begin();
    const Lease first = world_.lease_with_token("a")->leases.at(0);
    ASSERT_TRUE(
        world_.finish("a", token(first), {.request_id = "f", .outcome = Outcome::kPreempted})
            .has_value());
    const Lease second = world_.lease_with_token("a")->leases.at(0);
    ASSERT_EQ(second.run_id, first.run_id);
    ASSERT_EQ(second.attempt, 2);
    EXPECT_EQ(world_.trial(0).lost_attempts, 0);
    EXPECT_THAT(objection(second.run_id, "", "loss").value_or(""),
                HasSubstr("an earlier attempt may still be running"));
}

TEST_F(AttemptCredentialsTest, AnAttemptWithoutOneIsOpenToAllAsBefore) {
    begin();
    static_cast<void>(world_.lease("a"));
    world_.advance_ms(World::kTtl_ms);
    ASSERT_TRUE(world_.register_agent("b").has_value());
    const std::string run_id = world_.lease("b")->leases.at(0).run_id;
    ASSERT_EQ(world_.trial(0).lost_attempts, 1);
    EXPECT_EQ(objection(run_id, "", "loss"), std::nullopt);
}

TEST_F(AttemptCredentialsTest, ASilentScriptIsToldWhereItsMetricsMayBe) {
    begin();
    const Lease silent = world_.lease_with_token("a")->leases.at(0);
    ASSERT_TRUE(world_.finish("a", token(silent), {.request_id = "1"}).has_value());
    EXPECT_THAT(world_.trial(0).reason, HasSubstr("take mlflow.set_tracking_uri out"));

    const Lease heard = world_.lease_with_token("a")->leases.at(0);
    ASSERT_TRUE(is_current(heard.token));
    ASSERT_TRUE(world_.finish("a", token(heard), {.request_id = "2"}).has_value());
    EXPECT_THAT(world_.trial(1).reason, HasSubstr("metric 'loss' never arrived"));
    EXPECT_THAT(world_.trial(1).reason, Not(HasSubstr("set_tracking_uri")));

    const Lease elsewhere = world_.lease_with_token("a")->leases.at(0);
    ASSERT_TRUE(
        world_
            .finish("a", token(elsewhere),
                    {.request_id = "3",
                     .outcome = Outcome::kFailed,
                     .reason = "exit code 1: Run with id=" + elsewhere.run_id + " not found"})
            .has_value());
    EXPECT_THAT(world_.trial(2).reason, HasSubstr("the script sets another tracking URI"));
}

}  // namespace
}  // namespace tune::tuner
