#include "tracker/api/ui/event_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

namespace tune::tracker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> taken(EventSubscription& reader) {
    std::vector<std::string> out;
    for (const auto& frame : reader.take()) out.push_back(*frame);
    return out;
}

class EventHubTest : public testing::Test {
protected:
    std::uint64_t publish(const char* topic, int value) {
        return hub_.publish(topic, "e", Json(value));
    }
    ManualClock clock_{1'700'000'000'000};
    EventHub hub_{clock_};
};

TEST_F(EventHubTest, GivesReadersTheirTopicsInOrder) {
    const auto a = hub_.subscribe({"x", "y"}, {});
    const auto b = hub_.subscribe({"y"}, {});
    const std::uint64_t first = publish("x", 1);
    EXPECT_EQ(publish("y", 2), first + 1);
    EXPECT_EQ(publish("nobody", 3), 0u);
    const std::string id = std::to_string(first);
    EXPECT_THAT(taken(*a),
                ElementsAre("id: " + id + "\nevent: e\ndata: 1\n\n", HasSubstr("data: 2")));
    EXPECT_THAT(taken(*b), ElementsAre(HasSubstr("data: 2")));
    EXPECT_THAT(taken(*b), IsEmpty());
}

TEST_F(EventHubTest, SaysWhatIsWanted) {
    EXPECT_FALSE(hub_.wanted("x"));
    {
        const auto reader = hub_.subscribe({"x"}, {});
        EXPECT_TRUE(hub_.wanted("x"));
    }
    EXPECT_TRUE(hub_.wanted("x")) << "the reader may come back";
    clock_.advance_ms(EventHub::kTopicLinger_ms + 1);
    const auto other = hub_.subscribe({"z"}, {});
    EXPECT_FALSE(hub_.wanted("x"));
}

TEST_F(EventHubTest, ResumesAfterAShortAbsence) {
    std::uint64_t last = 0;
    {
        const auto reader = hub_.subscribe({"x"}, {});
        last = publish("x", 1);
    }
    publish("x", 2);
    publish("x", 3);
    const auto again = hub_.subscribe({"x"}, last);
    EXPECT_THAT(taken(*again), ElementsAre(HasSubstr("data: 2"), HasSubstr("data: 3")));
    const auto in_step = hub_.subscribe({"x"}, last + 2);
    EXPECT_THAT(taken(*in_step), IsEmpty());
}

TEST_F(EventHubTest, AsksForAResyncWhenEventsMayBeMissing) {
    const auto is_resync = ElementsAre(HasSubstr("event: resync"));
    EXPECT_THAT(taken(*hub_.subscribe({"x"}, 5)), is_resync) << "an id of an earlier process";
    std::uint64_t last = 0;
    {
        const auto reader = hub_.subscribe({"x"}, {});
        last = publish("x", 1);
    }
    EXPECT_THAT(taken(*hub_.subscribe({"x", "y"}, last)), is_resync) << "y was not kept";
    EXPECT_THAT(taken(*hub_.subscribe({"x"}, last + 1'000'000)), is_resync) << "from the future";
    const auto keeper = hub_.subscribe({"x"}, {});
    for (std::size_t i = 0; i <= EventHub::kEventRingMax; ++i) publish("x", 1);
    EXPECT_THAT(taken(*hub_.subscribe({"x"}, last)), is_resync) << "fell out of the ring";
}

TEST_F(EventHubTest, ResumesFromTheResyncItself) {
    const auto reader = hub_.subscribe({"x"}, 5);
    const std::string frame = taken(*reader).at(0);
    const std::uint64_t id = std::stoull(frame.substr(4));
    publish("x", 7);
    EXPECT_THAT(taken(*hub_.subscribe({"x"}, id)), ElementsAre(HasSubstr("data: 7")));
}

TEST_F(EventHubTest, ReplacesAnOverfullQueueByOneResync) {
    const auto slow = hub_.subscribe({"x"}, {});
    for (std::size_t i = 0; i < kEventQueueMax; ++i) publish("x", 1);
    EXPECT_THAT(taken(*slow), SizeIs(kEventQueueMax));
    for (std::size_t i = 0; i <= kEventQueueMax; ++i) publish("x", 1);
    EXPECT_THAT(taken(*slow), ElementsAre(HasSubstr("event: resync")));
}

TEST_F(EventHubTest, CallsReadersWhenFramesWait) {
    const auto reader = hub_.subscribe({"x"}, {});
    int calls = 0;
    publish("x", 1);
    reader->on_ready([&] { ++calls; });
    EXPECT_EQ(calls, 1) << "one waits already";
    publish("x", 2);
    EXPECT_EQ(calls, 1) << "told once until taken";
    EXPECT_THAT(taken(*reader), SizeIs(2));
    publish("x", 3);
    EXPECT_EQ(calls, 2);
    reader->on_ready({});
    EXPECT_THAT(taken(*reader), SizeIs(1));
    publish("x", 4);
    EXPECT_EQ(calls, 2);
}

TEST_F(EventHubTest, BearsReadersThatComeAndGoWhileOthersPublish) {
    std::atomic<bool> stop{false};
    std::thread publisher([&] {
        while (!stop) publish("x", 1);
    });
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i)
        readers.emplace_back([&] {
            for (int k = 0; k < 200; ++k) {
                std::atomic<int> calls{0};
                const auto reader = hub_.subscribe({"x", "y"}, {});
                reader->on_ready([&] { ++calls; });
                while (calls == 0) std::this_thread::yield();
                EXPECT_FALSE(reader->take().empty());
                reader->on_ready({});
            }
        });
    for (std::thread& thread : readers) thread.join();
    stop = true;
    publisher.join();
}

}  // namespace
}  // namespace tune::tracker
