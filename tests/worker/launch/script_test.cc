#include <gtest/gtest.h>

#include "worker/launch/agent_script.h"
#include "worker/launch/program.h"

namespace tune::launch {
namespace {

TEST(ShellQuoted, AShellReadsEachTextBackAsOneWord) {
    for (const std::string text :
         {"", "plain", "two words", "it's", "$HOME `id` \"x\" \\", "a\nb", "*", "-n", "~"}) {
        const auto output =
            output_of({.arguments = {"sh", "-c", "printf %s. " + shell_quoted(text)}});
        ASSERT_TRUE(output) << output.error().message;
        EXPECT_EQ(*output, text + ".");
    }
}

TEST(AgentScript, RunsTheProgramWithWhatTheSettingsSay) {
    Launch launch{.group = "tune-s-1", .server_url = "http://127.0.0.1:1"};
    launch.agents.slots = 2;
    launch.agents.setup = "greeting='hello there'; export greeting";
    const std::string folder = ::testing::TempDir() + "/agent script";
    const std::string script = agent_script(
        launch,
        {.engine = "exec",
         .url = "http://far:5000",
         .program_word = "sh -c 'echo \"$greeting $TUNE_TOKEN. $TUNE_TOKEN_FILE\" \"$@\"' sh",
         .state_word = shell_quoted(folder),
         .name_word = "a-$((1+1))",
         .token_file_word = "/t"});
    const auto output =
        output_of({.arguments = {"sh", "-c", script}, .environment = {{"TUNE_TOKEN", "owner's"}}});
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(*output,
              "hello there . /t agent --server http://far:5000 --slots 2 --no-gpus --state " +
                  folder + "/a-2 --checkpoints " + folder + "/checkpoints\n");
}

TEST(AgentScript, GivesLimitsToAProgramThatKnowsThem) {
    Launch launch{.group = "tune-s-1"};
    launch.agents.time_limit_ms = 3'600'000;
    const std::string folder = ::testing::TempDir() + "/limits";
    const auto limits_for = [&](const std::string& help) {
        const std::string script =
            agent_script(launch, {.engine = "exec",
                                  .url = "http://far:5000",
                                  .program_word = "sh -c 'echo " + help + " \"$@\"' sh",
                                  .state_word = shell_quoted(folder),
                                  .name_word = "a"});
        const std::string output =
            output_of({.arguments = {"sh", "-c", script}}).value_or("it failed");
        const std::size_t at = output.find("/checkpoints");
        return at == std::string::npos ? output : output.substr(at + 12);
    };
    EXPECT_EQ(limits_for("--idle-exit"), " --idle-exit 60000ms --time-limit 3600000ms\n");
    EXPECT_EQ(limits_for("--slots"), "\n");
}

TEST(AgentScript, NamesTheGpusThatAreItsShareAndTheAddressForOthers) {
    Launch launch{.group = "tune-s-1", .server_url = "http://127.0.0.1:1"};
    launch.agents.gpus = 2;
    const std::string folder = ::testing::TempDir() + "/shares";
    ScriptParts parts{.engine = "ssh",
                      .url = "http://127.0.0.1:7",
                      .program_word = "echo",
                      .state_word = shell_quoted(folder),
                      .name_word = "a",
                      .address_word = "\"$address\"",
                      .shares_gpus = true};
    const auto words_of = [&] {
        return output_of({.arguments = {"sh", "-c",
                                        "address='10.0.0.7'\n" + agent_script(launch, parts)}})
            .value_or("it failed");
    };
    EXPECT_NE(words_of().find(" --gpus 2 --address 10.0.0.7 --state "), std::string::npos)
        << words_of();
    parts.shares_gpus = false;  // the engine's mask says which
    EXPECT_EQ(words_of().find("--gpus"), std::string::npos);
}

TEST(RunProgram, HidesWhatItIsToHide) {
    ASSERT_EQ(setenv("TUNE_TEST_SECRET", "x", 1), 0);
    const auto output = output_of(
        {.arguments = {"sh", "-c", "echo [$TUNE_TEST_SECRET]"}, .removed = {"TUNE_TEST_SECRET"}});
    unsetenv("TUNE_TEST_SECRET");
    EXPECT_EQ(output ? *output : output.error().message, "[]\n");
}

TEST(RunProgram, GivesInputOutputAndExitCode) {
    const std::string much(1 << 20, 'x');
    const auto end =
        run_program({.arguments = {"sh", "-c", "cat; echo oops >&2; exit 7"}, .input = much});
    ASSERT_TRUE(end);
    EXPECT_EQ(end->output, much);
    EXPECT_EQ(end->errors, "oops\n");
    EXPECT_EQ(end->exit_code, 7);
}

TEST(RunProgram, ThatReadsNoInputIsNoError) {
    const auto end = run_program({.arguments = {"true"}, .input = std::string(1 << 20, 'x')});
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 0);
}

TEST(RunProgram, ThatIsTooSlowIsKilled) {
    const auto end = run_program({.arguments = {"sleep", "100"}, .timeout_ms = 50});
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, Code::kDeadlineExceeded);
}

TEST(RunProgram, ThatIsMissingIsSaid) {
    const auto end = run_program({.arguments = {"no-such-program"}});
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, Code::kResourceDoesNotExist);
}

TEST(OutputOf, AFailureHasTheEndOfItsErrors) {
    const auto output = output_of(
        {.arguments = {"sh", "-c", "for i in 1 2 3 4 5 6 7; do echo $i >&2; done; exit 1"}});
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().message, "sh: 3\n4\n5\n6\n7");
}

TEST(LastLines, AreTheLastOnes) {
    EXPECT_EQ(last_lines("a\nb\nc\n\n", 2), "b\nc");
    EXPECT_EQ(last_lines("a", 3), "a");
    EXPECT_EQ(last_lines("", 3), "");
}

}  // namespace
}  // namespace tune::launch
