#include "worker/train/pool/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <semaphore>
#include <stdexcept>

#include "base/json.h"

namespace tune::train {
namespace {

using testing::HasSubstr;

TEST(PoolProtocol, ReadsTrials) {
    const auto command =
        parse_command(R"({"op":"run","trial":"7","attempt":2,)"
                      R"("parameters":{"lr":0.01,"model":"mlp","nesterov":true}})");
    ASSERT_TRUE(command) << command.error().text();
    EXPECT_EQ(command->kind, PoolCommand::Kind::kRun);
    EXPECT_EQ(command->request.id, (AttemptId{"7", 2}));
    EXPECT_EQ(command->request.parameters,
              (std::map<std::string, std::string>{
                  {"lr", "0.01"}, {"model", "mlp"}, {"nesterov", "true"}}));
    const auto report =
        parse_command(R"({"op":"run","trial":"7","attempt":2,"report":{"loss":1}})");
    ASSERT_TRUE(report);
    EXPECT_EQ(report->request.kind, TrialKind::kReport);
    EXPECT_EQ(report->request.values, R"({"loss":1})");
    const auto prune = parse_command(R"({"op":"prune","trial":"7","attempt":2})");
    ASSERT_TRUE(prune);
    EXPECT_EQ(prune->kind, PoolCommand::Kind::kEnd);
    EXPECT_EQ(prune->reason, EndReason::kPrune);
    EXPECT_EQ(parse_command(R"({"op":"finish"})")->kind, PoolCommand::Kind::kFinish);
}

TEST(PoolProtocol, SaysWhatIsWrongWithALine) {
    const std::pair<const char*, const char*> wrong[] = {
        {"run 7", "line 1"},
        {"[]", "\"op\""},
        {R"({"op":"pause","trial":"7","attempt":1})", "'pause' is not run, stop, prune or finish"},
        {R"({"op":"run","trial":"","attempt":1,"parameters":{}})", "\"trial\""},
        {R"({"op":"run","trial":7,"attempt":1,"parameters":{}})", "\"trial\""},
        {R"({"op":"stop","trial":"7"})", "\"attempt\""},
        {R"({"op":"run","trial":"7","attempt":1})", "\"parameters\""},
        {R"({"op":"run","trial":"7","attempt":1,"parameters":{"lr":[1]}})", "'lr'"},
        {R"({"op":"run","trial":"7","attempt":1,"report":3})", "\"report\""},
    };
    for (const auto& [line, what] : wrong) {
        const auto command = parse_command(line);
        ASSERT_FALSE(command) << line;
        EXPECT_THAT(command.error().message, HasSubstr(what)) << line;
    }
}

TEST(PoolProtocol, WritesLines) {
    const AttemptId id{"a \"b\"", 3};
    EXPECT_EQ(metrics_line(id, R"({"loss":1.5,"step":2})"),
              R"({"event":"metrics","trial":"a \"b\"","attempt":3,"values":{"loss":1.5,"step":2}})"
              "\n");
    const auto ended =
        parse_json(ended_line(id, {.code = ExitCode::kDone, .epochs = 2, .best = 0.5}));
    ASSERT_TRUE(ended);
    EXPECT_EQ((*ended)["trial"], "a \"b\"");
    EXPECT_EQ((*ended)["exit_code"], 0);
    EXPECT_EQ((*ended)["best"], 0.5);
    EXPECT_FALSE(ended->contains("message"));
}

/// What a pool says, for assertions.
class Lines {
public:
    Pool::Emit emit() {
        return [this](const std::string& line) {
            const std::lock_guard lock(mutex_);
            lines_.push_back(parse_json(line).value());
        };
    }
    std::vector<Json> of(const std::string& trial) {
        const std::lock_guard lock(mutex_);
        std::vector<Json> found;
        for (const Json& line : lines_)
            if (line.value("trial", "") == trial) found.push_back(line);
        return found;
    }
    int exit_code(const std::string& trial) { return of(trial).back().value("exit_code", -1); }

private:
    std::mutex mutex_;
    std::vector<Json> lines_;
};

TrialRequest request(const std::string& trial) {
    return {.id = {trial, 1}};
}

constexpr auto kLong = std::chrono::minutes(1);

