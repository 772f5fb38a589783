// posix_spawn with three pipes, which are served by one poll loop, so that neither side waits for
// the other however much it writes. A program that is too slow is killed with its whole session's
// group.

#include "worker/launch/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/text/text.h"

extern char** environ;

namespace tune::launch {
namespace {

constexpr std::size_t kOutputBytesMax = 16u << 20;
constexpr std::size_t kComplaintLines = 5;

struct Pipe {
    UniqueFd read;
    UniqueFd write;
};

Error program_refused(const char* what) {
    return Error{Code::kInternalError, std::string(what) + ": " + std::strerror(errno)};
}

Result<Pipe> make_pipe() {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return program_refused("cannot make a pipe");
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<std::string> variables_of(const ProgramCall& call) {
    std::vector<std::string> variables;
    const auto is_named = [&call](std::string_view variable) {
        return std::any_of(call.environment.begin(), call.environment.end(),
                           [&](const auto& one) { return variable.starts_with(one.first + "="); });
    };
    const auto is_removed = [&call](std::string_view variable) {
        return std::any_of(call.removed.begin(), call.removed.end(), [&](const std::string& name) {
            return variable.starts_with(name + "=");
        });
    };
    for (char** variable = environ; *variable != nullptr; ++variable)
        if (!is_named(*variable) && !is_removed(*variable)) variables.emplace_back(*variable);
    for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
    return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

struct Standard {
    int input;
    int output;
    int errors;
};

Result<pid_t> spawn(const ProgramCall& call, const Standard& fds) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds.input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds.output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds.errors, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    const std::vector<std::string> variables = variables_of(call);
    pid_t pid = -1;
    const int error =
        posix_spawnp(&pid, call.arguments.front().c_str(), &actions, &attributes,
                     pointers_to(call.arguments).data(), pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) return pid;
    return Error{error == ENOENT ? Code::kResourceDoesNotExist : Code::kInternalError,
                 "cannot start '" + call.arguments.front() + "': " + std::strerror(error)};
}

int exit_code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Serves the three pipes of one program until both outputs have ended.
class Conversation {
public:
    Conversation(const ProgramCall& call, UniqueFd input, UniqueFd output, UniqueFd errors)
        : call_(call),
          input_(std::move(input)),
          output_(std::move(output)),
          errors_(std::move(errors)) {
        if (call.input.empty()) input_ = UniqueFd();
        if (input_) fcntl(input_.get(), F_SETFL, O_NONBLOCK);
    }

    /// False: the time is over.
    bool run(ProgramEnd& end) {
        const std::int64_t deadline_ms = SystemClock().monotonic_ms() + call_.timeout_ms;
        while (output_ || errors_) {
            const std::int64_t left_ms = deadline_ms - SystemClock().monotonic_ms();
            if (left_ms <= 0) return false;
            std::array<pollfd, 3> waits = {pollfd{input_.get(), POLLOUT, 0},
                                           pollfd{output_.get(), POLLIN, 0},
                                           pollfd{errors_.get(), POLLIN, 0}};
            if (poll(waits.data(), waits.size(), static_cast<int>(left_ms)) <= 0) continue;
            if (waits[0].revents != 0) feed();
            if (waits[1].revents != 0) take(output_, end.output);
            if (waits[2].revents != 0) take(errors_, end.errors);
        }
        return true;
    }

private:
    void feed() {
        const ssize_t put =
            write(input_.get(), call_.input.data() + fed_, call_.input.size() - fed_);
        if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (put > 0) fed_ += static_cast<std::size_t>(put);
        if (put < 0 || fed_ == call_.input.size()) input_ = UniqueFd();
    }
    static void take(UniqueFd& fd, std::string& into) {
        std::array<char, 65536> piece;
        const ssize_t got = read(fd.get(), piece.data(), piece.size());
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0)
            fd = UniqueFd();
        else if (into.size() < kOutputBytesMax)
            into.append(piece.data(), static_cast<std::size_t>(got));
    }

    const ProgramCall& call_;
    UniqueFd input_;
    UniqueFd output_;
    UniqueFd errors_;
    std::size_t fed_ = 0;
};

/// A write to a program that has ended is an error of the write, not the end of this process.
class NoPipeSignal {
public:
    NoPipeSignal() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoPipeSignal() {
        const timespec at_once = {};
        while (sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoPipeSignal(const NoPipeSignal&) = delete;
    NoPipeSignal& operator=(const NoPipeSignal&) = delete;

private:
    sigset_t pipe_{};
    sigset_t before_{};
};

}  // namespace

Result<ProgramEnd> run_program(const ProgramCall& call) {
    TUNE_TRY(input, make_pipe());
    TUNE_TRY(output, make_pipe());
    TUNE_TRY(errors, make_pipe());
    const NoPipeSignal no_pipe_signal;
    TUNE_TRY(pid, spawn(call, {input.read.get(), output.write.get(), errors.write.get()}));
    input.read = UniqueFd();
    output.write = UniqueFd();
    errors.write = UniqueFd();
    ProgramEnd end;
    Conversation conversation(call, std::move(input.write), std::move(output.read),
                              std::move(errors.read));
    const bool in_time = conversation.run(end);
    if (!in_time) kill(-pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time)
        return Error{Code::kDeadlineExceeded, "'" + call.arguments.front() + "' did not end in " +
                                                  std::to_string(call.timeout_ms / 1000) + " s"};
    end.exit_code = exit_code_of(status);
    return end;
}

Result<std::string> output_of(const ProgramCall& call) {
    TUNE_TRY(end, run_program(call));
    if (end.exit_code == 0) return std::move(end.output);
    std::string complaint = complaint_of(end);
    if (complaint.empty()) complaint = "exit code " + std::to_string(end.exit_code);
    const std::string prefix = call.arguments.front() + ": ";
    return Error{Code::kInvalidState,
                 complaint.starts_with(prefix) ? complaint : prefix + complaint};
}

Result<void> start_program(const ProgramCall& call, const std::string& log) {
    UniqueFd none(open("/dev/null", O_RDONLY | O_CLOEXEC));
    UniqueFd out(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!none || !out) return program_refused(("cannot write " + log).c_str());
    // Between us and it stands a shell that ends at once, so that nobody has to reap it.
    ProgramCall detached = call;
    detached.arguments = {"/bin/sh", "-c", "\"$@\" & exit 0", "sh"};
    detached.arguments.insert(detached.arguments.end(), call.arguments.begin(),
                              call.arguments.end());
    TUNE_TRY(pid, spawn(detached, {none.get(), out.get(), out.get()}));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return {};
}

Result<UniqueFd> run_when_we_end(const std::string& at_the_end) {
    TUNE_TRY(life, make_pipe());
    UniqueFd none(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!none) return program_refused("cannot open /dev/null");
    // `cat` reads until the last descriptor of the other end is closed.
    const ProgramCall call = {
        .arguments = {"/bin/sh", "-c",
                      "exec 3<&0; (cat <&3; " + at_the_end + ") </dev/null & exit 0"}};
    TUNE_TRY(pid, spawn(call, {life.read.get(), none.get(), none.get()}));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return std::move(life.write);
}

std::string complaint_of(const ProgramEnd& end) {
    const std::string lines = last_lines(end.errors, kComplaintLines);
    return lines.empty() ? last_lines(end.output, kComplaintLines) : lines;
}

std::string last_lines(std::string_view text, std::size_t count) {
    text = trimmed(text);
    std::size_t begin = text.size();
    while (count-- > 0 && begin > 0) {
        const std::size_t line_end = text.rfind('\n', begin - 1);
        begin = line_end == std::string_view::npos ? 0 : line_end;
    }
    return std::string(trimmed(text.substr(begin)));
}

}  // namespace tune::launch
