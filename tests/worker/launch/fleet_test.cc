#include "worker/launch/fleet.h"

#include <gtest/gtest.h>

namespace tune::launch {
namespace {

AgentSettings settings_with(int agents, int slots, int nodes = 1) {
    AgentSettings settings;
    settings.agents = agents;
    settings.slots = slots;
    settings.nodes = nodes;
    return settings;
}

AgentJob waiting(const std::string& reason, int agents = 1) {
    return {.state = AgentJob::State::kPending, .reason = reason, .agents = agents};
}

TEST(AgentsWanted, AreEnoughForTheTrialsAndNoMore) {
    EXPECT_EQ(agents_wanted(0, settings_with(8, 2)), 0) << "idle: down to nothing";
    EXPECT_EQ(agents_wanted(-3, settings_with(8, 2)), 0);
    EXPECT_EQ(agents_wanted(1, settings_with(8, 2)), 1);
    EXPECT_EQ(agents_wanted(5, settings_with(8, 2)), 3);
    EXPECT_EQ(agents_wanted(1'000'000'000, settings_with(8, 2)), 8);
}

TEST(AgentsWanted, AreWholeGangs) {
    EXPECT_EQ(agents_wanted(1, settings_with(8, 1, 3)), 3);
    EXPECT_EQ(agents_wanted(4, settings_with(8, 1, 3)), 6);
    EXPECT_EQ(agents_wanted(100, settings_with(8, 1, 3)), 6) << "a third gang would be 9 agents";
}

TEST(AgentsWanted, CountSlotsByGpusElseCores) {
    AgentSettings settings = settings_with(8, 0);
    EXPECT_EQ(slots_of(settings), 1);
    settings.cpus = 16;
    EXPECT_EQ(slots_of(settings), 16);
    settings.gpus = 4;
    EXPECT_EQ(slots_of(settings), 4);
}

/// What it was asked, and jobs that are there until the test takes them away.
struct Asked {
    std::vector<AgentJob> jobs = {};
    std::vector<std::string> stops = {};  // "stop a/0"
    bool refuses = false;
    int started = 0;
    bool starts_singly = false;
};

class ListedEngine final : public Engine {
public:
    explicit ListedEngine(Asked& asked) : asked_(asked) {}
    Result<void> prepare() override { return {}; }
    Result<void> start(int count) override {
        asked_.started += count;
        return {};
    }
    [[nodiscard]] bool starts_singly() const override { return asked_.starts_singly; }
    Result<std::vector<AgentJob>> list() override { return asked_.jobs; }
    Result<void> stop(std::span<const AgentJob> jobs, StopKind kind) override {
        if (asked_.refuses) return Error{Code::kInternalError, "no way to the host"};
        for (const AgentJob& job : jobs)
            asked_.stops.push_back(std::string(stop_name(kind)) + " " + job.id);
        return {};
    }
    std::string last_output(const AgentJob&) override { return {}; }

private:
    Asked& asked_;
};

AgentJob running(const std::string& id) {
    return {.id = id, .state = AgentJob::State::kRunning};
}

TEST(Fleet, AsksEachAgentToEndOnceHoweverLongItTakes) {
    Asked asked{.jobs = {running("a/0"), running("b/0")}};
    Fleet fleet(std::make_unique<ListedEngine>(asked), settings_with(2, 1));
    for (int look = 0; look < 5; ++look) EXPECT_FALSE(fleet.end(StopKind::kStop));
    EXPECT_EQ(asked.stops, (std::vector<std::string>{"stop a/0", "stop b/0"}));
    asked.jobs.pop_back();
    EXPECT_FALSE(fleet.end(StopKind::kKill));
    EXPECT_EQ(asked.stops.back(), "kill a/0") << "a different wish is said";
    asked.jobs.clear();
    EXPECT_TRUE(fleet.end(StopKind::kKill));
    EXPECT_EQ(asked.stops.size(), 3u);
}

TEST(Fleet, AsksAgainWhatWasNotToldAndWhatStartedMeanwhile) {
    Asked asked{.jobs = {{.id = "7", .state = AgentJob::State::kPending}}, .refuses = true};
    Fleet fleet(std::make_unique<ListedEngine>(asked), settings_with(1, 1));
    EXPECT_FALSE(fleet.end(StopKind::kStop));
    asked.refuses = false;
    EXPECT_FALSE(fleet.end(StopKind::kStop));
    EXPECT_EQ(asked.stops, std::vector<std::string>{"stop 7"});
    asked.jobs = {running("7")};  // it began before its place in the queue was given up
    EXPECT_FALSE(fleet.end(StopKind::kStop));
    EXPECT_EQ(asked.stops.size(), 2u);
}

TEST(Fleet, AnAgentOfTheSameNameThatCameLaterIsAskedToo) {
    Asked asked{.jobs = {running("a/0")}};
    Fleet fleet(std::make_unique<ListedEngine>(asked), settings_with(1, 1));
    static_cast<void>(fleet.step(0, 0));
    static_cast<void>(fleet.step(0, 0));
    EXPECT_EQ(asked.stops.size(), 1u);
    asked.jobs.clear();
    static_cast<void>(fleet.step(1, 0));
    EXPECT_EQ(asked.started, 1);
    asked.jobs = {running("a/0")};
    static_cast<void>(fleet.step(0, 1));
    EXPECT_EQ(asked.stops.size(), 2u);
}

TEST(Fleet, ALostAgentOfAGangIsStartedAgainWhereEachHasAPlaceOfItsOwn) {
    Asked asked{.jobs = {running("a/0")}, .starts_singly = true};
    Fleet fleet(std::make_unique<ListedEngine>(asked), settings_with(2, 1, 2));
    static_cast<void>(fleet.step(2, 0));
    EXPECT_EQ(asked.started, 1);
    Asked as_one{.jobs = {{.id = "7", .state = AgentJob::State::kRunning, .agents = 2}}};
    Fleet gangs(std::make_unique<ListedEngine>(as_one), settings_with(4, 1, 2));
    static_cast<void>(gangs.step(4, 0));
    EXPECT_EQ(as_one.started, 1) << "a gang";
}

TEST(JobsText, SaysWhatWaitsAndWhyTheMostFrequentFirst) {
    EXPECT_EQ(jobs_text({}), "");
    EXPECT_EQ(jobs_text({{.state = AgentJob::State::kRunning}}), "1 agent running");
    EXPECT_EQ(jobs_text({waiting("partition gpu is full", 12)}),
              "12 agents pending: partition gpu is full");
    EXPECT_EQ(jobs_text({{.state = AgentJob::State::kRunning, .agents = 2},
                         waiting("down"),
                         waiting("full"),
                         waiting("full"),
                         {.state = AgentJob::State::kFailed}}),
              "2 agents running, 3 pending: full; down");
}

TEST(GroupName, IsWhatEveryEngineTakesAndTheSameEachTime) {
    const std::string name = group_name("ResNet 50 (lr)!", "/data");
    EXPECT_EQ(name.substr(0, name.size() - 8), "tune-resnet-50-lr-");
    EXPECT_EQ(name, group_name("ResNet 50 (lr)!", "/data"));
    EXPECT_NE(name, group_name("ResNet 50 (lr)!", "/other"));
    EXPECT_LE(group_name(std::string(200, 'x'), "/").size(), 44u);
    EXPECT_EQ(group_name("学习", "/").substr(0, 12), "tune-agents-");
}

TEST(LoopbackUrl, IsWhatOnlyThisMachineReaches) {
    EXPECT_TRUE(is_loopback_url("http://127.0.0.1:5000"));
    EXPECT_TRUE(is_loopback_url("https://localhost:5000/x"));
    EXPECT_TRUE(is_loopback_url("http://[::1]:5000"));
    EXPECT_TRUE(is_loopback_url("http://user:pass@127.0.0.1:5000"));
    EXPECT_FALSE(is_loopback_url("https://tune.example:5000"));
    for (const char* url :
         {"http://localhost.corp:5000", "http://127.example.org", "http://10.0.0.1",
          "http://localhost@tune.example:5000", "localhost:5000", ""})
        EXPECT_FALSE(is_loopback_url(url)) << url;
}

}  // namespace
}  // namespace tune::launch
