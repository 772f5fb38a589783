// Keyed commands: made once however often they are sent.

#include <condition_variable>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {
namespace {

class AnswersTest : public StoreTest {
protected:
    static Command keyed(const std::string& key, Command command,
                         const std::string& fingerprint = "f") {
        KeyedCommand one{key, fingerprint, {}, [](const Outcome& outcome) {
                             if (const auto* made = std::get_if<Run>(&outcome))
                                 return made->info.run_id;
                             return std::string("{}");
                         }};
        one.command.push_back(std::move(command));
        return Operation(std::move(one));
    }

    RecordedResponse answer(Command command) { return run<RecordedResponse>(std::move(command)); }

    std::size_t run_count() { return store_->search_runs({.experiment_ids = {0}})->items.size(); }
};

TEST_F(AnswersTest, ARepeatGetsTheFirstAnswerAndChangesNothing) {
    const RecordedResponse first = answer(keyed("k", CreateRun{.experiment_id = 0}));
    const RecordedResponse second = answer(keyed("k", CreateRun{.experiment_id = 0}));
    EXPECT_FALSE(first.is_repeat);
    EXPECT_TRUE(second.is_repeat);
    EXPECT_EQ(first.text, second.text);
    EXPECT_EQ(first.text.size(), 32u);
    EXPECT_EQ(run_count(), 1u);
}

TEST_F(AnswersTest, ARepeatAfterARestartIsKnown) {
    const RecordedResponse first = answer(keyed("k", CreateRun{.experiment_id = 0}));
    reopen();
    EXPECT_EQ(answer(keyed("k", CreateRun{.experiment_id = 0})).text, first.text);
    EXPECT_EQ(run_count(), 1u);
}

TEST_F(AnswersTest, ARepeatWhileTheFirstIsUnderWayIsKnown) {
    constexpr int kCopies = 50;
    std::mutex mutex;
    std::condition_variable answered;
    std::vector<std::string> texts;
    for (int i = 0; i < kCopies; ++i)
        store_->submit(keyed("k", CreateRun{.experiment_id = 0}), [&](Result<Outcome> outcome) {
            const std::lock_guard lock(mutex);
            texts.push_back(std::get<RecordedResponse>(*outcome).text);
            answered.notify_all();
        });
    std::unique_lock lock(mutex);
    answered.wait(lock, [&] { return texts.size() == kCopies; });
    for (const std::string& text : texts) EXPECT_EQ(text, texts.front());
    EXPECT_EQ(run_count(), 1u);
}

TEST_F(AnswersTest, AKeyOfAnotherRequestIsRefused) {
    answer(keyed("k", CreateRun{.experiment_id = 0}, "one"));
    EXPECT_EQ(refusal(keyed("k", CreateRun{.experiment_id = 0}, "two")),
              "INVALID_PARAMETER_VALUE: The Idempotency-Key 'k' was used for another request "
              "(another path or body). Use a new key for each request, and the same one only to "
              "repeat it.");
    EXPECT_EQ(run_count(), 1u);
    EXPECT_NE(refusal(keyed(std::string(256, 'k'), CreateRun{.experiment_id = 0})), "");
}

TEST_F(AnswersTest, ARefusedCommandIsTriedAgain) {
    const std::string id(32, 'a');
    EXPECT_NE(refusal(keyed("k", SetTag{id, {"t", "v"}})), "");
    create_run(0, id);
    EXPECT_FALSE(answer(keyed("k", SetTag{id, {"t", "v"}})).is_repeat);
    EXPECT_TRUE(answer(keyed("k", SetTag{id, {"t", "v"}})).is_repeat);
}

TEST_F(AnswersTest, AnAnswerIsForgottenAfterADay) {
    answer(keyed("k", CreateRun{.experiment_id = 0}));
    clock_.advance_ms(kAnswerKeptMs);
    EXPECT_FALSE(answer(keyed("k", CreateRun{.experiment_id = 0})).is_repeat);
    EXPECT_EQ(run_count(), 2u);
    EXPECT_TRUE(answer(keyed("k", CreateRun{.experiment_id = 0})).is_repeat);
}

TEST_F(AnswersTest, TheTableOfAnswersIsBoundedInBytes) {
    const std::string id = create_run();
    const auto count = [&] {
        return *store_->snapshot([](sqlite::Connection& connection) -> Result<std::int64_t> {
            TUNE_TRY(select, connection.prepare("SELECT count(*) FROM recorded_answers"));
            TUNE_TRY_VOID(select.step());
            return select.integer(0);
        });
    };
    const auto send = [&](int i, std::size_t bytes) {
        KeyedCommand one{std::to_string(i), "f", {}, [bytes](const Outcome&) {
                             return std::string(bytes, 'x');
                         }};
        one.command.push_back(SetTag{id, {"t", "v"}});
        run<RecordedResponse>(Operation(std::move(one)));
    };
    for (int i = 0; i < 100; ++i) send(i, 10);
    EXPECT_EQ(count(), 100);
    for (int i = 100; i < 120; ++i) send(i, kAnswerBytesMax / 4);
    EXPECT_EQ(count(), 4);
}

TEST_F(AnswersTest, OldAnswersAreSwept) {
    const std::string id = create_run();
    for (int i = 0; i < 30; ++i) answer(keyed(std::to_string(i), SetTag{id, {"t", "v"}}));
    clock_.advance_ms(kAnswerKeptMs);
    const auto first = run<PurgeProgress>(Operation(SweepAnswers{20}));
    EXPECT_EQ(first.count, 20);
    EXPECT_FALSE(first.is_done);
    const auto second = run<PurgeProgress>(Operation(SweepAnswers{20}));
    EXPECT_EQ(second.count, 10);
    EXPECT_TRUE(second.is_done);
}

}  // namespace
}  // namespace tune::tracker
