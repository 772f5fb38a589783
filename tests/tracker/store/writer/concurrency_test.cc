#include <atomic>
#include <condition_variable>
#include <latch>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using ConcurrencyTest = StoreTest;

TEST_F(ConcurrencyTest, ManySubmittersLoseNothing) {
    constexpr int kThreads = 8;
    constexpr int kEach = 200;
    const std::string shared = create_run();
    std::vector<std::string> own;
    for (int i = 0; i < kThreads; ++i) own.push_back(create_run());
    std::atomic<int> failures = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const std::string& id = own[static_cast<std::size_t>(t)];
            for (int i = 0; i < kEach; ++i) {
                const auto a = store_->execute(LogMetric{id, {"m", 1.0 * i, i, i}});
                const auto b =
                    store_->execute(LogBatch{.run_id = shared,
                                             .metrics = {{"m", 1.0 * t, i, i}},
                                             .params = {{"p" + std::to_string(t), "1"}}});
                const auto c = store_->get_run(id);
                const bool is_read = c && c->metrics.size() == 1 && c->metrics[0].step == i;
                if (!a || !b || !is_read) ++failures;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(store_->metric_history(shared, "m")->items.size(),
              static_cast<std::size_t>(kThreads * kEach));
    EXPECT_EQ(get(shared).params.size(), static_cast<std::size_t>(kThreads));
    for (const std::string& id : own)
        EXPECT_EQ(store_->metric_history(id, "m")->items.size(), static_cast<std::size_t>(kEach));
}

TEST_F(ConcurrencyTest, ObserversSeeEveryCommitOnceAndInOrder) {
    constexpr int kThreads = 4;
    constexpr int kEach = 100;
    const std::string id = create_run();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEach; ++i) {
                const auto done =
                    store_->execute(LogMetric{id, {"m" + std::to_string(t), 1.0 * i, i, i}});
                EXPECT_TRUE(done);
            }
        });
    for (std::thread& thread : threads) thread.join();
    store_->wait_for_observers();
    const auto positions = observer_.positions();
    for (std::size_t i = 0; i < positions.size(); ++i)
        EXPECT_EQ(positions[i], static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(positions.back(), store_->last_position());
    std::map<std::string, int> next;
    for (const MetricsLogged& event : observer_.of<MetricsLogged>())
        for (const Metric& metric : event.metrics) EXPECT_EQ(metric.step, next[metric.key]++);
    for (const auto& [key, count] : next) EXPECT_EQ(count, kEach) << key;
}

/// Blocks in on_commit until it may resume.
TEST_F(ConcurrencyTest, ObserversMayComeWhileCommitsAreObserved) {
    const std::string id = create_run();
    std::atomic<bool> stops = false;
    std::thread writer([&] {
        for (int i = 0; !stops; ++i)
            EXPECT_TRUE(store_->execute(LogMetric{id, {"busy", 0.5, i, i}}));
    });
    std::vector<std::unique_ptr<RecordingObserver>> late;
    for (int i = 0; i < 100; ++i) {
        late.push_back(std::make_unique<RecordingObserver>());
        store_->add_observer(late.back().get());
        EXPECT_TRUE(store_->execute(LogMetric{id, {"mine", 0.5, i, i}}));
    }
    stops = true;
    writer.join();
    store_->wait_for_observers();
    for (const auto& observer : late) {
        const std::vector<std::int64_t> positions = observer->positions();
        ASSERT_FALSE(positions.empty());
        for (std::size_t i = 1; i < positions.size(); ++i)
            EXPECT_EQ(positions[i], positions[i - 1] + 1);
        EXPECT_EQ(positions.back(), store_->last_position());
    }
    store_.reset();  // before the observers
}

class SlowObserver final : public CommitObserver {
public:
    void on_commit(const Commit&) override {
        std::unique_lock lock(mutex_);
        is_in_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return may_go_; });
    }
    void wait_until_called() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_in_; });
    }
    void release() {
        const std::lock_guard lock(mutex_);
        may_go_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_in_ = false;
    bool may_go_ = false;
};

