#include "tuner/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

template <class T>
T through_json(const T& value) {
    const Result<Json> json = parse_json(to_text(to_json(value)));
    EXPECT_TRUE(json.has_value());
    Result<T> read = from_json<T>(*json);
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().text());
    return std::move(read).value();
}

template <class T>
std::string error_of(const char* text) {
    const Result<Json> json = parse_json(text);
    EXPECT_TRUE(json.has_value());
    const Result<T> read = from_json<T>(*json);
    return read ? std::string() : read.error().message;
}

Lease sample_lease() {
    Lease lease;
    lease.study = "digits";
    lease.number = 7;
    lease.attempt = 2;
    lease.run_id = "0123456789abcdef0123456789abcdef";
    lease.experiment_id = "12";
    lease.params_json = R"({"lr":0.1,"opt":"adamw"})";
    lease.seed = 1234567;
    lease.command = {"python", "train.py", "--lr=0.1"};
    lease.env = {{"A", "1"}, {"B", "two words"}};
    lease.working_dir = "/srv";
    lease.checkpoint_dir = "abc/00000007";
    lease.resume_from = "abc/00000003";
    lease.grace_ms = 5;
    lease.timeout_ms = 6;
    lease.metric = "loss";
    lease.scrape = {{"loss", "loss=(.*)"}, {"", "(.*)=(.*)"}};
    lease.cpus_per_trial = 1.5;
    lease.gpus_per_trial = 0.5;
    return lease;
}

TEST(Protocol, LeaseSurvivesTheWire) {
    const Lease lease = sample_lease();
    const Lease read = through_json(LeaseReply{{lease}}).leases.at(0);
    EXPECT_EQ(read, lease);
    EXPECT_EQ(to_json(read), to_json(lease));
    EXPECT_EQ(read.env, lease.env);
    EXPECT_EQ(read.scrape, lease.scrape);
    EXPECT_EQ(read.seed, lease.seed);
    EXPECT_EQ(read.resume_from, lease.resume_from);
}

TEST(Protocol, ACredentialTravelsWhereThereIsOne) {
    Lease lease = sample_lease();
    EXPECT_EQ(to_text(to_json(lease)).find("token"), std::string::npos);
    lease.token = "tune-attempt.r.2.00";
    EXPECT_EQ(through_json(LeaseReply{{lease}}).leases.at(0), lease);
    LeaseRequest request{.request_id = "q", .free_slots = 2, .wait_ms = 3};
    EXPECT_EQ(to_text(to_json(request)), R"({"free_slots":2,"request_id":"q","wait_ms":3})");
    request.wants_tokens = true;
    EXPECT_EQ(through_json(request), request);
}

TEST(Protocol, RegistrationSurvivesTheWire) {
    const RegisterRequest request{.agent_id = "a",
                                  .host = "h",
                                  .pid = 12,
                                  .slots = 3,
                                  .cpus = 4,
                                  .gpus = {"GPU-1", "GPU-2"},
                                  .version = "0.1",
                                  .running = {{"r", 1}, {"s", 2}}};
    EXPECT_EQ(to_json(through_json(request)), to_json(request));
    EXPECT_EQ(through_json(request), request);
    const RegisterReply reply{
        .agent_id = "a", .heartbeat_ms = 5, .lease_ttl_ms = 20, .lost = {{"r", 1}}};
    EXPECT_EQ(to_json(through_json(reply)), to_json(reply));
}

TEST(Protocol, PollsSurviveTheWire) {
    PollRequest request{.session = "s", .turn = 3, .ack = 2, .wait_ms = 5};
    EXPECT_EQ(to_text(to_json(request)),
              R"({"ack":2,"free_slots":0,"running":[],"session":"s","turn":3,"wait_ms":5})");
    request.running = {{"r", 1}};
    request.free_slots = 4;
    request.port = 20'032;
    request.wants_tokens = true;
    request.declined = {{"q", 2}};
    request.leaving = true;
    request.interrupts = true;
    EXPECT_EQ(through_json(request), request);
    const PollReply reply{.sequence = 7,
                          .leases = {sample_lease()},
                          .directives = {{"r", 1, Action::kPrune, "why"}},
                          .lost = {{"s", 2}},
                          .lease_error = "the disk is full",
                          .draining = true};
    EXPECT_EQ(through_json(reply), reply);
    const RegisterRequest agent{.agent_id = "a", .session = "s", .ack = 9, .leaving = true};
    EXPECT_EQ(through_json(agent), agent);
}

