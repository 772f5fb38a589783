// What an agent does with trials while all is well.

#include <cmath>
#include <set>

#include "base/system/file.h"
#include "tests/worker/agent/agent_fixture.h"

namespace tune::worker {
namespace {

using tuner::Action;
using tuner::Outcome;

TEST_F(AgentTest, RunsATrialAndReportsItsEnd) {
    start();
    offer(shell("r1", "echo hello; exit 0"));
    const FakeCoordinator::Finish finish = server_.wait_for_finish("r1");
    EXPECT_EQ(finish.request.outcome, Outcome::kDone);
    EXPECT_EQ(finish.request.exit_code, 0);
    EXPECT_EQ(finish.attempt, 1);
    EXPECT_EQ(artifact("r1", "stdout.log", "\n"), "hello\n");
    drain();
    EXPECT_FALSE(left_behind());
    EXPECT_EQ(agent_->status().finished, 1);
}

TEST_F(AgentTest, ReportsEachExitClass) {
    start();
    const std::vector<std::pair<std::string, Outcome>> cases = {
        {"exit 0", Outcome::kDone},       {"exit 10", Outcome::kPruned},
        {"exit 11", Outcome::kPreempted}, {"exit 12", Outcome::kOom},
        {"exit 13", Outcome::kBadConfig}, {"exit 1", Outcome::kFailed},
        {"kill -9 $$", Outcome::kFailed}, {"echo CUDA out of memory >&2; exit 1", Outcome::kOom}};
    for (std::size_t i = 0; i < cases.size(); ++i)
        offer(shell("r" + std::to_string(i), cases[i].first));
    for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_EQ(server_.wait_for_finish("r" + std::to_string(i)).request.outcome, cases[i].second)
            << cases[i].first;
}

TEST_F(AgentTest, ACommandThatIsNotThereIsBadConfiguration) {
    start();
    offer(lease("r1", {"trian"}));
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(finish.outcome, Outcome::kBadConfig);
    EXPECT_TRUE(finish.reason.starts_with("command not found: 'trian' is not in PATH"))
        << finish.reason;
    artifact("r1", "agent.log", "command not found");
    tuner::Lease empty = lease("r2", {});
    offer(empty);
    EXPECT_EQ(server_.wait_for_finish("r2").request.outcome, Outcome::kBadConfig);
    tuner::Lease pattern = shell("r3", "true");
    pattern.scrape = {{"", "("}};
    offer(pattern);
    EXPECT_EQ(server_.wait_for_finish("r3").request.outcome, Outcome::kBadConfig);
    tuner::Lease cores = shell("r4", "true");
    cores.cpus_per_trial = 4096;
    offer(cores);
    EXPECT_EQ(server_.wait_for_finish("r4").request.outcome, Outcome::kBadConfig);
    tuner::Lease escape = shell("r5", "true");
    escape.checkpoint_dir = "../../etc";
    offer(escape);
    EXPECT_EQ(server_.wait_for_finish("r5").request.outcome, Outcome::kBadConfig);
    drain();
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, GivesTheTrialItsEnvironment) {
    start();
    tuner::Lease given = shell(
        "r1",
        "echo $MLFLOW_TRACKING_URI $MLFLOW_RUN_ID $TUNE_STUDY $TUNE_TRIAL $TUNE_ATTEMPT $TUNE_SEED "
        "$MINE $TUNE_PARAMS; test -d $TUNE_CHECKPOINT_DIR && echo checkpoints; pwd");
    given.number = 4;
    given.attempt = 2;
    given.seed = 9;
    given.params_json = R"({"lr":0.5})";
    given.env = {{"MINE", "yes"}};
    given.working_dir = "/";
    offer(given);
    EXPECT_EQ(server_.wait_for_finish("r1").attempt, 2);
    EXPECT_EQ(artifact("r1", "stdout.log", "checkpoints\n/\n"),
              server_.url() + " r1 study 4 2 9 yes {\"lr\":0.5}\ncheckpoints\n/\n");
}

TEST_F(AgentTest, KeepsCheckpointsBetweenAttempts) {
    start();
    tuner::Lease first = shell("r1", "echo 41 >$TUNE_CHECKPOINT_DIR/state; exit 11");
    first.checkpoint_dir = "study/1";
    offer(first);
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kPreempted);
    artifact("r1", "attempt-1/agent.log", "asked to run again");
    tuner::Lease second = shell("r2", "cat $TUNE_CHECKPOINT_DIR/state");
    second.checkpoint_dir = "study/1";
    offer(second);
    server_.wait_for_finish("r2");
    EXPECT_EQ(artifact("r2", "stdout.log", "\n"), "41\n");
}

TEST_F(AgentTest, RemovesCheckpointsThatNobodyWillContinue) {
    start();
    const std::filesystem::path root = state_.path() / "state" / "checkpoints";
    for (const char* file :
         {"study/00000000/early", "study/00000001/w", "study/00000002/deep/w", "study/00000003/w",
          "study/00000009/late", "study/notes/w", "study/1x/w", "other/00000001/w", "00000001"}) {
        std::filesystem::create_directories((root / file).parent_path());
        ASSERT_TRUE(write_file_atomic(root / file, "weights"));
    }
    std::filesystem::create_directory_symlink(root / "other", root / "study/00000004");
    server_.answer_ends({tuner::NeededCheckpoints{"study", 1, 9, {3}}});
    tuner::Lease trial = shell("r1", "echo 41 >$TUNE_CHECKPOINT_DIR/state");
    trial.checkpoint_dir = "study/00000008";
    offer(trial);
    server_.wait_for_finish("r1");
    // Names that lead elsewhere, and a study that left nothing here.
    int next = 2;
    for (const char* folder : {"../checkpoints/study", "..", ".", "", "/", "nothing"}) {
        server_.answer_ends({tuner::NeededCheckpoints{folder, 0, 99, {}}});
        const std::string run_id = "r" + std::to_string(next++);
        offer(shell(run_id, "true"));
        server_.wait_for_finish(run_id);
    }
    drain();
    std::set<std::string> left;
    for (const auto& item : std::filesystem::directory_iterator(root / "study"))
        left.insert(item.path().filename().string());
    EXPECT_EQ(left, (std::set<std::string>{"00000000", "00000003", "00000009", "notes", "1x"}));
    EXPECT_TRUE(std::filesystem::exists(root / "other/00000001/w")) << "what a link leads to stays";
    EXPECT_TRUE(std::filesystem::exists(root / "00000001"));
}

TEST_F(AgentTest, ATrialFindsTheCheckpointThatItContinues) {
    start();
    tuner::Lease parent = shell("r1", "echo 41 >$TUNE_CHECKPOINT_DIR/state");
    parent.checkpoint_dir = "study/1";
    offer(parent);
    server_.wait_for_finish("r1");
    tuner::Lease child = shell("r2", "cat $TUNE_RESUME_FROM/state; ls $TUNE_CHECKPOINT_DIR");
    child.checkpoint_dir = "study/2";
    child.resume_from = "study/1";
    offer(child);
    EXPECT_EQ(server_.wait_for_finish("r2").request.outcome, Outcome::kDone);
    EXPECT_EQ(artifact("r2", "stdout.log", "\n"), "41\n");
    // It left nothing itself, so nobody can continue it.
    tuner::Lease orphan = shell("r3", "true");
    orphan.checkpoint_dir = "study/3";
    orphan.resume_from = "study/2";
    offer(orphan);
    const tuner::FinishRequest finish = server_.wait_for_finish("r3").request;
    EXPECT_EQ(finish.outcome, Outcome::kBadConfig);
    EXPECT_NE(finish.reason.find("study/2', which this trial continues: the command must write"),
              std::string::npos)
        << finish.reason;
    tuner::Lease escape = shell("r4", "true");
    escape.resume_from = "../../etc";
    offer(escape);
    EXPECT_EQ(server_.wait_for_finish("r4").request.outcome, Outcome::kBadConfig);
}

TEST_F(AgentTest, MetricsComeInOrderBeforeTheEnd) {
    start();
    offer(lease("r1", {"python3", "-c",
                       "import os\n"
                       "for i in range(500): os.write(1, b'tune: {\"loss\": %d' % (500 - i));"
                       " os.write(1, b', \"step\": %d}\\n' % i)\n"
                       "os.write(1, b'tune: {\"last\": NaN}')"}));
    server_.wait_for_finish("r1");
    const std::vector<tuner::ReportedMetric> metrics = server_.reported("r1");
    ASSERT_EQ(metrics.size(), 501u);
    for (std::size_t i = 0; i < 500; ++i) {
        EXPECT_EQ(metrics[i].step, static_cast<std::int64_t>(i));
        EXPECT_EQ(metrics[i].value, 500.0 - static_cast<double>(i));
    }
    EXPECT_EQ(metrics[500].key, "last");
    EXPECT_TRUE(std::isnan(metrics[500].value));
}

TEST_F(AgentTest, MetricsComeWhileTheTrialRuns) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; " + gate("go") + "; echo 'tune: {\"a\": 2}'"));
    server_.wait_for_metrics("r1", 1);
    EXPECT_EQ(server_.metrics("r1"), "a@0=1 ");
    open_gate("go");
    server_.wait_for_finish("r1");
    EXPECT_EQ(server_.metrics("r1"), "a@0=1 a@1=2 ");
}

