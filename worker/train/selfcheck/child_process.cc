// Output and errors are read at once, so that neither pipe fills up while the other is waited for.
// A child leads a process group: what it starts dies with it.

#include "worker/train/selfcheck/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/system/file.h"

namespace tune::train {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more) {
    std::vector<std::string> list;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (!more.contains(text.substr(0, text.find('=')))) list.push_back(text);
    }
    for (const auto& [name, value] : more) list.push_back(name + "=" + value);
    return list;
}

std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const std::size_t begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

std::string ChildEnd::text() const {
    std::string how =
        timed_out     ? "no end within its time"
        : signal != 0 ? "ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")"
                      : "exit code " + std::to_string(exit_code);
    const std::string reason = last_line(errors);
    return reason.empty() ? how : how + ": " + reason;
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment) {
    int input[2];
    int output[2];
    int errors[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
        pipe2(errors, O_CLOEXEC) != 0)
        return Error{Code::kInternalError, std::string("pipe: ") + std::strerror(errno)};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input[0], 0);
    posix_spawn_file_actions_adddup2(&files, output[1], 1);
    posix_spawn_file_actions_adddup2(&files, errors[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);

    std::vector<std::string> argument_texts = arguments;
    std::vector<std::string> environment_texts = environment_with(environment);
    pid_t pid = 0;
    const int error =
        posix_spawn(&pid, arguments.front().c_str(), &files, &attributes,
                    pointers(argument_texts).data(), pointers(environment_texts).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(input[0]);
    close(output[1]);
    close(errors[1]);
    if (error != 0) {
        close(input[1]);
        close(output[0]);
        close(errors[0]);
        return Error{Code::kInternalError,
                     "cannot start '" + arguments.front() + "': " + std::strerror(error)};
    }
    return ChildProcess(pid, input[1], output[0], errors[0]);
}

ChildProcess::ChildProcess(pid_t pid, int input_fd, int output_fd, int errors_fd)
    : pid_(pid), input_fd_(input_fd), output_fd_(output_fd), errors_fd_(errors_fd) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_fd_(std::exchange(other.input_fd_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      errors_fd_(std::exchange(other.errors_fd_, -1)),
      lines_(other.lines_),
      end_(std::move(other.end_)) {}

ChildProcess::~ChildProcess() {
    if (pid_ > 0) {
        kill(-pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close_input();
    if (output_fd_ >= 0) close(output_fd_);
    if (errors_fd_ >= 0) close(errors_fd_);
}

Result<void> ChildProcess::write(const std::string& text) const {
    if (!write_all(input_fd_, text))
        return Error{Code::kInternalError,
                     std::string("the program reads no more: ") + std::strerror(errno)};
    return {};
}

void ChildProcess::close_input() {
    if (input_fd_ >= 0) close(std::exchange(input_fd_, -1));
}

void ChildProcess::signal(int number) const {
    if (pid_ > 0) kill(-pid_, number);
}

bool ChildProcess::read_until(Clock::time_point deadline, std::size_t lines) {
    char buffer[65536];
    while ((output_fd_ >= 0 || errors_fd_ >= 0) && lines_ < lines) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) return false;
        pollfd waited[2] = {{.fd = output_fd_, .events = POLLIN, .revents = 0},
                            {.fd = errors_fd_, .events = POLLIN, .revents = 0}};
        if (poll(waited, 2, static_cast<int>(left)) < 0 && errno != EINTR) return false;
        for (int i = 0; i < 2; ++i) {
            if (waited[i].revents == 0) continue;
            int& fd = i == 0 ? output_fd_ : errors_fd_;
            const ssize_t count = read(fd, buffer, sizeof buffer);
            if (count <= 0) {
                close(std::exchange(fd, -1));
                continue;
            }
            (i == 0 ? end_.output : end_.errors).append(buffer, static_cast<std::size_t>(count));
            if (i == 0)
                lines_ += static_cast<std::size_t>(std::count(buffer, buffer + count, '\n'));
        }
    }
    return true;
}

bool ChildProcess::wait_lines(std::size_t count, std::chrono::milliseconds limit) {
    return read_until(Clock::now() + limit, count);
}

ChildEnd ChildProcess::wait(std::chrono::milliseconds limit) {
    if (!read_until(Clock::now() + limit, std::numeric_limits<std::size_t>::max())) {
        end_.timed_out = true;
        signal(SIGKILL);
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    kill(-pid_, SIGKILL);  // what it left behind
    pid_ = -1;
    if (WIFEXITED(status)) end_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
    return std::move(end_);
}

std::string own_program() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace tune::train
