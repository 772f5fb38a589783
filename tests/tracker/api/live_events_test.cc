#include "tracker/api/ui/live_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <nlohmann/json.hpp>
#include <thread>

#include "tracker/api/ui/live_topic.h"

namespace tune::tracker {
namespace {

/// A reader that waits for frames.
class Reader {
public:
    Reader(EventHub& hub, std::vector<std::string> topics)
        : subscription_(hub.subscribe(topics, {})) {
        subscription_->on_ready([this] {
            const std::lock_guard lock(mutex_);
            is_ready_ = true;
            changed_.notify_all();
        });
    }
    ~Reader() { subscription_->on_ready({}); }

    /// The next event as [type, data].
    Json next() {
        while (frames_.empty()) {
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [this] { return is_ready_; });
                is_ready_ = false;
            }
            for (const auto& frame : subscription_->take()) frames_.push_back(*frame);
        }
        const std::string frame = frames_.front();
        frames_.erase(frames_.begin());
        const std::size_t type = frame.find("event: ") + 7;
        const std::size_t data = frame.find("\ndata: ");
        return {frame.substr(type, data - type), parse_json(frame.substr(data + 7)).value()};
    }

private:
    std::shared_ptr<EventSubscription> subscription_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_ready_ = false;
    std::vector<std::string> frames_;
};

class LiveEventsTest : public testing::Test {
protected:
    void commit(std::vector<Event> events) { live_.on_commit({++position_, events}); }

    static Metric metric(std::string key, double value, std::int64_t step) {
        Metric out;
        out.key = std::move(key);
        out.value = value;
        out.step = step;
        out.timestamp_ms = 1000 + step;
        return out;
    }
    static RunInfo info(const std::string& id) {
        RunInfo out;
        out.run_id = id;
        out.experiment_id = 3;
        out.run_name = "name";
        return out;
    }

    SystemClock clock_;
    EventHub hub_{clock_};
    LiveEvents live_{hub_, clock_};
    std::int64_t position_ = 0;
};

TEST_F(LiveEventsTest, TellTheExperimentsPageTheLatestOfEachRun) {
    Reader reader(hub_, {"experiment:3"});
    commit({RunCreated{info("r"), {{"tune.state", "queued"}}},
            MetricsLogged{"r", 3, {metric("m", 1, 5), metric("m", 2, 4), metric("n", NAN, 1)}},
            ParamsLogged{"r", 3, {{"p", "1"}}}});
    const Json run = reader.next();
    EXPECT_EQ(run[0], "run");
    EXPECT_EQ(run[1]["run_id"], "r");
    EXPECT_EQ(run[1]["status"], "RUNNING");
    EXPECT_EQ(run[1]["tags"]["tune.state"], "queued");
    EXPECT_EQ(reader.next(), Json::parse(R"(["metrics", {"run_id": "r", "latest": {
        "m": {"value": 1.0, "step": 5, "timestamp": 1005},
        "n": {"value": "NaN", "step": 1, "timestamp": 1001}}}])"));
    EXPECT_EQ(reader.next(), Json::parse(R"(["params", {"run_id": "r", "params": {"p": "1"}}])"));
}

TEST_F(LiveEventsTest, TellTheRunsPageEveryPoint) {
    Reader reader(hub_, {"run:r"});
    commit({MetricsLogged{"other", 3, {metric("m", 9, 9)}},
            MetricsLogged{"r", 3, {metric("m", 1, 1), metric("m", INFINITY, 2)}}});
    EXPECT_EQ(reader.next(), Json::parse(R"(["metrics", {"run_id": "r", "points":
        [["m", 1, 1001, 1.0], ["m", 2, 1002, "Infinity"]]}])"));
}

TEST_F(LiveEventsTest, JoinWhatComesWithinAnInterval) {
    Reader reader(hub_, {"run:r"});
    commit({MetricsLogged{"r", 3, {metric("m", 0, 0)}}});
    EXPECT_EQ(reader.next()[1]["points"].size(), 1u) << "the first is told at once";
    const std::int64_t begin_ms = clock_.monotonic_ms();
    for (int i = 1; i <= 500; ++i) {
        commit({MetricsLogged{"r", 3, {metric("m", i, i)}}});
        std::this_thread::yield();  // to the thread that notifies
    }
    std::size_t points = 0;
    int events = 0;
    while (points < 500) {
        points += reader.next()[1]["points"].size();
        ++events;
    }
    EXPECT_EQ(points, 500u);
    EXPECT_LE(events, 2 + (clock_.monotonic_ms() - begin_ms) / LiveEvents::kFlushInterval_ms);
}

TEST_F(LiveEventsTest, MergeTagsAndUpdatesOfOneRun) {
    Reader reader(hub_, {"experiment:3"});
    commit({RunCreated{info("first"), {}}});
    reader.next();
    RunInfo done = info("r");
    done.status = RunStatus::kFinished;
    done.end_time_ms = 77;
    commit({TagsSet{"r", 3, {{"a", "1"}, {"b", "1"}}}, RunUpdated{done},
            TagsSet{"r", 3, {{"a", "2"}}}, TagDeleted{"r", 3, "b"}});
    const Json run = reader.next()[1];
    EXPECT_EQ(run["status"], "FINISHED");
    EXPECT_EQ(run["end_time"], 77);
    EXPECT_EQ(run["tags"], Json::parse(R"({"a": "2", "b": null})"));
}

TEST_F(LiveEventsTest, TellTheListOfExperiments) {
    Reader reader(hub_, {"experiments"});
    Experiment experiment;
    experiment.experiment_id = 4;
    experiment.name = "new";
    commit({ExperimentChanged{experiment}, RunCreated{info("r"), {}}});
    EXPECT_EQ(reader.next(), Json::parse(R"(["experiment", {"experiment_id": "4", "name": "new",
                                             "lifecycle_stage": "active"}])"));
    EXPECT_EQ(reader.next(), Json::parse(R"(["activity", {"experiment_id": "3"}])"));
}

TEST_F(LiveEventsTest, ReplaceAFloodOfPointsByAResync) {
    Reader reader(hub_, {"run:r"});
    commit({MetricsLogged{"r", 3, {metric("m", 0, 0)}}});
    reader.next();
    commit({MetricsLogged{"r", 3, std::vector<Metric>(LiveTopic::kPointsMax + 1)}});
    EXPECT_EQ(reader.next()[0], "resync");
}

TEST_F(LiveEventsTest, SendABusyExperimentPieceByPiece) {
    Reader reader(hub_, {"experiment:3"});
    std::vector<Event> events;
    for (std::size_t i = 0; i < LiveTopic::kFlushEventsMax * 2; ++i)
        events.push_back(MetricsLogged{"r" + std::to_string(i), 3, {metric("m", 1, 1)}});
    commit(events);
    std::set<std::string> runs;
    while (runs.size() < events.size()) {
        const Json event = reader.next();
        ASSERT_EQ(event[0], "metrics");
        runs.insert(event[1]["run_id"].get<std::string>());
    }
}

}  // namespace
}  // namespace tune::tracker
