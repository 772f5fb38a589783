// What a browser that watches a study is sent.

#include "tuner/api/live_studies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "tests/tuner/study/world.h"
#include "tuner/study/registry/clients/client_trials.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;

TEST(LiveStudies, AWatcherSeesTrialsStartReportAndEnd) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("tune-live-" + random_hex(8));
    const SystemClock clock;
    tracker::EventHub hub(clock);
    LiveStudies live(hub);
    auto store = tracker::Store::open({.directory = folder});
    ASSERT_TRUE(store.has_value()) << store.error().text();
    auto studies = Studies::open({.store = store->get(), .listener = &live});
    ASSERT_TRUE(studies.has_value());
    live.start(**studies);

    std::mutex mutex;
    std::condition_variable changed;
    bool is_ready = false;
    std::string seen;
    const auto subscription = hub.subscribe({"study:s"}, {});
    subscription->on_ready([&] {
        const std::lock_guard<std::mutex> lock(mutex);
        is_ready = true;
        changed.notify_one();
    });
    const auto wait_for = [&](const std::string& words) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (seen.find(words) == std::string::npos) {
            std::unique_lock<std::mutex> lock(mutex);
            if (!changed.wait_until(lock, deadline, [&] { return is_ready; })) return false;
            is_ready = false;
            lock.unlock();  // on_ready() is called under the lock that take() takes
            for (const auto& frame : subscription->take()) seen += *frame;
        }
        return true;
    };

    Answer<Studies::Created> created;
    (*studies)->create(World::config(""), created.done());
    ASSERT_TRUE(created.get().has_value());
    EXPECT_TRUE(wait_for("event: study"));
    Answer<std::vector<AskedTrial>> asked;
    (*studies)->clients().ask({.study = "s"}, asked.done());
    ASSERT_TRUE(asked.get().has_value());
    EXPECT_TRUE(wait_for("event: trial"));
    Answer<std::optional<Action>> reported;
    (*studies)->clients().report({.trial = {"s", 0, 1}, .step = 4, .value = 0.5}, reported.done());
    ASSERT_TRUE(reported.get().has_value());
    EXPECT_TRUE(wait_for("\"intermediate_last\":[4,0.5]"));
    Answer<void> told;
    (*studies)->clients().tell({.trial = {"s", 0, 1}, .value = 0.5}, told.done());
    ASSERT_TRUE(told.get().has_value());
    EXPECT_TRUE(wait_for("\"state\":\"complete\""));

    subscription->on_ready({});
    (*studies)->drain();
    live.stop();
    (*store)->stop();
    studies->reset();
    store->reset();
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tune::tuner
