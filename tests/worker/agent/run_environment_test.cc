#include "worker/agent/environment/run_environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/environment/command_output.h"

namespace tune::worker {
namespace {

TEST(CommandOutput, IsWhatTheProgramPrints) {
    EXPECT_EQ(output_of({"sh", "-c", "echo a; echo b >&2; echo c"}), "a\nc\n");
    EXPECT_EQ(output_of({"sh", "-c", "cat"}), "") << "there is no input";
}

TEST(CommandOutput, OfAFailureIsNothing) {
    EXPECT_FALSE(output_of({"sh", "-c", "echo a; exit 3"}));
    EXPECT_FALSE(output_of({"no-such-program-here"}));
    EXPECT_FALSE(output_of({}));
}

TEST(CommandOutput, IsBounded) {
    EXPECT_EQ(output_of({"yes"}, {.bytes_max = 10}), "y\ny\ny\ny\ny\n");
    EXPECT_FALSE(output_of({"sh", "-c", "echo a; sleep 600"}, {.timeout_ms = 50}));
}

class RunEnvironmentTest : public testing::Test {
protected:
    void run(const std::string& script) {
        const std::string all = "cd '" + folder_.path().string() + "' && " + script;
        ASSERT_TRUE(output_of({"sh", "-c", all})) << script;
    }
    void make_repository() {
        run("git init -q -b work . && git config user.email a@b && git config user.name n && "
            "echo one > train.py && git add . && git commit -q -m first && "
            "git remote add origin https://user:secret@host/code.git");
    }
    std::map<std::string, std::string> tags(std::vector<std::string> command) {
        EnvironmentQuestion question{.command = std::move(command),
                                     .working_dir = folder_.path(),
                                     .search_path = "/usr/local/bin:/usr/bin:/bin"};
        question.gpus = gpus_;
        question.driver_version = "575";
        RunEnvironment environment = capture_.capture(question);
        diff_ = environment.diff;
        return {environment.tags.begin(), environment.tags.end()};
    }
    Scratch folder_;
    EnvironmentCapture capture_;
    std::vector<GpuFacts> gpus_;
    std::string diff_;
};

TEST_F(RunEnvironmentTest, KnowsTheCommit) {
    make_repository();
    auto found = tags({"python3", "-u", "train.py", "--lr=1"});
    EXPECT_EQ(found["mlflow.source.name"], "train.py");
    EXPECT_EQ(found["mlflow.source.type"], "LOCAL");
    EXPECT_EQ(found["mlflow.source.git.commit"].size(), 40u);
    EXPECT_EQ(found["mlflow.source.git.branch"], "work");
    EXPECT_EQ(found["mlflow.source.git.dirty"], "false");
    EXPECT_EQ(found["mlflow.source.git.repoURL"], "https://host/code.git") << "without the login";
    EXPECT_EQ(found["tune.command"], R"(["python3","-u","train.py","--lr=1"])");
    EXPECT_EQ(diff_, "");
}

TEST_F(RunEnvironmentTest, NoPartOfALoginBecomesATag) {
    make_repository();
    const std::map<std::string, std::string> urls = {
        {"https://u:p@ss@host/code.git", "https://host/code.git"},
        {"https://u:p@@@host:8443/a@b.git", "https://host:8443/a@b.git"},
        {"https://token@host", "https://host"},
        {"ssh://git@host/code.git", "ssh://host/code.git"},
        {"https://host/a@b.git", "https://host/a@b.git"},
        {"git@host:code.git", "git@host:code.git"},
    };
    for (const auto& [url, shown] : urls) {
        run("git remote set-url origin '" + url + "'");
        EnvironmentCapture capture;  // git is asked again
        const RunEnvironment environment =
            capture.capture({.command = {"./train.sh"},
                             .working_dir = folder_.path(),
                             .search_path = "/usr/local/bin:/usr/bin:/bin"});
        const std::map<std::string, std::string> found(environment.tags.begin(),
                                                       environment.tags.end());
        EXPECT_EQ(found.at("mlflow.source.git.repoURL"), shown);
    }
}

TEST_F(RunEnvironmentTest, KnowsWhatIsNotCommitted) {
    make_repository();
    run("echo two >> train.py");
    auto found = tags({"./train.sh"});
    EXPECT_EQ(found["mlflow.source.git.dirty"], "true");
    EXPECT_NE(diff_.find("+two"), std::string::npos) << diff_;
    run("seq 1 400000 > train.py");
    tags({"./train.sh"});
    EXPECT_NE(diff_.find("+two"), std::string::npos) << "git is not asked again at once";
    EnvironmentCapture later;
    const RunEnvironment environment =
        later.capture({.command = {"x"}, .working_dir = folder_.path(), .search_path = ""});
    EXPECT_EQ(environment.diff.size(), kDiffBytesMax);
}

TEST_F(RunEnvironmentTest, OutsideOfGitNothingIsSaidOfIt) {
    auto found = tags({"sh", "run.sh"});
    EXPECT_FALSE(found.contains("mlflow.source.git.commit"));
    EXPECT_FALSE(found.contains("mlflow.source.git.dirty"));
    EXPECT_FALSE(found.contains("tune.python"));
    EXPECT_FALSE(found.contains("tune.devices"));
    EXPECT_EQ(found["mlflow.source.name"], "sh");
    EXPECT_TRUE(found["tune.platform"].starts_with("Linux "));
}

TEST_F(RunEnvironmentTest, AsksTheTrialsPython) {
    folder_.append("python", "#!/bin/sh\necho '{\"python\": \"3.99\"}'\n");
    chmod((folder_.path() / "python").c_str(), 0755);
    EXPECT_EQ(tags({"./python", "-m", "pkg.train"})["tune.python"], "{\"python\": \"3.99\"}");
    EXPECT_EQ(tags({"./python", "-m", "pkg.train"})["mlflow.source.name"], "pkg.train");
    EXPECT_NE(tags({"python3", "x.py"})["tune.python"].find("\"python\": \"3."), std::string::npos);
}

TEST_F(RunEnvironmentTest, NamesTheDevices) {
    gpus_ = {{.uuid = "GPU-a", .name = "H100", .bytes = 5}};
    auto found = tags({"x"});
    EXPECT_EQ(found["tune.devices"], R"([{"bytes":5,"name":"H100","uuid":"GPU-a"}])");
    EXPECT_EQ(found["tune.gpu_driver"], "575");
}

TEST_F(RunEnvironmentTest, DigestsTheData) {
    folder_.append("a.csv", "x\n");
    std::filesystem::create_directory(folder_.path() / "shards");
    folder_.append("shards/index.json", "{}");
    folder_.append("notes.txt", "x");
    auto found = tags({"train", "--data=a.csv", "shards", "notes.txt", "none.csv"});
    EXPECT_EQ(found["tune.data"],
              "{\"a.csv\":\"sha256:"
              "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac\","
              "\"shards\":\"sha256:"
              "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}");
    folder_.append("a.csv", "y\n");
    EXPECT_NE(tags({"train", "a.csv"})["tune.data"].find("sha256:"), std::string::npos);
    EXPECT_EQ(tags({"train", "a.csv"})["tune.data"].find("73cb3858"), std::string::npos);
}

TEST_F(RunEnvironmentTest, OfLargeFilesTheEndsAreDigested) {
    const std::string path = (folder_.path() / "big.csv").string();
    folder_.append("big.csv", "head");
    std::filesystem::resize_file(path, 80u << 20);
    folder_.append("big.csv", "tail");
    const std::string first = tags({"train", "big.csv"})["tune.data"];
    EXPECT_NE(first.find("sha256-of-ends:"), std::string::npos);
    folder_.append("big.csv", "more");
    EXPECT_NE(tags({"train", "big.csv"})["tune.data"], first);
}

}  // namespace
}  // namespace tune::worker
