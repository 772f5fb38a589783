#include "worker/agent/attempts/environment.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

class EnvironmentTest : public testing::Test {
protected:
    EnvironmentTest() {
        lease_.study = "digits";
        lease_.number = 7;
        lease_.attempt = 2;
        lease_.run_id = "abc";
        lease_.experiment_id = "3";
        lease_.params_json = R"({"lr":0.1})";
        lease_.seed = 18446744073709551615u;
    }
    std::string get(const std::string& name, const std::vector<std::string>& inherited = {}) {
        return variable(trial_environment(inherited, spec()), name);
    }
    EnvironmentSpec spec() {
        return {&lease_,     &assignment_, server_url_, "/ckpt",
                resume_dir_, "/opt/tune",  cores_,      slots_};
    }

    tuner::Lease lease_;
    Assignment assignment_;
    std::string server_url_ = "http://h:1";
    std::string resume_dir_;
    int cores_ = 8;
    int slots_ = 2;
};

TEST_F(EnvironmentTest, NamesTheCheckpointThatATrialContinues) {
    EXPECT_EQ(get("TUNE_RESUME_FROM", {"TUNE_RESUME_FROM=/another"}), "");
    resume_dir_ = "/ckpt/4";
    EXPECT_EQ(get("TUNE_RESUME_FROM"), "/ckpt/4");
}

TEST_F(EnvironmentTest, IdentifiesTheAttempt) {
    EXPECT_EQ(get("MLFLOW_TRACKING_URI"), "http://h:1");
    EXPECT_EQ(get("MLFLOW_RUN_ID"), "abc");
    EXPECT_EQ(get("MLFLOW_EXPERIMENT_ID"), "3");
    EXPECT_EQ(get("TUNE_STUDY"), "digits");
    EXPECT_EQ(get("TUNE_PARAMS"), R"({"lr":0.1})");
    EXPECT_EQ(get("TUNE_TRIAL"), "7");
    EXPECT_EQ(get("TUNE_ATTEMPT"), "2");
    EXPECT_EQ(get("TUNE_SEED"), "18446744073709551615");
    EXPECT_EQ(get("TUNE_CHECKPOINT_DIR"), "/ckpt");
}

TEST_F(EnvironmentTest, DropsWhatBelongsToAnother) {
    EXPECT_EQ(get("MLFLOW_RUN_ID", {"MLFLOW_RUN_ID=outer"}), "abc");
    EXPECT_EQ(get("TUNE_RANK", {"TUNE_RANK=1"}), "");
    EXPECT_EQ(get("MLFLOW_EXPERIMENT_NAME", {"MLFLOW_EXPERIMENT_NAME=x"}), "");
    EXPECT_EQ(get("HOME", {"HOME=/home/me"}), "/home/me");
}

TEST_F(EnvironmentTest, TheAttemptsCredentialReplacesAnyOther) {
    lease_.token = "tune-attempt.abc.2.secret";
    EXPECT_EQ(get("MLFLOW_TRACKING_TOKEN"), lease_.token);
    EXPECT_EQ(get("MLFLOW_TRACKING_TOKEN", {"MLFLOW_TRACKING_TOKEN=tune-attempt.outer.1.x"}),
              lease_.token);
}

TEST_F(EnvironmentTest, WithoutACredentialTheUsersOwnLoginStays) {
    EXPECT_EQ(get("MLFLOW_TRACKING_TOKEN", {"MLFLOW_TRACKING_TOKEN=of-the-proxy"}), "of-the-proxy");
    EXPECT_EQ(get("MLFLOW_TRACKING_USERNAME", {"MLFLOW_TRACKING_USERNAME=ann"}), "ann");
    EXPECT_EQ(get("MLFLOW_TRACKING_TOKEN", {"MLFLOW_TRACKING_TOKEN=tune-attempt.outer.1.x"}), "")
        << "an outer trial's credential is none of this trial's";
}

TEST_F(EnvironmentTest, ATrialBelievesWhomItsAgentBelieves) {
    constexpr const char* kTrusted = "MLFLOW_TRACKING_SERVER_CERT_PATH";
    constexpr const char* kShown = "MLFLOW_TRACKING_CLIENT_CERT_PATH";
    const std::vector<std::string> known = {"TUNE_CA_FILE=/ca.pem", "TUNE_CLIENT_CERT=/own.pem",
                                            "SSL_CERT_FILE=/all.pem"};
    EXPECT_EQ(get(kTrusted, known), "") << "a server without TLS";
    EXPECT_EQ(get("TUNE_CA_FILE", known), "");
    server_url_ = "https://h:1";
    EXPECT_EQ(get(kTrusted, known), "/ca.pem");
    EXPECT_EQ(get("TUNE_CA_FILE", known), "/ca.pem");
    EXPECT_EQ(get(kShown, known), "/own.pem");
    EXPECT_EQ(get("TUNE_CLIENT_CERT", known), "/own.pem");
    EXPECT_EQ(get("REQUESTS_CA_BUNDLE", known), "") << "its downloads are signed by others";
    EXPECT_EQ(get(kTrusted, {"SSL_CERT_FILE=/all.pem"}), "/all.pem");
    EXPECT_EQ(get(kTrusted, {}), "");
    EXPECT_EQ(get(kTrusted, {"TUNE_CA_FILE=/ca.pem", "MLFLOW_TRACKING_INSECURE_TLS=true"}), "")
        << "MLflow's client refuses both together";
}