TEST(Protocol, PlacesSurviveTheWire) {
    const RegisterRequest agent{.agent_id = "a",
                                .gpus = {"GPU-1"},
                                .devices = {{"GPU-1", 80, "H100", 2}},
                                .memory_bytes = 7,
                                .labels = {"x"},
                                .address = "10.0.0.1",
                                .excluded = {"GPU-2: the GPU is lost"}};
    EXPECT_EQ(through_json(agent), agent);
    Lease lease = sample_lease();
    lease.devices = {{"GPU-1", 5}};
    lease.memory_bytes = 6;
    lease.gang = Gang{.nproc = 2, .node = 1, .nodes = {{"10.0.0.1", 20'032}, {"h", 20'096}}};
    EXPECT_EQ(through_json(LeaseReply{{lease}}).leases.at(0), lease);
    EXPECT_EQ(lease.gang->size(), 4);
    const LeaseRequest request{.request_id = "q", .port = 20'032};
    EXPECT_EQ(through_json(request), request);
    const FinishRequest finish{
        .request_id = "q", .peak_memory_bytes = 8, .peak_gpu_memory_bytes = 9};
    EXPECT_EQ(through_json(finish), finish);
}

TEST(Protocol, TheBytesOfTheWireStay) {
    const std::string lease = to_text(to_json(sample_lease()));
    EXPECT_EQ(lease, R"json({"attempt":2,"checkpoint_dir":"abc/00000007","command":["python",)json"
                     R"json("train.py","--lr=0.1"],"cpus_per_trial":1.5,"env":{"A":"1",)json"
                     R"json("B":"two words"},"experiment_id":"12","gpus_per_trial":0.5,)json"
                     R"json("grace_ms":5,"metric":"loss","number":7,"params":{"lr":0.1,)json"
                     R"json("opt":"adamw"},"resume_from":"abc/00000003",)json"
                     R"json("run_id":"0123456789abcdef0123456789abcdef","scrape":[)json"
                     R"json({"name":"loss","pattern":"loss=(.*)"},{"pattern":"(.*)=(.*)"}],)json"
                     R"json("seed":1234567,"study":"digits","timeout_ms":6,)json"
                     R"json("working_dir":"/srv"})json");
    const FinishRequest finish{.request_id = "q", .signal = 9};
    EXPECT_EQ(to_text(to_json(finish)),
              R"({"cpu_ms":0,"max_rss_kb":0,"outcome":"done","reason":"","request_id":"q",)"
              R"("signal":9,"wall_ms":0})");
    ReportReply reply;
    reply.results = {{.run_id = "r", .attempt = 1}, {.run_id = "s", .attempt = 2, .ok = false}};
    EXPECT_EQ(to_text(to_json(reply)),
              R"({"results":[{"attempt":1,"ok":true,"run_id":"r"},{"attempt":2,)"
              R"("error_code":"","message":"","ok":false,"run_id":"s"}]})");
    EXPECT_EQ(to_text(to_json(FinishReply())), "{}");
}

TEST(Protocol, HeartbeatSurvivesTheWire) {
    for (const Action action :
         {Action::kPrune, Action::kStop, Action::kCheckpointStop, Action::kProfile}) {
        const HeartbeatReply reply{
            .directives = {{.run_id = "r", .attempt = 3, .action = action, .reason = "why"}},
            .lost = {{"s", 1}},
            .draining = true};
        const HeartbeatReply read = through_json(reply);
        EXPECT_EQ(read.directives.at(0).action, action);
        EXPECT_EQ(to_json(read), to_json(reply));
    }
}

TEST(Protocol, NumbersThatAreNotFiniteSurviveTheWire) {
    const double infinity = std::numeric_limits<double>::infinity();
    ReportRequest request;
    request.reports = {{.run_id = "r",
                        .attempt = 1,
                        .metrics = {{"a", std::nan(""), 1, 2},
                                    {"b", infinity, 3, 4},
                                    {"c", -infinity, 5, 6},
                                    {"d", 0.1, 7, 8}},
                        .params = {{"p", "v"}}}};
    const AttemptReport read = through_json(request).reports.at(0);
    EXPECT_TRUE(std::isnan(read.metrics.at(0).value));
    EXPECT_EQ(read.metrics.at(1).value, infinity);
    EXPECT_EQ(read.metrics.at(2).value, -infinity);
    EXPECT_EQ(read.metrics.at(3).value, 0.1);
    EXPECT_EQ(read.params.at(0).value, "v");
}

TEST(Protocol, EveryOutcomeSurvivesTheWire) {
    for (const Outcome outcome :
         {Outcome::kDone, Outcome::kPruned, Outcome::kPreempted, Outcome::kOom, Outcome::kBadConfig,
          Outcome::kFailed, Outcome::kLost, Outcome::kCancelled}) {
        const FinishRequest request{
            .request_id = "q", .outcome = outcome, .exit_code = 3, .timed_out = true};
        const FinishRequest read = through_json(request);
        EXPECT_EQ(read.outcome, outcome);
        EXPECT_EQ(read.exit_code, 3);
        EXPECT_FALSE(read.signal.has_value());
        EXPECT_TRUE(read.timed_out);
    }
}

TEST(Protocol, UnknownFieldsAreIgnoredAndAbsentOnesTakeDefaults) {
    const Result<Json> json = parse_json(R"({"free_slots": 2, "from_the_future": [1]})");
    const Result<LeaseRequest> read = from_json<LeaseRequest>(*json);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->free_slots, 2);
    EXPECT_EQ(read->wait_ms, 0);
}