TEST_F(AgentTest, ScrapesAndCountsWhatIsMalformed) {
    start();
    tuner::Lease given =
        shell("r1", "echo 'epoch 1 loss: 0.5'; echo 'tune: {oops' ; echo 'tune: 3'");
    given.scrape = {{"", "loss"}};
    offer(given);
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(server_.metrics("r1"), "loss@0=0.5 ");
    artifact("r1", "agent.log", "2 malformed 'tune:' lines");
    EXPECT_EQ(finish.reason.find("a 'tune:' line could not be read: 'tune: {oops': "), 0u);
}

TEST_F(AgentTest, LogsAreUploadedWhileTheyGrow) {
    start();
    offer(shell("r1", "echo one; echo err >&2; " + gate("go") + "; echo two"));
    EXPECT_EQ(artifact("r1", "stdout.log", "\n"), "one\n");
    EXPECT_EQ(artifact("r1", "stderr.log", "\n"), "err\n");
    open_gate("go");
    EXPECT_EQ(artifact("r1", "stdout.log", "two\n"), "one\ntwo\n");
}

TEST_F(AgentTest, NothingOfALogIsSentTwice) {
    start();
    const std::string one = std::string(100'000, '1') + "\n";
    const std::string two = std::string(1'000, '2') + "\n";
    offer(shell("r1", "printf '%0100000d\\n' 0 | tr 0 1; " + gate("go") +
                          "; printf '%01000d\\n' 0 | tr 0 2; " + gate("end")));
    EXPECT_EQ(artifact("r1", "stdout.log", "1\n"), one);
    open_gate("go");
    EXPECT_EQ(artifact("r1", "stdout.log", "2\n"), one + two);
    open_gate("end");
    server_.wait_for_finish("r1");
    drain();
    server_.wait_until([&] {
        EXPECT_EQ(server_.sent_bytes["7/r1/artifacts/logs/stdout.log"], one.size() + two.size());
        return true;
    });
}

TEST_F(AgentTest, ALogThatTheServerLostIsSentWhole) {
    start();
    offer(shell("r1", "echo one; " + gate("go") + "; echo two"));
    EXPECT_EQ(artifact("r1", "stdout.log", "\n"), "one\n");
    server_.wait_until([&] {
        server_.artifacts["7/r1/artifacts/logs/stdout.log"] = "o";
        return true;
    });
    open_gate("go");
    EXPECT_EQ(artifact("r1", "stdout.log", "two\n"), "one\ntwo\n");
}

TEST_F(AgentTest, AnArtifactThatALineNamesIsThereBeforeTheEnd) {
    start();
    offer(shell("r1",
                "mkdir $TUNE_ARTIFACT_DIR/a; echo trace >$TUNE_ARTIFACT_DIR/a/b; "
                "ln -s /etc/passwd $TUNE_ARTIFACT_DIR/link; "
                "for name in $TUNE_ARTIFACT_DIR/a/b ../stdout.log /etc/passwd link; do "
                "echo 'tune: {\"artifact\": \"'$name'\"}'; done; " +
                    gate("go") + "; echo more >$TUNE_ARTIFACT_DIR/c"));
    EXPECT_EQ(server_.wait_for_artifact("7/r1/artifacts/a/b", "trace"), "trace\n");
    EXPECT_EQ(server_.finish_calls("r1"), 0);
    open_gate("go");
    EXPECT_EQ(server_.wait_for_artifact("7/r1/artifacts/c", "more"), "more\n");
    drain();
    EXPECT_EQ(server_.sent_bytes["7/r1/artifacts/a/b"], 6u) << "it went once";
    EXPECT_FALSE(server_.artifacts.contains("7/r1/artifacts/link"));
    EXPECT_FALSE(server_.artifacts.contains("7/r1/artifacts/stdout.log"));
    const std::string notes = artifact("r1", "agent.log", "'link'");
    EXPECT_NE(notes.find("'../stdout.log', which is no file in TUNE_ARTIFACT_DIR"),
              std::string::npos)
        << notes;
}

TEST_F(AgentTest, TheLogsOfAnAttemptAreNotWrittenOverByThoseOfAnEarlierOne) {
    AgentOptions given = options();
    given.log_upload_period_ms = 60'000;
    start(given);
    server_.hold_upload();
    offer(shell("r1", "echo first; exit 11"));
    server_.wait_for_finish("r1", 1);
    tuner::Lease second = shell("r1", "echo second");
    second.attempt = 2;
    offer(second);
    server_.wait_for_finish("r1", 2);
    // Of two uploaders one is held: what went by before this did so while the first log was late.
    offer(shell("r2", "echo other"));
    EXPECT_EQ(artifact("r2", "stdout.log", "\n"), "other\n");
    server_.release_upload();
    drain();
    EXPECT_EQ(artifact("r1", "stdout.log", "\n"), "second\n");
    EXPECT_EQ(artifact("r1", "attempt-1/stdout.log", "\n"), "first\n");
}

TEST_F(AgentTest, ObeysDirectives) {
    start();
    const std::vector<std::tuple<std::string, Action, Outcome>> cases = {
        {"r1", Action::kPrune, Outcome::kPruned},
        {"r2", Action::kStop, Outcome::kCancelled},
        {"r3", Action::kCheckpointStop, Outcome::kPreempted}};
    for (const auto& [run, action, outcome] : cases) {
        offer(shell(run, "echo 'tune: {\"a\": 1}'; sleep 1000"));
        server_.wait_for_metrics(run, 1);
        server_.direct({run, 1, action, "because"});
        const tuner::FinishRequest finish = server_.wait_for_finish(run).request;
        EXPECT_EQ(finish.outcome, outcome);
        EXPECT_EQ(finish.reason, "because");
    }
}

TEST_F(AgentTest, PrunesATrialThatIgnoresSigterm) {
    start();
    tuner::Lease stubborn =
        shell("r1", "trap '' TERM; echo 'tune: {\"a\": 1}'; while true; do sleep 1000; done");
    stubborn.grace_ms = 100;
    offer(stubborn);
    server_.wait_for_metrics("r1", 1);
    server_.direct({"r1", 1, Action::kPrune, "late"});
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(finish.outcome, Outcome::kPruned);
    EXPECT_EQ(finish.signal, SIGKILL);
    artifact("r1", "agent.log", "were killed");
}

TEST_F(AgentTest, ATimeOutIsAFailure) {
    start();
    tuner::Lease slow = shell("r1", "sleep 1000");
    slow.timeout_ms = 50;
    offer(slow);
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(finish.outcome, Outcome::kFailed);
    EXPECT_NE(finish.reason.find("timeout"), std::string::npos);
}

TEST_F(AgentTest, AnAttemptThatIsAnothersIsEndedInSilence) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; sleep 1000"));
    server_.wait_for_metrics("r1", 1);
    server_.take_away("r1");
    offer(shell("r2", "true"));
    server_.wait_for_finish("r2");
    drain();
    EXPECT_EQ(server_.finish_calls("r1"), 0);
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, RegistersAgainWhenItIsForgotten) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; " + gate("go")));
    server_.wait_for_metrics("r1", 1);
    server_.forget_agent();
    server_.wait_until([&] { return server_.registrations.size() == 2; });
    EXPECT_EQ(server_.registrations[1].agent_id, server_.registrations[0].agent_id);
    ASSERT_EQ(server_.registrations[1].running.size(), 1u);
    EXPECT_EQ(server_.registrations[1].running[0].run_id, "r1");
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
}