TEST_F(ConcurrencyTest, AnswersComeBeforeObservers) {
    SlowObserver slow;
    store_->add_observer(&slow);
    const std::string id = create_run();  // answered although the observer never returned
    slow.wait_until_called();
    log(id, "a", 1);
    EXPECT_EQ(history(id, "a"), "0:1@0");
    slow.release();
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<MetricsLogged>().size(), 1u);
}

/// The writer waits in a completion, so that the queue fills.
class BlockedWriter {
public:
    explicit BlockedWriter(Store& store) {
        store.submit(PutDocument{"c", "k", "{}"}, [this](const Result<Outcome>&) {
            is_blocked_.count_down();
            may_go_.wait();
        });
        is_blocked_.wait();
    }
    void release() { may_go_.count_down(); }

private:
    std::latch is_blocked_{1};
    std::latch may_go_{1};
};

TEST_F(ConcurrencyTest, AFullQueueRefusesAtOnce) {
    const std::string id = create_run();
    BlockedWriter writer(*store_);
    std::atomic<int> accepted = 0;
    std::atomic<int> refused = 0;
    const int total = static_cast<int>(kWriteQueueMax) + 10;
    for (int i = 0; i < total; ++i)
        store_->submit(LogMetric{id, {"a", 1, i, i}}, [&](Result<Outcome> outcome) {
            if (outcome) {
                ++accepted;
                return;
            }
            EXPECT_EQ(outcome.error().code, Code::kRequestLimitExceeded);
            EXPECT_EQ(outcome.error().message,
                      "Too many writes are waiting (8192); try again later.");
            ++refused;
        });
    EXPECT_EQ(refused, 10);
    writer.release();
    store_->stop();
    EXPECT_EQ(accepted, static_cast<int>(kWriteQueueMax));
}

TEST_F(ConcurrencyTest, WhatIsSubmittedTogetherSharesACommit) {
    const std::string id = create_run();
    store_->wait_for_observers();
    const std::int64_t before = store_->last_position();
    constexpr int kCommands = 20;
    std::latch answered(kCommands);
    std::vector<Submission> all;
    for (int i = 0; i < kCommands; ++i)
        all.push_back({LogMetric{id, {"a", 1, i, i}}, [&](const Result<Outcome>& outcome) {
                           EXPECT_TRUE(outcome);
                           EXPECT_EQ(store_->last_position(), before + 1);
                           answered.count_down();
                       }});
    store_->submit(std::move(all));
    answered.wait();
    store_->wait_for_observers();
    EXPECT_EQ(store_->last_position(), before + 1);
    EXPECT_EQ(observer_.of<MetricsLogged>().size(), static_cast<std::size_t>(kCommands));
}

TEST_F(ConcurrencyTest, OfWhatIsSubmittedTogetherTheFirstAreTakenThatFit) {
    BlockedWriter writer(*store_);
    std::vector<int> refused;  // at once, on this thread
    std::atomic<int> accepted = 0;
    std::vector<Submission> all;
    for (int i = 0; i < static_cast<int>(kWriteQueueMax) + 3; ++i)
        all.push_back({PutDocument{"d", std::to_string(i), "{}"}, [&, i](Result<Outcome> outcome) {
                           if (outcome)
                               ++accepted;
                           else
                               refused.push_back(i - static_cast<int>(kWriteQueueMax));
                       }});
    store_->submit(std::move(all));
    EXPECT_EQ(refused, (std::vector<int>{0, 1, 2}));
    writer.release();
    store_->stop();
    EXPECT_EQ(accepted, static_cast<int>(kWriteQueueMax));
}

