// Random interleavings of everything that happens to trials, with restarts of the server: no trial
// is lost, none runs twice at once, the budget is exact, and every suggestion comes out again.
// Seeded, so a failure can be replayed. TUNE_INTERLEAVINGS sets how many (default 12).

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

constexpr std::uint64_t kTrials = 25;
constexpr int kSteps = 260;

/// Plays agents and clients against a server, and keeps its own book of who may be running what.
class Player {
public:
    explicit Player(std::uint32_t seed) : random_(seed) {
        static constexpr const char* kSamplers[] = {"random", "tpe",   "gp",  "auto",
                                                    "cmaes",  "nsga2", "qmc", "tpe"};
        static constexpr const char* kPruners[] = {
            R"({"type": "median", "startup": 3})", R"({"type": "asha"})",
            R"({"type": "hyperband", "max": 9})", R"({"type": "patience", "wait": 1})",
            R"({"type": "threshold", "upper": 0.9})"};
        EXPECT_TRUE(world_
                        .create(R"("stop_after_failures": 0,
                                    "budget": {"trials": 25, "parallel": 6},
                                   "retry": {"max": 1, "on": ["failed"]},
                                   "sampler": {"seed": 9, "type": ")" +
                                std::string(kSamplers[seed % std::size(kSamplers)]) +
                                "\"}, \"pruner\": " + kPruners[seed % std::size(kPruners)])
                        .has_value());
        for (const char* agent : {"a", "b", "c"}) register_agent(agent);
    }

    void play() {
        for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
            switch (pick(12)) {
                case 0:
                case 1:
                case 2: lease(); break;
                case 3: log(); break;
                case 4:
                case 5: finish(); break;
                case 6: heartbeat(); break;
                case 7: ask_or_tell(); break;
                case 8: lose(); break;
                case 9: restart(); break;
                case 10: enqueue(); break;
                case 11: pause_and_resume(); break;
            }
            check();
        }
        drive_to_the_end();
        check();
        EXPECT_EQ(world_.state(), StudyState::kCompleted);
        EXPECT_EQ(world_.count(TrialState::kQueued) + world_.count(TrialState::kRunning), 0u);
        std::size_t ended = 0;
        for (const TrialState state : {TrialState::kComplete, TrialState::kPruned,
                                       TrialState::kFailed, TrialState::kCancelled})
            ended += world_.count(state);
        EXPECT_EQ(ended, kTrials) << "exactly the budget";
        Answer<ReplayReport> replayed;
        world_.studies().replay("s", replayed.done());
        EXPECT_EQ(replayed.get()->differing, 0u) << "every suggestion comes out again";
    }

private:
    struct Held {
        std::string agent;  // empty: a client
        AttemptId attempt;
        std::uint64_t number = 0;
        bool is_stale = false;  // the server has ended it; the holder may not know yet
    };

    std::size_t pick(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }
    std::string any_agent() { return std::string(1, static_cast<char>('a' + pick(3))); }
    Held* any_held(bool of_agents) {
        std::vector<Held*> found;
        for (Held& held : held_)
            if (held.agent.empty() != of_agents) found.push_back(&held);
        return found.empty() ? nullptr : found[pick(found.size())];
    }

    void register_agent(const std::string& agent) {
        std::vector<AttemptId> running;
        for (const Held& held : held_)
            if (held.agent == agent) running.push_back(held.attempt);
        ASSERT_TRUE(world_.register_agent(agent, running).has_value());
    }

    /// A new attempt: nobody else may hold a live one of this trial.
    void take(const Held& fresh) {
        for (const Held& held : held_)
            EXPECT_FALSE(held.number == fresh.number && !held.is_stale)
                << "trial " << fresh.number << " runs twice at once";
        EXPECT_GT(fresh.attempt.attempt, last_attempt_[fresh.number]) << "attempts only grow";
        last_attempt_[fresh.number] = fresh.attempt.attempt;
        held_.push_back(fresh);
    }

