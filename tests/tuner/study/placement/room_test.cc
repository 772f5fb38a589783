// What fits where: cores, memory, labels, GPUs whole and by bytes.

#include "tuner/study/placement/room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/study/placement/peak_memory.h"
#include "tuner/study/trial/holder.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

RegisterRequest machine(int slots, int cpus, std::vector<GpuFacts> gpus = {}) {
    RegisterRequest facts{.agent_id = "a", .slots = slots, .cpus = cpus};
    for (GpuFacts& gpu : gpus) {
        facts.gpus.push_back(gpu.uuid);
        facts.devices.push_back(std::move(gpu));
    }
    return facts;
}
std::vector<std::string> uuids(const std::optional<Part>& part) {
    std::vector<std::string> found;
    if (part)
        for (const GrantedGpu& gpu : part->gpus) found.push_back(gpu.uuid);
    return found;
}
/// Takes what the needs ask for; false: it did not fit.
bool taken(Room& room, const TrialNeeds& needs, int nproc = 1) {
    const auto part = part_in(room, needs, nproc);
    if (part) take(room, *part);
    return part.has_value();
}

TEST(Rooms, GiveWhatTheyHaveAndTakeItBack) {
    RegisterRequest facts = machine(8, 4, {{"g0", 80 * kGiB}, {"g1", 80 * kGiB}});
    facts.memory_bytes = 64 * kGiB;
    Room room = room_of(facts);
    const std::string before = room_text(room);
    const TrialNeeds needs{.cpus = 2, .memory_bytes = 20 * kGiB, .gpus = 1};
    const auto first = part_in(room, needs, 1);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->cores, 2);
    EXPECT_THAT(uuids(first), ElementsAre("g0"));
    take(room, *first);
    const auto second = part_in(room, needs, 1);
    EXPECT_THAT(uuids(second), ElementsAre("g1"));
    take(room, *second);
    EXPECT_FALSE(part_in(room, needs, 1)) << "no core is left";
    EXPECT_FALSE(part_in(room, {.memory_bytes = 25 * kGiB}, 1)) << "24 GiB are left";
    EXPECT_TRUE(part_in(room, {.memory_bytes = 24 * kGiB}, 1));
    give_back(room, *first);
    EXPECT_THAT(uuids(part_in(room, needs, 1)), ElementsAre("g0"));
    give_back(room, *second);
    EXPECT_EQ(room_text(room), before);
}

TEST(Rooms, PackAGpuByBytesAndKeepOthersWhole) {
    Room room = room_of(machine(32, 8, {{"g0", 80 * kGiB}, {"g1", 80 * kGiB}, {"g2", 40 * kGiB}}));
    const TrialNeeds small{.gpus = 1, .gpu_bytes = 15 * kGiB};
    // Best fit: the smallest one is filled first.
    EXPECT_THAT(uuids(part_in(room, small, 1)), ElementsAre("g2"));
    EXPECT_TRUE(taken(room, small));
    EXPECT_TRUE(taken(room, small));
    EXPECT_THAT(uuids(part_in(room, small, 1)), ElementsAre("g0")) << "10 GiB of g2 are left";
    EXPECT_THAT(uuids(part_in(room, {.gpus = 2}, 1)), ElementsAre("g0", "g1"));
    EXPECT_TRUE(taken(room, {.gpus = 1}));  // g0 as a whole
    EXPECT_THAT(uuids(part_in(room, small, 1)), ElementsAre("g1"));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(taken(room, small)) << i;
    EXPECT_FALSE(taken(room, small)) << "five times 15 GiB fit into 80";
    EXPECT_FALSE(taken(room, {.gpus = 1})) << "none is free as a whole";
    EXPECT_TRUE(taken(room, {.gpus = 1, .gpu_bytes = 10 * kGiB}));
}

TEST(Rooms, GpusOfUnknownSizeAreGivenWholeOnly) {
    RegisterRequest facts = machine(4, 4);
    facts.gpus = {"g0"};
    EXPECT_FALSE(part_in(room_of(facts), {.gpus = 1, .gpu_bytes = 1}, 1));
    EXPECT_TRUE(part_in(room_of(facts), {.gpus = 1}, 1));
}

TEST(Rooms, ProcessesOfATrialHaveDifferentGpus) {
    Room room = room_of(machine(8, 8, {{"g0", 80 * kGiB}, {"g1", 80 * kGiB}}));
    const TrialNeeds needs{.cpus = 2, .gpus = 1, .gpu_bytes = 10 * kGiB};
    const auto part = part_in(room, needs, 2);
    EXPECT_THAT(uuids(part), ElementsAre("g0", "g1"));
    EXPECT_EQ(part->cores, 4);
    EXPECT_EQ(part->slots, 2);
    EXPECT_FALSE(part_in(room, needs, 3));
}

TEST(Rooms, MoreProcessesThanPlacesTakeAllPlaces) {
    Room room = room_of(machine(2, 2));
    const auto part = part_in(room, {}, 4);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->slots, 2);
    take(room, *part);
    EXPECT_FALSE(part_in(room, {}, 1));
}

TEST(Rooms, AnAgentWithAGpuForEachPlaceGivesOneToEachProcess) {
    const Room room = room_of(machine(2, 8, {{"g0", 0}, {"g1", 0}}));
    EXPECT_THAT(uuids(part_in(room, {}, 1)), SizeIs(1));
    EXPECT_THAT(uuids(part_in(room, {}, 2)), SizeIs(2));
    EXPECT_THAT(uuids(part_in(room, {}, 3)), SizeIs(2)) << "it has no more";
    EXPECT_THAT(uuids(part_in(room_of(machine(3, 8, {{"g0", 0}, {"g1", 0}})), {}, 1)), IsEmpty());
}

