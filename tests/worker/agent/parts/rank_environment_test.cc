// What the processes of an attempt of several find in their environments.

#include "worker/agent/attempts/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "worker/agent/attempts/gang_ports.h"
#include "worker/agent/server/own_address.h"

namespace tune::worker {
namespace {

std::map<std::string, std::string> variables(const tuner::Lease& lease, int local_rank) {
    std::map<std::string, std::string> found;
    for (const std::string& variable : rank_environment(lease, local_rank, "eth0")) {
        const std::size_t equals = variable.find('=');
        EXPECT_TRUE(found.emplace(variable.substr(0, equals), variable.substr(equals + 1)).second)
            << variable;
    }
    return found;
}

tuner::Lease two_by_two(int node) {
    tuner::Lease lease;
    lease.run_id = "r";
    lease.attempt = 3;
    lease.gang = tuner::Gang{
        .nproc = 2, .node = node, .nodes = {{"10.0.0.1", 20'032}, {"10.0.0.2", 21'056}}};
    return lease;
}

TEST(RankEnvironment, SpeaksAsTorchrunDoes) {
    const auto found = variables(two_by_two(1), 1);
    const std::map<std::string, std::string> expected = {{"RANK", "3"},
                                                         {"LOCAL_RANK", "1"},
                                                         {"GROUP_RANK", "1"},
                                                         {"ROLE_RANK", "3"},
                                                         {"ROLE_NAME", "default"},
                                                         {"LOCAL_WORLD_SIZE", "2"},
                                                         {"WORLD_SIZE", "4"},
                                                         {"GROUP_WORLD_SIZE", "2"},
                                                         {"ROLE_WORLD_SIZE", "4"},
                                                         {"MASTER_ADDR", "10.0.0.1"},
                                                         {"MASTER_PORT", "20032"},
                                                         {"TORCHELASTIC_RESTART_COUNT", "2"},
                                                         {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                                         {"TORCHELASTIC_RUN_ID", "r-3"},
                                                         {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                         {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
    for (const auto& [name, value] : expected) {
        ASSERT_TRUE(found.contains(name)) << name;
        EXPECT_EQ(found.at(name), value) << name;
    }
}

TEST(RankEnvironment, EachTensorflowWorkerHasAPortOfItsOwn) {
    std::set<std::string> tasks;
    for (const int node : {0, 1})
        for (const int rank : {0, 1}) {
            const Json config = *parse_json(variables(two_by_two(node), rank).at("TF_CONFIG"));
            EXPECT_EQ(config["cluster"]["worker"],
                      Json::array({"10.0.0.1:20033", "10.0.0.1:20034", "10.0.0.2:21057",
                                   "10.0.0.2:21058"}));
            EXPECT_EQ(config["task"]["type"], "worker");
            tasks.insert(config["task"]["index"].dump());
        }
    EXPECT_THAT(tasks, ::testing::ElementsAre("0", "1", "2", "3"));
    tuner::Lease wide = two_by_two(0);
    wide.gang->nproc = tuner::kGangPorts - 1;
    EXPECT_FALSE(variables(wide, 0).contains("TF_CONFIG")) << "there are too few ports";
}

TEST(RankEnvironment, SpeaksAsMpiAndHorovodDo) {
    const auto found = variables(two_by_two(1), 0);
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK"})
        EXPECT_EQ(found.at(name), "2") << name;
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE"})
        EXPECT_EQ(found.at(name), "4") << name;
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "HOROVOD_LOCAL_RANK"})
        EXPECT_EQ(found.at(name), "0") << name;
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "HOROVOD_LOCAL_SIZE"})
        EXPECT_EQ(found.at(name), "2") << name;
    EXPECT_EQ(found.at("HOROVOD_CROSS_RANK"), "1");
    EXPECT_EQ(found.at("HOROVOD_CROSS_SIZE"), "2");
    EXPECT_EQ(found.at("HOROVOD_HOSTNAME"), "node-1");
}

TEST(RankEnvironment, HorovodMeetsAtTheLastPortOfTheFirstMachine) {
    const auto found = variables(two_by_two(1), 0);
    EXPECT_EQ(found.at("HOROVOD_CONTROLLER"), "gloo");
    EXPECT_EQ(found.at("HOROVOD_CPU_OPERATIONS"), "gloo");
    EXPECT_EQ(found.at("HOROVOD_GLOO_IFACE"), "eth0");
    EXPECT_EQ(found.at("HOROVOD_GLOO_RENDEZVOUS_ADDR"), "10.0.0.1:20095/r-3");
    EXPECT_EQ(found.at("HOROVOD_GLOO_RENDEZVOUS_PORT"), "20095");
    tuner::Lease lease = two_by_two(0);
    lease.gang->nodes[0].address = "fd00::1";
    EXPECT_FALSE(variables(lease, 0).contains("HOROVOD_GLOO_RENDEZVOUS_ADDR"))
        << "its client speaks IPv4 only";
}

TEST(RankEnvironment, AddressesOfVersionSixStandInBrackets) {
    tuner::Lease lease = two_by_two(0);
    lease.gang->nodes[0].address = "fd00::1";
    const Json config = *parse_json(variables(lease, 0).at("TF_CONFIG"));
    EXPECT_EQ(config["cluster"]["worker"][0], "[fd00::1]:20033");
    EXPECT_EQ(variables(lease, 0).at("MASTER_ADDR"), "fd00::1");
}

TEST(RankEnvironment, TheFileListsEachProcessWithItsOutput) {
    const std::string file = ranks_file(two_by_two(1), "");
    // Empty name, variables, empty; "rank-3.log", variables, empty.
    ASSERT_FALSE(file.empty());
    EXPECT_EQ(file.front(), '\0');
    EXPECT_NE(file.find(std::string("\0\0rank-3.log\0RANK=3\0", 20)), std::string::npos);
    EXPECT_EQ(file.back(), '\0');
}

TEST(GangPorts, BlocksAreKeptApart) {
    GangPorts ours;
    GangPorts theirs;
    const int first = ours.next();
    ASSERT_GT(first, 0);
    EXPECT_EQ(ours.next(), first) << "the same until it is taken";
    EXPECT_NE(theirs.next(), first);
    EXPECT_EQ(ours.take(first, false), 0) << "nobody was promised it";
    ours.promise(first);
    EXPECT_NE(ours.next(), first) << "the next attempt gets another";
    EXPECT_EQ(ours.take(first, false), first);
    EXPECT_EQ(ours.take(first, false), 0) << "an attempt has it";
    const int second = ours.take(first, true);
    EXPECT_NE(second, first);
    EXPECT_GT(second, 0);
    ours.give_back(first);
    ours.give_back(second);
}

TEST(OwnAddress, LeadsToTheServer) {
    EXPECT_EQ(address_towards("http://127.0.0.1:5000"), "127.0.0.1");
    EXPECT_EQ(address_towards("https://user@127.0.0.1/prefix"), "127.0.0.1");
    EXPECT_EQ(address_towards("http://[::1]:5000"), "::1");
    EXPECT_EQ(address_towards("http://no such host"), "");
}

}  // namespace
}  // namespace tune::worker