TEST_F(ConcurrencyTest, TheQueueIsBoundedInBytes) {
    BlockedWriter writer(*store_);
    std::atomic<int> refused = 0;
    for (int i = 0; i < 10; ++i)
        store_->submit(PutDocument{"c", std::to_string(i), std::string(16u << 20, 'x')},
                       [&](Result<Outcome> outcome) { refused += outcome ? 0 : 1; });
    EXPECT_EQ(refused, 7);  // 64 MB hold three of 16 MB and their headers
    writer.release();
    run(PutDocument{"c", "k", "{}"});
    EXPECT_EQ(store_->list_documents("c")->size(), 4u);
}

TEST_F(ConcurrencyTest, ReadJobsRunBesideTheCaller) {
    const std::string id = create_run();
    constexpr int kJobs = 50;
    std::latch done(kJobs);
    std::atomic<int> found = 0;
    for (int i = 0; i < kJobs; ++i)
        ASSERT_TRUE(store_->post_read([&] {
            found += store_->get_run_info(id) ? 1 : 0;
            done.count_down();
        }));
    done.wait();
    EXPECT_EQ(found, kJobs);
}

TEST_F(ConcurrencyTest, AFullReadQueueRefuses) {
    std::latch may_go(1);
    std::latch are_blocked(options_.reader_threads);
    for (int i = 0; i < options_.reader_threads; ++i)
        ASSERT_TRUE(store_->post_read([&] {
            are_blocked.count_down();
            may_go.wait();
        }));
    are_blocked.wait();
    std::size_t posted = 0;
    while (store_->post_read([] {})) ++posted;
    EXPECT_EQ(posted, kReadQueueMax);
    may_go.count_down();
    store_->stop();  // the threads are done with the latches
}

TEST_F(ConcurrencyTest, MoreReadersThanConnectionsWaitTheirTurn) {
    const std::string id = create_run();
    std::vector<std::thread> threads;
    std::atomic<int> found = 0;
    for (int t = 0; t < 12; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) found += store_->get_run(id) ? 1 : 0;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(found, 600);
}

TEST_F(ConcurrencyTest, StoppingAnswersWhatIsQueuedAndRefusesTheRest) {
    const std::string id = create_run();
    std::atomic<int> answered = 0;
    for (int i = 0; i < 500; ++i)
        store_->submit(LogMetric{id, {"a", 1, i, i}},
                       [&](Result<Outcome> outcome) { answered += outcome ? 1 : 0; });
    store_->stop();
    store_->stop();
    EXPECT_EQ(answered, 500);
    EXPECT_EQ(observer_.of<MetricsLogged>().size(), 500u);
    EXPECT_EQ(refusal(LogMetric{id, {"a", 1, 1, 1}}),
              "TEMPORARILY_UNAVAILABLE: The server is stopping; try again later.");
    EXPECT_FALSE(store_->post_read([] {}));
    EXPECT_EQ(store_->metric_history(id, "a")->items.size(), 500u);  // reads still work
}

/// Submits from the observer thread, as the tuner does.
class EchoObserver final : public CommitObserver {
public:
    explicit EchoObserver(Store& store) : store_(store) {}
    void on_commit(const Commit& commit) override {
        for (const Event& event : commit.events)
            if (const auto* logged = std::get_if<MetricsLogged>(&event))
                store_.submit(SetTag{logged->run_id, {"seen", "yes"}},
                              [this](Result<Outcome> done) {
                                  EXPECT_TRUE(done);
                                  is_done_.count_down();
                              });
    }
    void wait() { is_done_.wait(); }

private:
    Store& store_;
    std::latch is_done_{1};
};

TEST_F(ConcurrencyTest, ObserversMaySubmit) {
    EchoObserver echo(*store_);
    store_->add_observer(&echo);
    const std::string id = create_run();
    log(id, "a", 1);
    echo.wait();
    EXPECT_NE(pairs(get(id).tags).find("seen=yes"), std::string::npos);
    store_->stop();
}

}  // namespace
}  // namespace tune::tracker
