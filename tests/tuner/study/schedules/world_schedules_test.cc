// Random schedules of several studies on a real store, in virtual time: clients and agents ask,
// report, end, renew and fall silent, values are logged by clocks that are ahead and behind and
// between attempts, the disk is full for a while, the server stops and comes back. What is said of
// trials is compared with a model that knows only what was answered:
//  - a study has never more trials than its budget, and in the end exactly as many, all ended;
//  - a trial ends once, and neither a restart nor anybody's late word changes it;
//  - its value is that of what its attempts logged while they were the current ones.
// TUNE_WORLD_SCHEDULES sets how many (default 300, or as many as half a minute has room for). A
// failure names its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

constexpr int kRefusalsMax = 20;
constexpr int kStepCount = 70;
constexpr std::int64_t kHour_ms = 3'600'000;
const std::vector<std::string> kStudies = {"one", "two", "three"};
const std::vector<std::string> kAgents = {"a", "b"};

using TrialKey = std::pair<std::string, std::uint64_t>;  // of a trial: study and number

/// An attempt in somebody's hands.
struct HeldAttempt {
    TrialKey trial;
    std::string run_id;
    int attempt = 0;
    std::string agent;  ///< empty: a client's
};

/// How a trial stands, as the server says.
struct TrialStanding {
    TrialState state = TrialState::kQueued;
    int attempt = 0;
    std::optional<double> value;
    std::string run_id;
    std::string reason;
    bool operator==(const TrialStanding&) const = default;
};

/// What is known of a trial from what was answered.
struct KnownTrial {
    struct Row {
        int attempt = 0;
        std::int64_t step = 0;
        double value = 0;
    };
    std::vector<Row> rows;  ///< in the order of the log
    int attempt = 0;        ///< the last one that was handed out
    int failures = 0;
    int failed_attempt = 0;
    std::optional<TrialStanding> end;     ///< as it was when it was first seen to have ended
    std::pair<int, int> before_end = {};  ///< failures and failed_attempt
    bool is_unanswered = false;  ///< its end was reported, and nobody knows whether it arrived

    /// What `best` of a metric to be minimized comes to; nothing: it was not measured.
    [[nodiscard]] std::optional<double> value() const {
        std::vector<Row> counting;
        int last = 0;
        for (const Row& row : rows) {
            if (row.attempt > last)
                std::erase_if(counting, [&](const Row& one) { return one.step >= row.step; });
            last = std::max(last, row.attempt);
            counting.push_back(row);
        }
        if (counting.empty() || last <= failed_attempt) return std::nullopt;
        return std::min_element(counting.begin(), counting.end(),
                                [](const Row& a, const Row& b) { return a.value < b.value; })
            ->value;
    }
};

class WorldSchedule {
public:
    explicit WorldSchedule(std::uint32_t seed) : random_(seed), world_(folder()) {
        world_.close();
        world_.set_database_bytes_max(6'000'000);
        world_.open();
        for (const std::string& study : kStudies) {
            budgets_[study] = 3 + pick(5);
            const std::string sampler = pick(2) == 0 ? "random" : "tpe";
            Answer<Studies::Created> answer;
            world_.studies().create(
                World::config(R"("study": ")" + study + R"(", "budget": {"trials": )" +
                              std::to_string(budgets_[study]) +
                              R"(, "parallel": 4}, "retry": {"max": 1, "on": ["failed"]}, )" +
                              R"("stop_after_failures": 0, "sampler": {"seed": 5, "type": ")" +
                              sampler + "\"}"),
                answer.done());
            EXPECT_TRUE(answer.get().has_value());
        }
        for (const std::string& agent : kAgents) register_agent(agent);
    }

    void play() {
        for (int step = 0; step < kStepCount && !::testing::Test::HasFailure(); ++step) {
            SCOPED_TRACE("step " + std::to_string(step));
            take_step();
            check();
        }
        if (::testing::Test::HasFailure()) return;
        drive_to_the_end();
        check();
        const auto before = all_trials();
        world_.reopen();
        EXPECT_EQ(all_trials(), before) << "another start changes nothing";
    }