    void lease() {
        const std::string agent = any_agent();
        const auto reply = world_.lease(agent, static_cast<int>(1 + pick(3)),
                                        "lease-" + std::to_string(++requests_));
        ASSERT_TRUE(reply.has_value()) << reply.error().text();
        for (const Lease& one : reply->leases)
            take({agent, token(one), static_cast<std::uint64_t>(one.number), false});
    }

    void log() {
        if (const Held* held = any_held(pick(2) == 0))
            world_.log(held->attempt.run_id, "loss", static_cast<std::int64_t>(pick(5)),
                       static_cast<double>(pick(100)));
    }

    void drop(const Held* held) {
        std::erase_if(held_, [held](const Held& one) { return &one == held; });
    }

    void finish() {
        Held* held = any_held(true);
        if (held == nullptr) return;
        constexpr Outcome kOutcomes[] = {Outcome::kDone,   Outcome::kDone,      Outcome::kDone,
                                         Outcome::kPruned, Outcome::kPreempted, Outcome::kFailed,
                                         Outcome::kOom};
        const FinishRequest request{.request_id = "end-" + std::to_string(++requests_),
                                    .outcome = kOutcomes[pick(std::size(kOutcomes))],
                                    .reason = "random"};
        const std::string journal = world_.journal();
        const auto ended = world_.finish(held->agent, held->attempt, request);
        if (held->is_stale) {
            ASSERT_FALSE(ended.has_value());
            EXPECT_EQ(ended.error().code, Code::kResourceConflict);
            EXPECT_EQ(world_.journal(), journal) << "a stale word changed something";
        } else {
            ASSERT_TRUE(ended.has_value()) << ended.error().text();
            if (pick(3) == 0) {
                EXPECT_TRUE(world_.finish(held->agent, held->attempt, request).has_value())
                    << "a repeat is acknowledged";
            }
        }
        drop(held);
    }

    void heartbeat() {
        const std::string agent = any_agent();
        std::vector<AttemptId> running;
        std::set<std::string> stale;
        for (const Held& held : held_) {
            if (held.agent != agent) continue;
            running.push_back(held.attempt);
            if (held.is_stale)
                stale.insert(held.attempt.run_id + std::to_string(held.attempt.attempt));
        }
        const auto reply = world_.heartbeat(agent, running);
        ASSERT_TRUE(reply.has_value()) << reply.error().text();
        std::set<std::string> lost;
        for (const AttemptId& attempt : reply->lost)
            lost.insert(attempt.run_id + std::to_string(attempt.attempt));
        EXPECT_EQ(lost, stale);
        std::erase_if(held_, [&](const Held& held) {
            return held.agent == agent &&
                   lost.contains(held.attempt.run_id + std::to_string(held.attempt.attempt));
        });
    }

    void ask_or_tell() {
        Held* held = any_held(false);
        if (held == nullptr || pick(2) == 0) {
            const std::string request = "ask-" + std::to_string(++requests_);
            const int count = static_cast<int>(1 + pick(3));
            const auto asked = world_.ask(count, request);
            ASSERT_TRUE(asked.has_value()) << asked.error().text();
            for (const AskedTrial& one : *asked)
                take({"", {one.run_id, one.attempt}, one.number, false});
            if (pick(3) == 0 && static_cast<int>(asked->size()) == count) {
                if (pick(2) == 0) restart();
                const auto again = world_.ask(count, request);
                ASSERT_TRUE(again.has_value());
                ASSERT_EQ(again->size(), asked->size()) << "the same answer to the same request";
                for (std::size_t i = 0; i < asked->size(); ++i) {
                    EXPECT_EQ(again->at(i).number, asked->at(i).number);
                    EXPECT_EQ(again->at(i).attempt, asked->at(i).attempt);
                }
            }
            return;
        }
        if (pick(4) == 0) {
            ASSERT_TRUE(world_
                            .report(held->number, held->attempt.attempt,
                                    static_cast<std::int64_t>(pick(9)), 0.5)
                            .has_value());
            return;
        }
        TellRequest request{.trial = {"s", held->number, held->attempt.attempt},
                            .request_id = "tell-" + std::to_string(++requests_)};
        if (pick(5) == 0)
            request.state = TrialState::kPruned;
        else
            request.value = static_cast<double>(pick(100));
        for (std::size_t repeat = 0; repeat <= pick(2); ++repeat) {
            const auto told = world_.tell(request);
            ASSERT_TRUE(told.has_value()) << told.error().text();
        }
        drop(held);
    }

