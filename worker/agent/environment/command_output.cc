#include "worker/agent/environment/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/system/unique_fd.h"

namespace tune::worker {
namespace {

/// -1: it could not be started.
pid_t start(const std::vector<std::string>& command, int out) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    pid_t pid = -1;
    if (posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ) != 0)
        pid = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/// True when its end was seen in time, or as much was read as is wanted.
bool read_all(int pipe, const CommandLimits& limits, std::string& text) {
    const std::int64_t until_ms = SystemClock().monotonic_ms() + limits.timeout_ms;
    std::array<char, 8192> buffer;
    while (text.size() < limits.bytes_max) {
        const std::int64_t left_ms = until_ms - SystemClock().monotonic_ms();
        pollfd ready{pipe, POLLIN, 0};
        const int polled = left_ms <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left_ms));
        if (polled < 0 && errno == EINTR) continue;
        if (polled <= 0) return false;
        const ssize_t count = read(pipe, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count == 0;
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    text.resize(limits.bytes_max);
    return true;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     const CommandLimits& limits) {
    int ends[2];
    if (command.empty() || pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    const UniqueFd in(ends[0]);
    UniqueFd out(ends[1]);
    const pid_t pid = start(command, out.get());
    out.reset();
    if (pid < 0) return std::nullopt;
    std::string text;
    const bool is_read = read_all(in.get(), limits, text);
    const bool is_cut = text.size() == limits.bytes_max;
    if (!is_read || is_cut) kill(-pid, SIGKILL);  // it leads a session of its own
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!is_read || (!is_cut && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)))
        return std::nullopt;
    return text;
}

}  // namespace tune::worker
