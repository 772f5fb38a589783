// One script for all engines: what differs are words that the engine puts in. Everything that comes
// from a study or a file of settings is quoted.

#include "worker/launch/agent_script.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/id.h"
#include "base/system/unique_fd.h"

namespace tune::launch {
namespace {

namespace fs = std::filesystem;

bool is_plain(std::string_view text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    return !text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos;
}

/// Nobody else can read it at any moment; whoever reads it finds the old or the new content whole.
Result<void> write_private_file(const std::string& path, const std::string& content) {
    const std::string temporary = path + "." + random_hex(4);
    const auto failed = [&temporary] {
        const int error = errno;
        unlink(temporary.c_str());
        return Error{Code::kPermissionDenied,
                     "cannot write " + temporary + ": " + std::strerror(error)};
    };
    const UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return failed();
    const ssize_t put = write(file.get(), content.data(), content.size());
    if (put != static_cast<ssize_t>(content.size())) return failed();
    if (rename(temporary.c_str(), path.c_str()) != 0) return failed();
    return {};
}

void add_number(std::vector<std::string>& words, const char* flag, std::int64_t value) {
    if (value <= 0) return;
    words.emplace_back(flag);
    words.push_back(std::to_string(value));
}

/// When the agent ends by itself. The program there may be one of an image or a site that does not
/// know these flags yet; its agents end when the launcher ends them.
std::string limits_of(const AgentSettings& agents, const std::string& program_word) {
    std::vector<std::string> words;
    if (agents.idle_exit_ms > 0)
        words.insert(words.end(), {"--idle-exit", std::to_string(agents.idle_exit_ms) + "ms"});
    if (agents.time_limit_ms > 0)
        words.insert(words.end(), {"--time-limit", std::to_string(agents.time_limit_ms) + "ms"});
    std::string text = "limits=\n";
    if (!words.empty())
        text += "case $(" + program_word + " agent --help 2>/dev/null) in *--idle-exit*) limits='" +
                shell_line(words) + "' ;; esac\n";
    return text;
}

}  // namespace

std::string shell_quoted(std::string_view text) {
    if (is_plain(text)) return std::string(text);
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
    return line;
}

std::string agent_script(const Launch& launch, const ScriptParts& parts) {
    const AgentSettings& agents = launch.agents;
    std::string script = "umask 077\n";
    script += "TUNE_LAUNCHED_BY=" + shell_quoted(parts.engine) + "; export TUNE_LAUNCHED_BY\n";
    script += "TUNE_LAUNCH=" + shell_quoted(launch.group) + "; export TUNE_LAUNCH\n";
    if (!parts.token_file_word.empty())
        script += "TUNE_TOKEN_FILE=" + parts.token_file_word + "; export TUNE_TOKEN_FILE\n";
    script += "unset TUNE_TOKEN\n";
    if (!agents.setup.empty()) script += agents.setup + "\n";
    script += "state=" + parts.state_word + "\n";
    script += "name=" + parts.name_word + "\n";
    script += "mkdir -p \"$state/$name\" || exit 13\n";
    std::vector<std::string> words = {"agent", "--server", parts.url};
    add_number(words, "--slots", agents.slots);
    add_number(words, "--cpus", agents.cpus);
    if (agents.gpus == 0) words.emplace_back("--no-gpus");
    if (parts.shares_gpus) add_number(words, "--gpus", agents.gpus);
    script += limits_of(agents, parts.program_word);
    script += "exec " + parts.program_word + " " + shell_line(words) +
              (parts.address_word.empty() ? "" : " --address " + parts.address_word) +
              " --state \"$state/$name\" --checkpoints \"$state/checkpoints\" $limits\n";
    return script;
}

Result<std::string> local_state_folder(const AgentSettings& settings) {
    if (!settings.state.empty() && !settings.state.starts_with("~/"))
        return fs::absolute(settings.state).string();
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home == '\0')
        return Error{Code::kInvalidParameterValue,
                     "HOME is not set; name the folder of the agents with 'state'"};
    return std::string(home) +
           (settings.state.empty() ? "/.tune/agents" : settings.state.substr(1));
}

Result<std::string> local_program(const AgentSettings& settings) {
    if (settings.program.empty()) {
        std::error_code error;
        const fs::path self = fs::read_symlink("/proc/self/exe", error);
        if (error)
            return Error{Code::kInternalError, "cannot find this program: " + error.message()};
        return self.string();
    }
    if (access(settings.program.c_str(), X_OK) != 0)
        return Error{
            Code::kInvalidParameterValue,
            "program: '" + settings.program + "' cannot be run here: " + std::strerror(errno)};
    return fs::absolute(settings.program).string();
}

Result<std::string> write_token_file(const std::string& folder, const Launch& launch) {
    if (launch.token.empty()) return std::string();
    std::error_code error;
    fs::create_directories(folder, error);
    const std::string path = folder + "/" + launch.group + ".token";
    TUNE_TRY_VOID(write_private_file(path, launch.token + "\n"));
    return path;
}

}  // namespace tune::launch