TEST_F(AgentTest, NeverRunsMoreThanItsSlots) {
    start();
    const std::string count = "cd " + state_.path().string() +
                              " && mkdir slot.$$ && ls -d slot.* | wc -l && sleep 0.02 && rmdir "
                              "slot.$$";
    for (int i = 0; i < 20; ++i) offer(shell("r" + std::to_string(i), count));
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(server_.wait_for_finish("r" + std::to_string(i)).request.exit_code, 0);
        EXPECT_LE(std::stoi(artifact("r" + std::to_string(i), "stdout.log", "\n")), 2);
    }
}

TEST_F(AgentTest, FiftyAtATime) {
    AgentOptions many = options();
    many.slots = 50;
    start(many);
    for (int i = 0; i < 200; ++i)
        offer(shell("r" + std::to_string(i),
                    "for i in 1 2 3; do echo \"tune: {\\\"a\\\": $i}\"; done; exit 0"));
    for (int i = 0; i < 200; ++i) {
        const std::string run = "r" + std::to_string(i);
        EXPECT_EQ(server_.wait_for_finish(run).request.outcome, Outcome::kDone);
        EXPECT_EQ(server_.metrics(run), "a@0=1 a@1=2 a@2=3 ");
    }
    drain();
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, TrialsWaitForTheirCores) {
    start();
    for (const char* run : {"r1", "r2", "r3"}) {
        tuner::Lease greedy = shell(run, "exit 0");
        greedy.cpus_per_trial = 1;
        offer(greedy);
    }
    for (const char* run : {"r1", "r2", "r3"})
        EXPECT_EQ(server_.wait_for_finish(run).request.outcome, Outcome::kDone);
}