TEST_F(EnvironmentTest, TheStudyMaySetAnythingButTheIdentity) {
    lease_.env = {{"OMP_NUM_THREADS", "3"}, {"MLFLOW_RUN_ID", "other"}, {"PYTHONUNBUFFERED", ""}};
    EXPECT_EQ(get("OMP_NUM_THREADS"), "3");
    EXPECT_EQ(get("MLFLOW_RUN_ID"), "abc");
    EXPECT_EQ(get("PYTHONUNBUFFERED"), "");
}

TEST_F(EnvironmentTest, OwnProgramsComeFirst) {
    EXPECT_EQ(get("PATH", {"PATH=/bin"}), "/opt/tune:/bin");
    EXPECT_TRUE(get("PATH").starts_with("/opt/tune:/usr/local/bin"));
}

TEST_F(EnvironmentTest, ThreadsShareTheCores) {
    EXPECT_EQ(get("OMP_NUM_THREADS"), "4");
    EXPECT_EQ(get("MKL_NUM_THREADS"), "4");
    EXPECT_EQ(get("OMP_WAIT_POLICY"), "PASSIVE");  // several threads beside a neighbour
    slots_ = 8;
    EXPECT_EQ(get("OMP_NUM_THREADS"), "1");
    EXPECT_EQ(get("OMP_WAIT_POLICY"), "");
    slots_ = 100;
    EXPECT_EQ(get("OMP_NUM_THREADS"), "1");
}

TEST_F(EnvironmentTest, ALoneTrialKeepsItsWaitPolicy) {
    slots_ = 1;
    EXPECT_EQ(get("OMP_NUM_THREADS"), "8");
    EXPECT_EQ(get("OMP_WAIT_POLICY"), "");
}

TEST_F(EnvironmentTest, OwnCoresNeedNoPassiveThreads) {
    assignment_.cores = {2, 3, 4};
    EXPECT_EQ(get("OMP_NUM_THREADS"), "3");
    EXPECT_EQ(get("OMP_WAIT_POLICY"), "");
}

TEST_F(EnvironmentTest, GpusByUuid) {
    EXPECT_EQ(get("CUDA_VISIBLE_DEVICES", {"CUDA_VISIBLE_DEVICES=0,1"}), "0,1");
    assignment_.gpus = {"GPU-a", "GPU-b"};
    EXPECT_EQ(get("CUDA_VISIBLE_DEVICES", {"CUDA_VISIBLE_DEVICES=0,1"}), "GPU-a,GPU-b");
    EXPECT_EQ(get("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
}

TEST_F(EnvironmentTest, MemoryThatIsCounted) {
    EXPECT_EQ(get("TUNE_MEMORY_BYTES", {"TUNE_MEMORY_BYTES=1"}), "") << "another trial's";
    assignment_.gpus = {"GPU-a"};
    lease_.devices = {{"GPU-a", 0}};
    EXPECT_EQ(get("TUNE_GPU_MEMORY_BYTES"), "") << "it has the whole GPU";
    lease_.devices = {{"GPU-a", 1024}};
    lease_.memory_bytes = 2048;
    EXPECT_EQ(get("TUNE_GPU_MEMORY_BYTES"), "1024");
    EXPECT_EQ(get("TUNE_MEMORY_BYTES"), "2048");
}

TEST_F(EnvironmentTest, ProcessesDivideTheCores) {
    lease_.gang = tuner::Gang{.nproc = 2, .nodes = {{"h", 1}}};
    assignment_.cores = {0, 1, 2, 3};
    EXPECT_EQ(get("OMP_NUM_THREADS"), "2");
    assignment_.cores = {0};
    EXPECT_EQ(get("OMP_NUM_THREADS"), "1");
}

TEST_F(EnvironmentTest, EachNameOnce) {
    const std::vector<std::string> list = trial_environment({"A=1", "A=2", "=odd", "odd"}, spec());
    int count = 0;
    for (const std::string& item : list) count += item.starts_with("A=") ? 1 : 0;
    EXPECT_EQ(count, 1);
    EXPECT_EQ(variable(list, "A"), "2");
}

}  // namespace
}  // namespace tune::worker