TEST(Rooms, LabelsMustAllBeThere) {
    RegisterRequest facts = machine(1, 1);
    facts.labels = {"zone=eu", "a100", "a100"};
    const Room room = room_of(facts);
    EXPECT_TRUE(part_in(room, {.labels = {"a100"}}, 1));
    EXPECT_TRUE(part_in(room, {.labels = {"a100", "zone=eu"}}, 1));
    EXPECT_FALSE(part_in(room, {.labels = {"a100", "zone=us"}}, 1));
}

TEST(Rooms, EstimatesGiveWayWhereNothingIsAsLarge) {
    RegisterRequest facts = machine(4, 4, {{"g0", 16 * kGiB}});
    facts.memory_bytes = 8 * kGiB;
    const Room room = room_of(facts);
    TrialNeeds needs{.memory_bytes = 9 * kGiB, .gpus = 1, .gpu_bytes = 17 * kGiB};
    EXPECT_FALSE(part_in(room, needs, 1));
    needs.is_learned = true;
    const auto part = part_in(room, needs, 1);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->memory_bytes, 8 * kGiB);
    EXPECT_EQ(part->gpus.at(0), (GrantedGpu{"g0", 0})) << "all of it";
}

TEST(Rooms, MachinesOfOneMakeAreAlike) {
    RegisterRequest one = machine(1, 1);
    RegisterRequest other = machine(1, 1);
    one.memory_bytes = 67'234'111'488;
    other.memory_bytes = 67'234'091'008;
    EXPECT_EQ(room_text(room_of(one)), room_text(room_of(other)));
    EXPECT_GT(room_of(one).memory_all, one.memory_bytes / 100 * 98);
    EXPECT_LE(room_of(one).memory_all, one.memory_bytes);
}

TEST(Shapes, FewMachinesComeFirst) {
    EXPECT_THAT(equal_shapes(4), ElementsAre(Shape{1, 4}, Shape{2, 2}, Shape{4, 1}));
    EXPECT_THAT(equal_shapes(1), ElementsAre(Shape{1, 1}));
}

TEST(PeakMemories, AreKnownAfterAFew) {
    PeakMemory peaks;
    peaks.note(0);
    peaks.note(100);
    peaks.note(100);
    EXPECT_FALSE(peaks.estimate());
    peaks.note(200);
    EXPECT_EQ(peaks.estimate(), 230);
    for (std::size_t i = 0; i < PeakMemory::kKept; ++i) peaks.note(1000);
    EXPECT_EQ(peaks.estimate(), 1150) << "what was long ago counts no more";
    peaks.note_shortage(1150);
    EXPECT_EQ(peaks.estimate(), 1725);
}

TEST(Verdicts, WhatExplainsTheOthersCounts) {
    const auto finish = [](Outcome outcome, const std::string& reason) {
        FinishRequest request;
        request.outcome = outcome;
        request.reason = reason;
        request.cpu_ms = 10;
        return request;
    };
    const Member a{.agent_id = "a", .host = "ha"};
    const Member b{.agent_id = "b", .host = "hb"};
    Holder holder;
    add_verdict(holder, a, finish(Outcome::kDone, ""));
    EXPECT_EQ(holder.verdict->outcome, Outcome::kDone);
    add_verdict(holder, b, finish(Outcome::kFailed, "exit code 1"));
    EXPECT_EQ(holder.verdict->outcome, Outcome::kFailed);
    EXPECT_EQ(holder.verdict->reason, "on hb: exit code 1");
    add_verdict(holder, a, finish(Outcome::kFailed, "connection lost"));
    EXPECT_EQ(holder.verdict->reason, "on hb: exit code 1") << "the first of equals";
    add_verdict(holder, a, finish(Outcome::kCancelled, "told to"));
    EXPECT_EQ(holder.verdict->outcome, Outcome::kFailed);
    add_verdict(holder, a, finish(Outcome::kLost, "its agent was killed"));
    EXPECT_EQ(holder.verdict->outcome, Outcome::kLost);
    EXPECT_EQ(holder.verdict->cpu_ms, 50);
}

TEST(Holders, SurviveTheirDocument) {
    Holder holder{.agent_id = "a", .request_id = "q", .ttl_ms = 5, .credential_hash = "ff"};
    holder.members = {{.agent_id = "a",
                       .host = "ha",
                       .request_id = "q",
                       .part = {.nproc = 2, .slots = 2, .cores = 4, .gpus = {{"g0", 7}}},
                       .node = {"10.0.0.1", 20032}},
                      {.agent_id = "b", .host = "hb", .has_ended = true, .finish_request = "f"}};
    holder.verdict = FinishRequest{.request_id = "f", .outcome = Outcome::kFailed};
    const Holder read = holder_from_json(holder_to_json(holder));
    ASSERT_THAT(read.members, SizeIs(2));
    EXPECT_EQ(read.members[0].part, holder.members[0].part);
    EXPECT_EQ(read.members[0].node, holder.members[0].node);
    EXPECT_FALSE(read.members[0].has_ended);
    EXPECT_TRUE(read.members[1].has_ended);
    EXPECT_EQ(read.members[1].finish_request, "f");
    EXPECT_EQ(read.verdict->outcome, Outcome::kFailed);
    EXPECT_EQ(read.find_running("b"), nullptr);
    EXPECT_NE(read.find_running("a"), nullptr);
    const Holder plain = holder_from_json(
        holder_to_json({.agent_id = "a", .ttl_ms = 1, .members = {{.agent_id = "a"}}}));
    ASSERT_THAT(plain.members, SizeIs(1)) << "one of one process need not be written";
    EXPECT_EQ(plain.members[0].part, Part());
}

}  // namespace
}  // namespace tune::tuner