TEST_F(AgentTest, AnAnswerThatIsRepeatedWhileItsTrialWaitsBeginsItOnce) {
    AgentOptions one_core = options();
    one_core.cpus = 1;
    one_core.slots = 5;
    start(one_core);
    const std::filesystem::path begun = state_.path() / "begun";
    // A pool whose trials end at once, and which writes down whom it was given.
    const std::string pool =
        "while read -r line; do case \"$line\" in *'\"r2\"'*) id=r2;; *) id=r4;; esac; echo $id "
        ">> " +
        begun.string() +
        R"(; echo "{\"event\":\"ended\",\"trial\":\"$id\",\"attempt\":1,\"exit_code\":0}"; done)";
    tuner::Lease first = shell("r1", gate("go"));
    tuner::Lease waiting = shell("r2", pool);
    tuner::Lease last = shell("r4", pool);
    first.cpus_per_trial = waiting.cpus_per_trial = last.cpus_per_trial = 1;
    waiting.pool = last.pool = tuner::PoolPlace{.name = "pool", .size = 4};
    for (const tuner::Lease& lease : {first, waiting, waiting, last}) offer(lease);
    offer(shell("r3", "true"));
    server_.wait_for_finish("r3");  // all have arrived
    open_gate("go");
    server_.wait_for_finish("r4");  // it waited behind them
    EXPECT_EQ(read_file(begun).value(), "r2\nr4\n");
}