private:
    static std::filesystem::path folder() {
        const std::filesystem::path memory = "/dev/shm";  // no disk to wait for
        return std::filesystem::is_directory(memory) ? memory
                                                     : std::filesystem::temp_directory_path();
    }
    std::size_t pick(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }
    const std::string& any_study() { return kStudies[pick(kStudies.size())]; }
    const std::string& any_agent() { return kAgents[pick(kAgents.size())]; }

    void take_step() {
        switch (pick(17)) {
            case 0:
            case 1: ask(any_study()); break;
            case 2:
            case 3:
            case 4: lease(any_agent()); break;
            case 5:
            case 6:
            case 7: log_current(); break;
            case 8: log_between(); break;
            case 9:
            case 10:
            case 11: end_any(); break;
            case 12: speak_late(); break;
            case 13: renew(); break;
            case 14: world_.advance_ms(static_cast<std::int64_t>(1 + pick(World::kTtl_ms))); break;
            case 15:
                if (pick(3) == 0) change_study();
                if (pick(3) == 0) restart();
                break;
            case 16:
                if (is_full_)
                    free_disk();
                else if (pick(2) == 0)
                    fill_disk();
                break;
        }
    }

    // --- what is handed out ---

    void ask(const std::string& study) {
        Answer<std::vector<AskedTrial>> answer;
        const std::int64_t ttl_ms = pick(2) == 0 ? 0 : World::kTtl_ms;
        world_.studies().clients().ask({.study = study,
                                        .count = static_cast<int>(1 + pick(2)),
                                        .worker = "client",
                                        .lease_ttl_ms = ttl_ms},
                                       answer.done());
        const auto asked = answer.get();
        EXPECT_TRUE(asked.has_value() || is_full_) << asked.error().text();
        if (!asked) return;
        for (const AskedTrial& trial : *asked)
            take({{study, trial.number}, trial.run_id, trial.attempt, ""});
    }
    void lease(const std::string& agent) {
        const auto reply = world_.lease(agent, static_cast<int>(1 + pick(2)));
        if (!reply && reply.error().code == Code::kResourceDoesNotExist)
            return register_agent(agent);  // it was silent for too long
        if (reply) refusals_left_ = 0;
        EXPECT_TRUE(reply.has_value() || is_full_ || refusals_left_-- > 0) << reply.error().text();
        if (!reply) return;
        for (const Lease& one : reply->leases)
            take({{one.study, static_cast<std::uint64_t>(one.number)},
                  one.run_id,
                  one.attempt,
                  agent});
    }
    void take(HeldAttempt held) {
        KnownTrial& known = known_[held.trial];
        EXPECT_FALSE(known.end.has_value()) << "an ended trial was handed out";
        EXPECT_GT(held.attempt, known.attempt) << "attempts only grow";
        known.attempt = held.attempt;
        held_.push_back(std::move(held));
    }

    // --- what is said of it ---

    /// One that is still its holder's, as the server sees it; nothing: there is none.
    std::optional<HeldAttempt> any_current() {
        std::vector<HeldAttempt> current;
        for (const HeldAttempt& held : held_)
            if (is_current(held)) current.push_back(held);
        if (current.empty()) return std::nullopt;
        return current[pick(current.size())];
    }
    bool is_current(const HeldAttempt& held) {
        const TrialStanding seen = look(held.trial);
        return seen.state == TrialState::kRunning && seen.attempt == held.attempt;
    }
    KnownTrial::Row any_row(int attempt) {
        return {attempt, static_cast<std::int64_t>(pick(5)), static_cast<double>(pick(1000))};
    }
    std::int64_t any_clock_ms() {
        return (static_cast<std::int64_t>(pick(3)) - 1) * kHour_ms +
               static_cast<std::int64_t>(pick(1000));
    }
    bool log(const std::string& run_id, const KnownTrial::Row& row) {
        tracker::LogBatch batch{.run_id = run_id};
        batch.metrics.push_back({.key = "loss",
                                 .value = row.value,
                                 .timestamp_ms = ++time_ms_ + any_clock_ms(),
                                 .step = row.step});
        const bool is_logged = world_.store().execute(std::move(batch)).has_value();
        EXPECT_TRUE(is_logged || is_full_);
        return is_logged;
    }
    void log_current() {
        const auto held = any_current();
        if (!held) return;
        const KnownTrial::Row row = any_row(held->attempt);
        if (log(held->run_id, row)) known_[held->trial].rows.push_back(row);
    }
    /// Of a trial that waits for its next attempt, or has ended: by who does not know it yet.
    void log_between() {
        if (held_.empty() || is_full_) return;
        const HeldAttempt& held = held_[pick(held_.size())];
        if (look(held.trial).state == TrialState::kRunning) return;
        log(held.run_id, any_row(held.attempt));
    }
    /// An attempt that was given to another, or has ended, has no say.
    void speak_late() {
        std::vector<HeldAttempt> late;
        for (const HeldAttempt& held : held_)
            if (!is_current(held) && !known_[held.trial].is_unanswered) late.push_back(held);
        if (late.empty() || is_full_) return;
        const HeldAttempt held = late[pick(late.size())];
        if (held.agent.empty()) {
            Answer<std::optional<Action>> answer;
            world_.studies().clients().report(
                {.trial = {held.trial.first, held.trial.second, held.attempt}, .value = -1000},
                answer.done());
            const auto reported = answer.get();
            EXPECT_TRUE(!reported || *reported == Action::kStop);
            return;
        }
        Answer<ReportReply> answer;
        world_.studies().agents().report_metrics(
            held.agent,
            {.reports = {{.run_id = held.run_id,
                          .attempt = held.attempt,
                          .metrics = {{.key = "loss", .value = -1000, .step = 1}}}}},
            answer.done());
        const auto reply = answer.get();
        EXPECT_FALSE(reply.has_value() && reply->results[0].ok);
    }
    void end_any() {
        if (const auto held = any_current()) end(*held);
    }
    void end(const HeldAttempt& held) {
        KnownTrial& known = known_[held.trial];
        if (known.is_unanswered) return;
        const std::string request = "end-" + std::to_string(++requests_);
        const std::size_t how = pick(6);
        const Outcome outcome = how < 3    ? Outcome::kDone
                                : how == 3 ? Outcome::kFailed
                                : how == 4 ? Outcome::kPruned
                                           : Outcome::kPreempted;
        const bool is_answered =
            held.agent.empty() ? tell(held, outcome, request) : finish(held, outcome, request);
        // A client is told that a value is missing, and its attempt goes on.
        if (held.agent.empty() && outcome == Outcome::kDone && !known.value()) return;
        known.before_end = {known.failures, known.failed_attempt};
        if (outcome == Outcome::kFailed && ++known.failures <= 1)
            known.failed_attempt = held.attempt;
        if (is_answered) return;
        EXPECT_TRUE(is_full_);
        known.is_unanswered = true;
    }
    bool tell(const HeldAttempt& held, Outcome outcome, const std::string& request) {
        const TrialState state = outcome == Outcome::kDone     ? TrialState::kComplete
                                 : outcome == Outcome::kFailed ? TrialState::kFailed
                                 : outcome == Outcome::kPruned ? TrialState::kPruned
                                                               : TrialState::kCancelled;
        const auto told = world_.tell({.trial = {held.trial.first, held.trial.second, held.attempt},
                                       .request_id = request,
                                       .state = state});
        return told.has_value();
    }
    bool finish(const HeldAttempt& held, Outcome outcome, const std::string& request) {
        return world_
            .finish(held.agent, {held.run_id, held.attempt},
                    {.request_id = request, .outcome = outcome, .reason = "why"})
            .has_value();
    }
    void renew() {
        const std::string& agent = any_agent();
        const auto beat = world_.heartbeat(agent, held_by(agent));
        if (!beat && beat.error().code == Code::kResourceDoesNotExist) register_agent(agent);
        if (const auto held = any_current(); held && held->agent.empty()) {
            Answer<std::optional<Action>> answer;
            world_.studies().clients().renew({held->trial.first, held->trial.second, held->attempt},
                                             answer.done());
            EXPECT_TRUE(answer.get().has_value());
        }
    }
    std::vector<AttemptId> held_by(const std::string& agent) {
        std::vector<AttemptId> attempts;
        for (const HeldAttempt& held : held_)
            if (held.agent == agent && is_current(held))
                attempts.push_back({held.run_id, held.attempt});
        return attempts;
    }
    void register_agent(const std::string& agent) {
        EXPECT_TRUE(world_.register_agent(agent, held_by(agent)).has_value());
    }

    // --- the world ---

    void change_study() {
        Answer<void> answer;
        const std::string& study = any_study();
        const bool pauses = pick(2) == 0;
        world_.studies().change(study, pauses ? Studies::Change::kPause : Studies::Change::kResume,
                                answer.done());
        static_cast<void>(answer.get());  // a completed study is not paused
    }
    void restart() {
        if (!is_full_) settle();
        // What was not on disk has not happened.
        for (auto& [name, known] : known_)
            if (std::exchange(known.is_unanswered, false))
                std::tie(known.failures, known.failed_attempt) = known.before_end;
        world_.reopen();
        for (const std::string& agent : kAgents) register_agent(agent);
    }
    void fill_disk() {
        settle();
        world_.fill_disk();
        is_full_ = true;
    }
    /// And all that was decided meanwhile is written, so that the log says what memory says.
    void free_disk() {
        world_.free_disk();
        is_full_ = false;
        refusals_left_ = kRefusalsMax;
        for (int i = 0; i < 3; ++i) {
            world_.advance_ms(1000);
            settle();
        }
        // Whether they arrived is seen now: what is running has not ended.
        for (auto& [name, known] : known_) {
            if (!known.is_unanswered) continue;
            known.is_unanswered = false;
            const TrialStanding seen = look(name);
            if (is_ended(seen.state)) note_end(known, seen);
        }
    }
    void settle() {
        EXPECT_TRUE(world_.store().execute(tracker::PutDocument{"settled", "", "{}"}).has_value());
        world_.store().wait_for_observers();
    }

    // --- the comparison ---

    std::map<TrialKey, TrialStanding> all_trials() {
        std::map<TrialKey, TrialStanding> found;
        for (const std::string& name : kStudies)
            EXPECT_TRUE(world_.studies()
                            .read(name,
                                  [&](const Study& study) {
                                      for (const Trial& trial : study.trials())
                                          found[{name, trial.number}] = {trial.state, trial.attempt,
                                                                         trial.value, trial.run_id,
                                                                         trial.reason};
                                  })
                            .has_value());
        return found;
    }
    TrialStanding look(const TrialKey& name) { return all_trials()[name]; }

    void check() {
        std::map<std::string, std::size_t> counts;
        std::map<std::string, std::size_t> running;
        for (const auto& [name, seen] : all_trials()) {
            ++counts[name.first];
            running[name.first] += seen.state == TrialState::kRunning ? 1 : 0;
            KnownTrial& known = known_[name];
            SCOPED_TRACE("trial " + std::to_string(name.second) + " of " + name.first);
            if (known.end) {
                EXPECT_EQ(seen, *known.end) << "it had ended already";
            } else if (is_ended(seen.state) && !is_full_) {
                note_end(known, seen);
            }
        }
        for (const auto& [study, count] : counts) EXPECT_LE(count, budgets_[study]);
        for (const auto& [study, count] : running) EXPECT_LE(count, 4u);
    }
    void note_end(KnownTrial& known, const TrialStanding& seen) {
        known.end = seen;
        if (seen.state == TrialState::kComplete) {
            EXPECT_EQ(seen.value, known.value());
        } else if (seen.state == TrialState::kFailed) {
            const bool is_missing = !known.value().has_value();
            EXPECT_TRUE(is_missing || known.failures > 1 || seen.reason.starts_with("given up"))
                << seen.reason;
        }
    }

    void drive_to_the_end() {
        if (is_full_) free_disk();
        for (int round = 0; round < 400; ++round) {
            for (const std::string& study : kStudies) {
                Answer<void> resumed;
                world_.studies().change(study, Studies::Change::kResume, resumed.done());
                static_cast<void>(resumed.get());
                ask(study);
            }
            check();
            while (const auto held = any_current()) {
                const KnownTrial::Row row = any_row(held->attempt);
                if (log(held->run_id, row)) known_[held->trial].rows.push_back(row);
                EXPECT_TRUE(held->agent.empty() ? tell(*held, Outcome::kDone, "last")
                                                : finish(*held, Outcome::kDone, "last"));
                check();
                if (::testing::Test::HasFailure()) return;
            }
            if (is_all_ended()) return;
            world_.advance_ms(World::kTtl_ms + 1);  // what is in nobody's hands
        }
        FAIL() << "the studies never end";
    }
    bool is_all_ended() {
        for (const std::string& name : kStudies) {
            bool is_completed = false;
            EXPECT_TRUE(world_.studies()
                            .read(name,
                                  [&](const Study& study) {
                                      is_completed = study.state() == StudyState::kCompleted;
                                      if (!is_completed) return;
                                      EXPECT_EQ(study.trials().size(), budgets_[name]);
                                      EXPECT_TRUE(study.trials().running().empty());
                                      EXPECT_TRUE(study.trials().queued().empty());
                                  })
                            .has_value());
            if (!is_completed) return false;
        }
        return true;
    }

    std::mt19937 random_;
    World world_;
    std::map<std::string, std::size_t> budgets_;
    std::map<TrialKey, KnownTrial> known_;
    std::vector<HeldAttempt> held_;
    bool is_full_ = false;
    int refusals_left_ = 0;  // until a write that waits has found the disk to work again
    int requests_ = 0;
    std::int64_t time_ms_ = 1'700'000'000'000;
};

TEST(WorldSchedules, WhatIsSaidOfTrialsIsWhatTheirAttemptsDid) {
    const char* const wanted = std::getenv("TUNE_WORLD_SCHEDULES");
    const int count = wanted != nullptr ? std::atoi(wanted) : 300;
    const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    int played = 0;
    for (int seed = 0; seed < count && !HasFailure(); ++seed, ++played) {
        if (wanted == nullptr && seed >= 20 && std::chrono::steady_clock::now() > enough) break;
        SCOPED_TRACE("seed " + std::to_string(seed));
        WorldSchedule(static_cast<std::uint32_t>(seed)).play();
    }
    RecordProperty("schedules", played);
}

}  // namespace
}  // namespace tune::tuner
