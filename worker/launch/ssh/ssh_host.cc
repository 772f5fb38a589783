#include "worker/launch/ssh/ssh_host.h"

#include <charconv>

#include "base/text/text.h"
#include "worker/launch/agent_script.h"
#include "worker/launch/program.h"

namespace tune::launch {
namespace {

constexpr std::int64_t kConnect_ms = 30'000;
constexpr std::int64_t kRun_ms = 120'000;

}  // namespace

std::vector<std::string> SshHost::ssh(const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {"ssh", "-S", options_.control, "-o", "BatchMode=yes"};
    if (!options_.config.empty()) words.insert(words.end(), {"-F", options_.config});
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(options_.host);
    return words;
}

Result<bool> SshHost::connect() {
    TUNE_TRY(check, run_program({.arguments = ssh({"-O", "check"}), .timeout_ms = kConnect_ms}));
    if (check.exit_code == 0 && life_) return false;
    if (check.exit_code == 0) disconnect();  // one that an earlier launcher left
    const Result<std::string> connected = output_of(
        {.arguments = ssh({"-M", "-f", "-N", "-o", "ControlPersist=no", "-o", "ConnectTimeout=10",
                           "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"}),
         .timeout_ms = kConnect_ms});
    if (!connected)
        return Error{Code::kTemporarilyUnavailable,
                     "host " + options_.host + ": " + connected.error().message};
    TUNE_TRY(life, run_when_we_end(shell_line(ssh({"-O", "exit"}))));
    life_ = std::move(life);
    return true;
}

Result<std::string> SshHost::run(const std::string& script, const std::string& input) const {
    std::vector<std::string> words = ssh({"-o", "ConnectTimeout=10"});
    words.push_back("sh -c " + shell_quoted(script));
    Result<std::string> output =
        output_of({.arguments = words, .input = input, .timeout_ms = kRun_ms});
    if (output) return output;
    return Error{output.error().code, "host " + options_.host + ": " + output.error().message};
}

Result<int> SshHost::forward(const std::string& target, int wanted) const {
    const std::string from = "127.0.0.1:" + std::to_string(wanted) + ":" + target;
    TUNE_TRY(end, run_program({.arguments = ssh({"-O", "forward", "-R", from}),
                               .timeout_ms = kConnect_ms}));
    if (end.exit_code != 0)
        return Error{Code::kResourceConflict, "host " + options_.host + " does not forward port " +
                                                  std::to_string(wanted) + ": " +
                                                  complaint_of(end)};
    if (wanted != 0) return wanted;
    int port = 0;
    const std::string_view text = trimmed(end.output);
    std::from_chars(text.data(), text.data() + text.size(), port);
    if (port > 0) return port;
    return Error{Code::kResourceConflict,
                 "host " + options_.host + " gave no port for the way back: " + complaint_of(end)};
}

void SshHost::disconnect() {
    static_cast<void>(run_program({.arguments = ssh({"-O", "exit"}), .timeout_ms = kConnect_ms}));
    life_ = UniqueFd();
}

}  // namespace tune::launch