TEST_F(AgentTest, LogsSystemMetrics) {
    AgentOptions given = options();
    given.system_metrics_period_ms = 100;
    start(given);
    offer(shell("r1", gate("go")));
    server_.wait_for_metrics("r1", 10);
    open_gate("go");
    server_.wait_for_finish("r1");
    EXPECT_NE(server_.metrics("r1").find("system/cpu_utilization_percentage@"), std::string::npos);
}

TEST_F(AgentTest, OneAgentAFolder) {
    start();
    const Result<std::unique_ptr<Agent>> second = Agent::create(options());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::kResourceAlreadyExists);
    EXPECT_NE(second.error().message.find("another agent"), std::string::npos);
}

TEST_F(AgentTest, RefusesOptionsItCannotUse) {
    AgentOptions given = options();
    given.server_url = "ftp://nowhere";
    EXPECT_FALSE(Agent::create(given));
    given = options();
    given.cpus = 100'000;
    EXPECT_FALSE(Agent::create(given));
    given = options();
    given.state_dir = "/proc/nowhere";
    EXPECT_EQ(Agent::create(given).error().code, Code::kPermissionDenied);
}

TEST_F(AgentTest, WaitsForAServerThatIsNotUpYet) {
    server_.go_away();
    start();
    server_.come_back();
    offer(shell("r1", "exit 0"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
}

}  // namespace
}  // namespace tune::worker
