// The supervisor's program lives in a memfd, so that it needs no file beside `tune`. It is started
// with vfork semantics, which makes the cost independent of the agent's size. Processes are named
// by pidfd and start time: a number alone may belong to another process by the time it is used.
// After a supervisor died, its trial is found by the environment.

#include "worker/agent/supervisor/launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/system/file.h"
#include "worker/agent/supervisor/supervisor.h"

extern "C" {
extern const char supervisor_image_begin[];
extern const char supervisor_image_end[];
}

namespace tune::worker {
namespace {

/// The supervisor's image in the child; it closes it at once.
constexpr int kImageFd = 3;
constexpr const char* kImagePath = "/proc/self/fd/3";

UniqueFd open_pidfd(int pid) {
    return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

std::string join_cores(const std::vector<int>& cores) {
    if (cores.empty()) return "-";
    std::string text;
    for (const int core : cores) text += (text.empty() ? "" : ",") + std::to_string(core);
    return text;
}

std::vector<std::string> arguments_of(const LaunchSpec& spec) {
    std::vector<std::string> arguments = {
        "tune-supervisor",
        spec.directory,
        spec.wake_fifo,
        std::to_string(spec.serial),
        std::to_string(spec.grace_ms),
        std::to_string(spec.timeout_ms),
        join_cores(spec.cores),
        spec.working_dir.empty() ? "-" : spec.working_dir,
        spec.cgroup.empty() ? "-" : spec.cgroup,
        spec.with_agent ? kWithAgent + std::to_string(getpid()) : "--"};
    arguments.insert(arguments.end(), spec.command.begin(), spec.command.end());
    return arguments;
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    pointers.reserve(strings.size() + 1);
    for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

/// What a supervisor starts with: own session, default signals, the three that it reads blocked,
/// no descriptor of ours but its image and those it is to keep, which follow the image.
class SpawnSettings {
public:
    SpawnSettings(int image_fd, const std::vector<int>& inherited, int input) {
        posix_spawn_file_actions_init(&actions_);
        if (input >= 0)
            posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
        else
            posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        // By way of numbers above all others, so that none is overwritten before it was copied.
        const auto count = static_cast<int>(inherited.size());
        int above = std::max(image_fd, kImageFd + count);
        for (const int fd : inherited) above = std::max(above, fd);
        for (int i = 0; i < count; ++i)
            posix_spawn_file_actions_adddup2(&actions_, inherited[static_cast<std::size_t>(i)],
                                             above + 1 + i);
        posix_spawn_file_actions_adddup2(&actions_, image_fd, kImageFd);
        for (int i = 0; i < count; ++i)
            posix_spawn_file_actions_adddup2(&actions_, above + 1 + i, kImageFd + 1 + i);
        posix_spawn_file_actions_addclosefrom_np(&actions_, kImageFd + 1 + count);
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        sigset_t blocked;
        sigemptyset(&blocked);
        for (const int signal : {SIGTERM, SIGQUIT, SIGCHLD}) sigaddset(&blocked, signal);
        posix_spawnattr_setsigmask(&attributes_, &blocked);
        sigset_t all;
        sigfillset(&all);
        posix_spawnattr_setsigdefault(&attributes_, &all);
    }
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;

    [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
    [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

private:
    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

/// The fields of /proc/PID/stat that are used here, as proc(5) counts them.
enum StatField {
    kStartTime = 22,
    kVirtualBytes = 23,
    kEnvironmentBegin = 50,
    kEnvironmentEnd = 51
};

/// -1: there is no such process.
std::int64_t stat_of(const std::string& stat, StatField wanted) {
    std::size_t at = stat.rfind(')');
    for (int field = 2; at != std::string::npos && field < wanted; ++field)
        at = stat.find(' ', at + 1);
    return at == std::string::npos ? -1 : std::strtoll(stat.c_str() + at, nullptr, 10);
}

std::int64_t start_time_of(int pid) {
    return stat_of(read_file("/proc/" + std::to_string(pid) + "/stat").value_or(""), kStartTime);
}

/// "" for a process that is none of ours. While execve gives a process a new address space it shows
/// no environment, or the beginning of the old one: then it is read again.
std::string environment_of(int pid) {
    constexpr int kTriesMax = 1000;
    const std::string folder = "/proc/" + std::to_string(pid);
    std::int64_t empty_begin = 0;
    for (int i = 0; i < kTriesMax; ++i) {
        const Result<std::string> read = read_file(folder + "/environ");
        if (!read) return "";
        const std::string stat = read_file(folder + "/stat").value_or("");
        // A zombie and a thread of the kernel have no address space.
        if (stat_of(stat, kVirtualBytes) <= 0) return "";
        const std::int64_t begin = stat_of(stat, kEnvironmentBegin);
        const std::int64_t size = stat_of(stat, kEnvironmentEnd) - begin;
        const bool is_whole = begin > 0 && size == static_cast<std::int64_t>(read->size());
        // Its end is settled last; one that is really empty stays so, at one address.
        if (is_whole && (size > 0 || begin == empty_begin)) return *read;
        empty_begin = is_whole ? begin : 0;
        poll(nullptr, 0, 1);  // nobody tells of the end of an execve
    }
    return "";
}

bool has_variable(const std::string& environment, const std::string& assignment) {
    const std::string bounded = '\0' + assignment + '\0';
    return ('\0' + environment).find(bounded) != std::string::npos;
}

}  // namespace

Result<Launcher> Launcher::create() {
    UniqueFd image(memfd_create("tune-supervisor", MFD_CLOEXEC));
    const auto size = static_cast<std::size_t>(supervisor_image_end - supervisor_image_begin);
    std::size_t done = 0;
    while (image && done < size) {
        const ssize_t count = write(image.get(), supervisor_image_begin + done, size - done);
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    if (done < size)
        return Error{Code::kInternalError,
                     std::string("cannot place the trial supervisor in memory (memfd): ") +
                         std::strerror(errno)};
    return Launcher(std::move(image));
}

Result<Process> Launcher::start(const LaunchSpec& spec) const {
    const SpawnSettings settings(image_.get(), spec.inherited, spec.input);
    const std::vector<std::string> arguments = arguments_of(spec);
    const std::vector<char*> argv = pointers_to(arguments);
    const std::vector<char*> envp = pointers_to(spec.environment);
    pid_t pid = -1;
    const int failure = posix_spawn(&pid, kImagePath, settings.actions(), settings.attributes(),
                                    argv.data(), envp.data());
    if (failure != 0) {
        if (failure == E2BIG)
            return Error{Code::kInvalidParameterValue,
                         "the command and its environment are longer than the system allows"};
        const bool limit = failure == EAGAIN || failure == ENOMEM || failure == EMFILE;
        return Error{limit ? Code::kResourceExhausted : Code::kInternalError,
                     std::string("cannot start the trial's supervisor: ") + std::strerror(failure)};
    }
    Process process{pid, open_pidfd(pid)};
    if (!process.pidfd) {
        const int reason = errno;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        return Error{Code::kResourceExhausted,
                     std::string("cannot watch the trial's supervisor: ") + std::strerror(reason)};
    }
    return process;
}

Result<Process> find_process(int pid, std::int64_t start_time) {
    Process process{pid, open_pidfd(pid)};
    // The start time is read after the descriptor is open: then it is this very process's.
    if (!process.pidfd || start_time_of(pid) != start_time)
        return Error{Code::kResourceDoesNotExist, "process " + std::to_string(pid) + " has ended"};
    return process;
}

void signal_process(const Process& process, int signal) {
    syscall(SYS_pidfd_send_signal, process.pidfd.get(), signal, nullptr, 0);
}

void reap_process(const Process& process) {
    siginfo_t info{};
    waitid(P_PIDFD, static_cast<id_t>(process.pidfd.get()), &info, WEXITED | WNOHANG);
}

namespace {

std::vector<Process> find_processes(const std::vector<std::string>& assignments) {
    std::vector<Process> found;
    DIR* proc = opendir("/proc");
    if (proc == nullptr) return found;
    while (const dirent* item = readdir(proc)) {
        const int pid = std::atoi(item->d_name);
        if (pid <= 0 || pid == getpid()) continue;
        UniqueFd pidfd = open_pidfd(pid);
        if (!pidfd) continue;
        const std::string environment = environment_of(pid);
        const bool is_one = std::all_of(
            assignments.begin(), assignments.end(),
            [&](const std::string& assignment) { return has_variable(environment, assignment); });
        if (is_one) found.push_back({pid, std::move(pidfd)});
    }
    closedir(proc);
    return found;
}

}  // namespace

std::vector<Process> find_processes_with(const std::string& assignment) {
    return find_processes({assignment});
}

std::vector<Process> find_marked_processes(const std::string& run_id, int attempt) {
    return find_processes({"MLFLOW_RUN_ID=" + run_id, "TUNE_ATTEMPT=" + std::to_string(attempt)});
}

}  // namespace tune::worker