    void enqueue() {
        const std::string request = "enqueue-" + std::to_string(++requests_);
        const auto queued = world_.enqueue("{}", request);
        if (!queued) {
            EXPECT_EQ(queued.error().code, Code::kResourceExhausted) << "the budget, nothing else";
            return;
        }
        const auto again = world_.enqueue("{}", request);
        ASSERT_TRUE(again.has_value());
        EXPECT_EQ(again->number, queued->number);
    }

    void pause_and_resume() {
        if (world_.state() != StudyState::kRunning) return;
        ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
        EXPECT_TRUE(world_.ask()->empty());
        ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    }

    /// An agent is silent for longer than its leases; the others call.
    void lose() {
        const std::string silent = any_agent();
        for (int half = 0; half < 2; ++half) {
            for (const char* agent : {"a", "b", "c"}) {
                if (silent == agent) continue;
                ASSERT_TRUE(world_.heartbeat(agent, attempts_of(agent)).has_value());
            }
            world_.advance_ms(World::kTtl_ms / 2);
        }
        for (Held& held : held_)
            if (held.agent == silent) held.is_stale = true;
    }
    std::vector<AttemptId> attempts_of(const std::string& agent) {
        std::vector<AttemptId> attempts;
        for (const Held& held : held_)
            if (held.agent == agent) attempts.push_back(held.attempt);
        return attempts;
    }

    void restart() {
        world_.reopen();
        for (const char* agent : {"a", "b", "c"}) register_agent(agent);
        std::erase_if(held_, [](const Held& held) { return held.is_stale; });
    }

    void check() {
        ASSERT_TRUE(world_.studies()
                        .read("s",
                              [this](const Study& study) {
                                  EXPECT_LE(study.trials().size(), kTrials);
                                  std::set<std::uint64_t> running;
                                  for (const Held& held : held_)
                                      if (!held.is_stale) running.insert(held.number);
                                  EXPECT_EQ(study.trials().running(), running);
                                  std::size_t all = 0;
                                  for (const std::size_t count : study.trials().counts())
                                      all += count;
                                  EXPECT_EQ(all, study.trials().size());
                              })
                        .has_value());
    }

    void drive_to_the_end() {
        for (int round = 0; round < 400 && !::testing::Test::HasFailure(); ++round) {
            if (world_.state() == StudyState::kCompleted) return;
            while (Held* held = any_held(true)) {
                if (!held->is_stale) {
                    world_.log(held->attempt.run_id, "loss", 9, 1);
                    ASSERT_TRUE(world_
                                    .finish(held->agent, held->attempt,
                                            {.request_id = "end-" + std::to_string(++requests_),
                                             .outcome = Outcome::kDone})
                                    .has_value());
                }
                drop(held);
            }
            while (Held* held = any_held(false)) {
                ASSERT_TRUE(
                    world_.tell({.trial = {"s", held->number, held->attempt.attempt}, .value = 1})
                        .has_value());
                drop(held);
            }
            lease();
        }
    }

    World world_;
    std::mt19937 random_;
    std::vector<Held> held_;
    std::map<std::uint64_t, int> last_attempt_;
    int requests_ = 0;
};

class Interleaving : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Interleaving, NoTrialIsLostNoneRunsTwiceTheBudgetIsExact) {
    Player(GetParam()).play();
}

std::uint32_t seed_count() {
    const char* wanted = std::getenv("TUNE_INTERLEAVINGS");
    return wanted != nullptr ? static_cast<std::uint32_t>(std::atoi(wanted)) : 12;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Interleaving, ::testing::Range(0u, seed_count()));

}  // namespace
}  // namespace tune::tuner
