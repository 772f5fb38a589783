// Thousands of random schedules of one study: suggestions that begin and end whenever they like,
// reports, ends, losses, pauses, other samplers and restarts, in virtual time and without a disk.
// After every step the invariants of study.h hold; in the end the budget is exact, and a replay
// gives every suggestion again.
// TUNE_SCHEDULES sets how many (default 1000). A failure names its seed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "tests/tuner/study/world.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner::schedules_test {
namespace {

constexpr std::size_t kTrials = 14;
constexpr int kSteps = 90;

/// One study and everything that may happen to it.
class Schedule {
public:
    explicit Schedule(std::uint32_t seed) : random_(seed) {
        static constexpr const char* kSpaces[] = {
            R"({"x": {"float": [0, 1]}, "c": {"choice": ["a", "b"]}})",
            R"({"x": {"int": [1, 4]}, "c": {"choice": ["a", "b", "c"]}})"};
        const std::string pruner = pick(2) == 0 ? "none" : "median";
        StudyConfig config = World::config(
            R"("budget": {"trials": 14, "parallel": 5}, "retry": {"max": 1, "on": ["failed"]},)"
            R"("space": )" +
            std::string(kSpaces[pick(2)]) + R"(, "pruner": {"type": ")" + pruner + R"("},)" +
            sampler());
        StudyIdentity identity{.name = "s",
                               .id = "0123456789abcdef",
                               .run_id = "r",
                               .experiment_id = 1,
                               .seed = 7,
                               .created_ms = 1};
        config.sampler.seed = identity.seed;
        study_ = std::make_unique<Study>(std::move(identity), std::move(config));
        study_->suggestions().suggest_elsewhere();
        write_study();
    }