TEST(Protocol, ErrorsNameTheField) {
    EXPECT_EQ(error_of<LeaseRequest>(R"({"free_slots": "two"})"),
              "field 'free_slots' must be an integer");
    EXPECT_EQ(error_of<LeaseRequest>(R"({"free_slots": 99999999999})"),
              "field 'free_slots' must be an integer of 32 bits");
    EXPECT_EQ(error_of<LeaseRequest>("[]"), "the body must be a JSON object");
    EXPECT_EQ(error_of<RegisterRequest>("{}"),
              "field 'agent_id' must be a string, but it is missing");
    EXPECT_EQ(error_of<RegisterRequest>(R"({"agent_id": "a", "gpus": [1]})"),
              "field 'gpus' must be a list of strings");
    EXPECT_EQ(error_of<HeartbeatRequest>(R"({"running": {}})"), "field 'running' must be a list");
    EXPECT_EQ(error_of<HeartbeatRequest>(R"({"running": [{"attempt": 1}]})"),
              "field 'run_id' must be a string, but it is missing");
    EXPECT_NE(error_of<FinishRequest>(R"({"outcome": "gone"})").find("unknown outcome 'gone'"),
              std::string::npos);
    EXPECT_NE(error_of<ReportRequest>(
                  R"({"reports": [{"run_id": "r", "metrics": [{"key": "k", "value": "big"}]}]})")
                  .find("field 'value' must be a number"),
              std::string::npos);
}

TEST(Protocol, TheAnswerToAnEndSurvivesTheWire) {
    EXPECT_FALSE(through_json(FinishReply()).checkpoints.has_value());
    const FinishReply reply{NeededCheckpoints{
        .folder = "abc", .from = 2, .below = 1ULL << 40, .trials = {3, (1ULL << 40) - 1}}};
    EXPECT_EQ(to_json(through_json(reply)), to_json(reply));
    EXPECT_EQ(through_json(reply).checkpoints->trials, reply.checkpoints->trials);
    EXPECT_EQ(error_of<FinishReply>(R"({"checkpoints": {"folder": "a", "trials": [-1]}})"),
              "field 'trials' must be a list of integers of 0 or more");
    EXPECT_EQ(error_of<FinishReply>(R"({"checkpoints": {"folder": "a", "trials": 1}})"),
              "field 'trials' must be a list");
    EXPECT_NE(error_of<FinishReply>(R"({"checkpoints": {}})"), "");
    EXPECT_NE(error_of<FinishReply>(R"({"checkpoints": {"folder": "a", "from": 0.5}})"), "");
}

}  // namespace
}  // namespace tune::tuner