TEST(Pool, RunsAllWithoutMoreThanItsThreadsAtOnce) {
    Lines lines;
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    Pool pool(
        3,
        [&](const TrialRequest&, const Pool::Emit&, const std::atomic<bool>&) -> TrialEnd {
            const int now = ++running;
            int seen = most.load();
            while (now > seen && !most.compare_exchange_weak(seen, now)) {
            }
            --running;
            return {};
        },
        lines.emit());
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.submit(request(std::to_string(i))));
    ASSERT_TRUE(pool.drain(kLong));
    for (int i = 0; i < 500; ++i) {
        const auto said = lines.of(std::to_string(i));
        ASSERT_EQ(said.size(), 2u);
        EXPECT_EQ(said[0]["event"], "started");
        EXPECT_EQ(said[1]["event"], "ended");
    }
    EXPECT_LE(most.load(), 3);
}

/// Trials run until they are told to end; `begun` counts those that have begun.
Pool::Run until_stopped(std::counting_semaphore<>& begun) {
    return [&](const TrialRequest&, const Pool::Emit&, const std::atomic<bool>& stop) -> TrialEnd {
        begun.release();
        while (!stop.load()) std::this_thread::yield();
        return {.code = ExitCode::kPreempted};
    };
}

TEST(Pool, EndsTheTrialItIsToldAndNoOther) {
    Lines lines;
    std::counting_semaphore<> begun(0);
    Pool pool(2, until_stopped(begun), lines.emit());
    for (const char* trial : {"a", "b", "c", "d"}) ASSERT_TRUE(pool.submit(request(trial)));
    begun.acquire();
    begun.acquire();
    pool.end({"d", 1}, EndReason::kPrune);  // waits
    pool.end({"a", 2}, EndReason::kPrune);  // another attempt
    pool.end({"a", 1}, EndReason::kPrune);
    begun.acquire();  // c took a's thread
    EXPECT_EQ(lines.exit_code("a"), 10);
    pool.end({"b", 1}, EndReason::kStop);
    pool.end({"c", 1}, EndReason::kStop);
    ASSERT_TRUE(pool.drain(kLong));
    EXPECT_EQ(lines.exit_code("b"), 11);
    EXPECT_EQ(lines.exit_code("c"), 11);
    EXPECT_EQ(lines.exit_code("d"), 10);
    EXPECT_EQ(lines.of("d").size(), 1u) << "it never started";
}

TEST(Pool, ATrialThatThrowsEndsAlone) {
    Lines lines;
    Pool pool(
        1,
        [](const TrialRequest& trial, const Pool::Emit&, const std::atomic<bool>&) -> TrialEnd {
            if (trial.id.trial == "throws") throw std::runtime_error("what it says");
            if (trial.id.trial == "memory") throw std::bad_alloc();
            return {};
        },
        lines.emit());
    for (const char* trial : {"throws", "memory", "fine"}) ASSERT_TRUE(pool.submit(request(trial)));
    ASSERT_TRUE(pool.drain(kLong));
    EXPECT_EQ(lines.exit_code("throws"), 1);
    EXPECT_EQ(lines.of("throws").back()["message"], "what it says");
    EXPECT_EQ(lines.exit_code("memory"), 12);
    EXPECT_EQ(lines.exit_code("fine"), 0);
}

TEST(Pool, RefusesAnAttemptThatIsThereAndTakesTheNextOne) {
    Lines lines;
    std::counting_semaphore<> begun(0);
    Pool pool(1, until_stopped(begun), lines.emit());
    ASSERT_TRUE(pool.submit(request("a")));
    const auto again = pool.submit(request("a"));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::kResourceAlreadyExists);
    EXPECT_TRUE(pool.submit({.id = {"a", 2}}));
    EXPECT_FALSE(pool.drain(std::chrono::milliseconds(1)));
    pool.end_all(EndReason::kStop);
    ASSERT_TRUE(pool.drain(kLong));
    EXPECT_TRUE(pool.submit(request("a"))) << "it has ended";
}

TEST(Pool, ItsEndStopsWhatRunsAndWhatWaits) {
    Lines lines;
    std::counting_semaphore<> begun(0);
    {
        Pool pool(1, until_stopped(begun), lines.emit());
        ASSERT_TRUE(pool.submit(request("a")));
        ASSERT_TRUE(pool.submit(request("b")));
        begun.acquire();
    }
    EXPECT_EQ(lines.exit_code("a"), 11);
    EXPECT_EQ(lines.exit_code("b"), 11);
}

}  // namespace
}  // namespace tune::train