    void play() {
        for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
            now_ms_ += static_cast<std::int64_t>(pick(1000));
            switch (pick(14)) {
                case 0:
                case 1: begin({}); break;
                case 2:
                case 3:
                case 4: end_suggestion(); break;
                case 5:
                case 6: start(); break;
                case 7: report(); break;
                case 8:
                case 9: finish(); break;
                case 10: lose(); break;
                case 11:
                    begin({.what = SuggestionWish::For::kGiven,
                           .fixed = study_->config().space.empty_point()});
                    break;
                case 12: pause_or_resume(); break;
                case 13:
                    if (pick(3) == 0) restart();
                    if (pick(4) == 0) change_sampler();
                    break;
            }
            check();
        }
        drive_to_the_end();
        check();
        replay();
    }

private:
    std::size_t pick(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }
    std::string sampler() {
        static constexpr const char* kSamplers[] = {"random", "tpe", "qmc", "nsga2", "cmaes"};
        return R"("sampler": {"seed": 7, "type": ")" + std::string(kSamplers[pick(5)]) + "\"}";
    }
    Trial* any(const std::set<std::uint64_t>& numbers) {
        if (numbers.empty()) return nullptr;
        return study_->find(*std::next(numbers.begin(), static_cast<long>(pick(numbers.size()))));
    }

    void begin(const SuggestionWish& wish) {
        if (study_->suggestions().is_suggesting() || !study_->budget().check_enqueue()) return;
        if (wish.what == SuggestionWish::For::kTrial &&
            (!study_->trials().queued().empty() || !study_->may_start(now_ms_)))
            return;
        work_ = study_->suggestions().begin(wish, 1 + pick(6));
    }
    void end_suggestion() {
        if (!work_) return;
        const SuggestionWork work = *std::exchange(work_, std::nullopt);
        const Suggestion made = suggest(work);
        if (!study_->suggestions().end(work, made) || !work.is_up_to_date || !made.point) return;
        const Result<Trial*> added = study_->add_suggested(work, made, now_ms_);
        ASSERT_TRUE(added.has_value()) << added.error().text();
        if (work.wish.what == SuggestionWish::For::kGiven)
            study_->note_enqueued(**added, work.wish.fixed, "");
        (*added)->run_id = "run-" + std::to_string((*added)->number);
        write(**added);
    }
    void start() {
        if (study_->trials().queued().empty() || !study_->may_start(now_ms_)) return;
        Trial& trial = study_->start({.holder = {.agent_id = "a", .ttl_ms = 10},
                                      .worker = "w",
                                      .ask_request = {},
                                      .now_ms = now_ms_});
        EXPECT_GT(trial.attempt, last_attempt_[trial.number]) << "attempts only grow";
        last_attempt_[trial.number] = trial.attempt;
        write(trial);
    }
    void report() {
        if (Trial* trial = any(study_->trials().running()))
            study_->report(
                *trial, "loss",
                {static_cast<std::int64_t>(pick(5)), now_ms_, static_cast<double>(pick(100))},
                trial->attempt);
    }
    void finish() {
        Trial* trial = any(study_->trials().running());
        if (trial == nullptr) return;
        constexpr Outcome kOutcomes[] = {Outcome::kDone,   Outcome::kDone,     Outcome::kPruned,
                                         Outcome::kFailed, Outcome::kOom,      Outcome::kPreempted,
                                         Outcome::kDone,   Outcome::kCancelled};
        if (pick(2) == 0)
            study_->report(*trial, "loss", {9, now_ms_, static_cast<double>(pick(100))},
                           trial->attempt);
        study_->settle(*trial, {.request_id = "f", .outcome = kOutcomes[pick(8)]}, now_ms_);
        write(*trial);
    }
    void lose() {
        if (Trial* trial = any(study_->trials().running())) {
            study_->lose_attempt(*trial, "silent", now_ms_);
            write(*trial);
        }
    }
    void pause_or_resume() {
        const bool is_paused = study_->state() == StudyState::kPaused;
        if (study_->state() != StudyState::kCompleted)
            study_->set_state(is_paused ? StudyState::kRunning : StudyState::kPaused);
        write_study();
    }
    /// What is being suggested then counts for nothing.
    void change_sampler() {
        StudyConfig config = study_->config();
        config.sampler = World::config(sampler()).sampler;
        study_->reconfigure(std::move(config));
        write_study();
    }

    void write(const Trial& trial) {
        if (study_->take_excused()) write_study();
        const tracker::Command command = trial_document_command(*study_, trial);
        trials_[trial.number] = std::get<tracker::PutDocument>(command).json_text;
    }
    void write_study() {
        const auto commands = update_study_commands(*study_, now_ms_);
        document_ = std::get<tracker::PutDocument>(commands.back()).json_text;
    }
    /// The server dies: what is being suggested is lost, what was written is not.
    void restart() {
        work_.reset();
        Result<std::unique_ptr<Study>> read = study_from_document(document_);
        ASSERT_TRUE(read.has_value()) << read.error().text();
        study_ = std::move(read).value();
        for (Trial& trial : read_trials()) {
            ASSERT_TRUE(study_->definition().bring_up(trial).has_value());
            study_->restore(std::move(trial));
        }
        while (study_->pruner().is_behind() && !study_->pruner().replay(study_->trials(), 100)) {
        }
        study_->suggestions().suggest_elsewhere();
    }
    std::vector<Trial> read_trials() {
        std::vector<Trial> trials;
        for (const auto& [number, text] : trials_) {
            Result<Trial> trial = trial_from_document(text);
            EXPECT_TRUE(trial.has_value()) << trial.error().text();
            trials.push_back(std::move(trial).value());
        }
        return trials;
    }

    void check() {
        EXPECT_LE(study_->trials().size() - study_->beginning().count(), kTrials);
        EXPECT_EQ(study_->trials().size(), trials_.size()) << "no trial is lost, none comes twice";
        EXPECT_LE(study_->trials().running().size(), 5u);
        std::set<std::int64_t> positions;
        for (const Trial& trial : study_->trials()) {
            EXPECT_EQ(study_->trials().running().contains(trial.number),
                      trial.state == TrialState::kRunning);
            EXPECT_EQ(study_->trials().queued().contains(trial.number),
                      trial.state == TrialState::kQueued);
            EXPECT_TRUE(positions.insert(trial.asked_at).second) << "a position is given once";
            if (!is_ended(trial.state)) continue;
            EXPECT_TRUE(positions.insert(trial.ended_at).second) << "a position is given once";
            EXPECT_GT(trial.ended_at, trial.asked_at);
            const auto [known, is_new] = ended_.try_emplace(trial.number, trial.state, trial.value);
            EXPECT_TRUE(known->second == std::pair(trial.state, trial.value))
                << "an ended trial never changes again";
        }
    }

    void drive_to_the_end() {
        if (study_->state() == StudyState::kPaused) pause_or_resume();
        for (int round = 0; round < 2000 && !::testing::Test::HasFailure(); ++round) {
            now_ms_ += 10;
            end_suggestion();
            if (study_->complete_if_done(now_ms_)) return;
            if (study_->suggestions().needs_look()) begin({.what = SuggestionWish::For::kLook});
            begin({});
            start();
            if (pick(2) == 0) continue;
            if (Trial* trial = any(study_->trials().running())) {
                study_->report(*trial, "loss", {9, now_ms_, 1}, trial->attempt);
                study_->settle(*trial, {.outcome = Outcome::kDone}, now_ms_);
                write(*trial);
            }
        }
        FAIL() << "the study never ends";
    }
    void replay() {
        write_study();
        const auto read = study_from_document(document_);
        ASSERT_TRUE(read.has_value());
        const auto report = tuner::replay(**read, read_trials(), [] { return false; });
        ASSERT_TRUE(report.has_value()) << report.error().text();
        for (const ReplayDifference& other : report->differences)
            ADD_FAILURE() << "trial " << other.number << ", " << other.parameter << ": recorded "
                          << other.recorded << ", replayed " << other.replayed;
        EXPECT_EQ(report->compared + report->given, trials_.size());
    }

    std::mt19937 random_;
    std::unique_ptr<Study> study_;
    std::optional<SuggestionWork> work_;
    std::int64_t now_ms_ = 1000;
    std::string document_;
    std::map<std::uint64_t, std::string> trials_;
    std::map<std::uint64_t, std::pair<TrialState, std::optional<double>>> ended_;
    std::map<std::uint64_t, int> last_attempt_;
};

TEST(Schedules, InvariantsHoldAndEverySuggestionComesOutAgain) {
    const char* const wanted = std::getenv("TUNE_SCHEDULES");
    const int count = wanted != nullptr ? std::atoi(wanted) : 1000;
    for (int seed = 0; seed < count && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Schedule(static_cast<std::uint32_t>(seed)).play();
    }
}

}  // namespace
}  // namespace tune::tuner::schedules_test
