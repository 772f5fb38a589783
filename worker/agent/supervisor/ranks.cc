// One thread that waits for the end of children, a deadline, or a request to the rendezvous. Memory
// is never given back: the leader lives as long as its processes.

#include "worker/agent/supervisor/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "worker/agent/supervisor/rendezvous.h"

namespace tune::worker {
namespace {

constexpr std::size_t kFileBytesMax = 4u << 20;
constexpr int kCoresMax = CPU_SETSIZE;

std::int64_t now_ms() {
    timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

char* read_whole(int directory, std::size_t& size) {
    const int file = openat(directory, kRanksFile, O_RDONLY | O_CLOEXEC);
    if (file < 0) return nullptr;
    char* text = static_cast<char*>(malloc(kFileBytesMax));
    size = 0;
    while (text != nullptr && size < kFileBytesMax) {
        const ssize_t count = read(file, text + size, kFileBytesMax - size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        size += static_cast<std::size_t>(count);
    }
    close(file);
    return text;
}

/// Whether the variable `common` is set anew by one of `own`.
bool is_replaced(const char* common, char* const* own) {
    const char* equals = strchr(common, '=');
    if (equals == nullptr) return false;
    const auto length = static_cast<std::size_t>(equals - common) + 1;
    for (; *own != nullptr; ++own)
        if (strncmp(common, *own, length) == 0) return true;
    return false;
}

char** merged(char** common, char** own) {
    std::size_t count = 1;
    for (char** at = common; *at != nullptr; ++at) ++count;
    for (char** at = own; *at != nullptr; ++at) ++count;
    auto** all = static_cast<char**>(calloc(count, sizeof(char*)));
    if (all == nullptr) return common;
    std::size_t filled = 0;
    for (char** at = common; *at != nullptr; ++at)
        if (!is_replaced(*at, own)) all[filled++] = *at;
    for (char** at = own; *at != nullptr; ++at) all[filled++] = *at;
    return all;
}

/// Each process gets an equal run of the attempt's cores, where that comes out even.
void pin(const char* cores, int rank, int count) {
    if (strcmp(cores, "-") == 0) return;
    int all[kCoresMax];
    int found = 0;
    for (const char* at = cores; at != nullptr && *at != '\0' && found < kCoresMax;) {
        all[found++] = static_cast<int>(strtoul(at, nullptr, 10));
        at = strchr(at, ',');
        if (at != nullptr) ++at;
    }
    const bool is_even = found >= count && found % count == 0;
    const int each = is_even ? found / count : found;
    const int begin = is_even ? rank * each : 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = begin; i < begin + each; ++i) CPU_SET(static_cast<std::size_t>(all[i]), &set);
    sched_setaffinity(0, sizeof set, &set);  // a core that has gone away is no reason to fail
}

[[noreturn]] void start_failed(RankReport& report, StartStep step) {
    report.failed_errno = errno;
    report.failed_step = static_cast<int>(step);
    _exit(127);
}

[[noreturn]] void become_rank(const Ranks& ranks, int rank, const LeaderSettings& settings,
                              pid_t leader, RankReport& report) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != leader) _exit(127);  // it was killed before it could be watched
    pin(settings.cores, rank, ranks.count);
    const int out = settings.outputs[rank == 0 ? 0 : rank + 1];
    const int err = settings.outputs[rank + 1];
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        start_failed(report, StartStep::kSystem);
    if (strcmp(settings.working_dir, "-") != 0 && chdir(settings.working_dir) != 0)
        start_failed(report, StartStep::kWorkingDir);
    environ = merged(environ, ranks.variables[rank]);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(settings.command[0], settings.command);
    start_failed(report, StartStep::kExec);
}

struct Leader {
    int deaths = -1;                   // becomes readable when a child has ended
    Rendezvous* rendezvous = nullptr;  // of the machine with rank 0
    pid_t* pids = nullptr;             // 0: it has ended
    int count = 0;
    int alive = 0;
    int status = 0;  // of the first that failed
    bool has_failed = false;
    std::int64_t kill_at_ms = 0;  // once one has failed
};

void end_rest(Leader& self, std::int64_t grace_ms) {
    self.has_failed = true;
    kill(0, SIGTERM);  // the leader itself has it blocked
    kill(0, SIGCONT);
    self.kill_at_ms = now_ms() + (grace_ms < kLeftoverGrace_ms ? grace_ms : kLeftoverGrace_ms);
}

void note_end(Leader& self, pid_t pid, int status, const rusage& usage, std::int64_t grace_ms,
              RankReport& report) {
    for (int rank = 0; rank < self.count; ++rank) {
        if (self.pids[rank] != pid) continue;
        self.pids[rank] = 0;
        --self.alive;
        report.peak_kb += usage.ru_maxrss;
        const bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (is_well || self.has_failed) return;
        self.status = status;
        report.failed_rank = rank;
        return end_rest(self, grace_ms);
    }
}

void reap(Leader& self, std::int64_t grace_ms, RankReport& report) {
    while (true) {
        int status = 0;
        rusage usage;
        const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return;
        note_end(self, pid, status, usage, grace_ms, report);
    }
}

void wait_for_news(Leader& self, std::int64_t left_ms) {
    pollfd polls[1 + kRendezvousPollsMax];
    polls[0] = {self.deaths, POLLIN, 0};
    const int more = self.rendezvous != nullptr ? self.rendezvous->wanted(polls + 1) : 0;
    if (poll(polls, static_cast<nfds_t>(1 + more), static_cast<int>(left_ms)) <= 0) return;
    signalfd_siginfo info;
    while (read(self.deaths, &info, sizeof info) > 0) {
    }
    if (more > 0) self.rendezvous->serve(polls + 1);
}

void wait_for_all(Leader& self, std::int64_t grace_ms, RankReport& report) {
    while (self.alive > 0) {
        reap(self, grace_ms, report);
        if (self.alive == 0) return;
        std::int64_t left = 3'600'000;
        if (self.kill_at_ms > 0) {
            left = self.kill_at_ms - now_ms();
            if (left <= 0) {
                for (int rank = 0; rank < self.count; ++rank)
                    if (self.pids[rank] > 0) kill(self.pids[rank], SIGKILL);
                self.kill_at_ms = 0;
                continue;
            }
        }
        wait_for_news(self, left);
    }
}

[[noreturn]] void end_as(int status) {
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    // What was sent to the group waits for the leader too; it goes with being ignored.
    signal(SIGTERM, SIG_IGN);
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    kill(getpid(), WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

}  // namespace

Ranks read_ranks(int directory) {
    std::size_t size = 0;
    char* text = read_whole(directory, size);
    if (text == nullptr) return {};
    Ranks ranks;
    ranks.count = -1;
    if (size == 0 || size >= kFileBytesMax || text[size - 1] != '\0') return ranks;
    int strings = 0;
    for (std::size_t i = 0; i < size; ++i) strings += text[i] == '\0' ? 1 : 0;
    const auto room = static_cast<std::size_t>(strings) + 1;
    ranks.outputs = static_cast<const char**>(calloc(room, sizeof(char*)));
    ranks.variables = static_cast<char***>(calloc(room, sizeof(char**)));
    auto** list = static_cast<char**>(calloc(room * 2, sizeof(char*)));
    if (ranks.outputs == nullptr || ranks.variables == nullptr || list == nullptr) return ranks;
    ranks.count = 0;
    bool is_name = true;  // the next string is where the output goes
    for (char* at = text; at < text + size; at += strlen(at) + 1) {
        if (is_name) {
            ranks.outputs[ranks.count] = at;
            ranks.variables[ranks.count++] = list;
            is_name = false;
        } else if (*at == '\0') {
            *list++ = nullptr;
            is_name = true;
        } else {
            *list++ = at;
        }
    }
    return ranks;
}

int open_output(int directory, const char* name) {
    char spare[64];
    if (snprintf(spare, sizeof spare, "%s%s", name, kSpareSuffix) < static_cast<int>(sizeof spare))
        renameat(directory, spare, directory, name);  // mostly there is none
    // Not for appending, which splice refuses; nobody else writes to it.
    const int file = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0) lseek(file, 0, SEEK_END);
    return file;
}

RankReport* new_rank_report() {
    void* const shared = mmap(nullptr, sizeof(RankReport), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? nullptr : new (shared) RankReport();
}

bool follow_agent(const char* word) {
    const std::size_t length = strlen(kWithAgent);
    if (strncmp(word, kWithAgent, length) != 0) return true;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == static_cast<pid_t>(strtol(word + length, nullptr, 10));
}

void lead_ranks(const Ranks& ranks, const LeaderSettings& settings, RankReport& report) {
    setsid();
    // Should the supervisor be killed, the processes must not go on unseen: they die with us.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "tune-ranks");
    const pid_t self_pid = getpid();
    Leader self;
    self.count = ranks.count;
    self.pids = static_cast<pid_t*>(calloc(static_cast<std::size_t>(ranks.count), sizeof(pid_t)));
    if (self.pids == nullptr) start_failed(report, StartStep::kSystem);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);  // the supervisor has it blocked
    self.deaths = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    if (self.deaths < 0) start_failed(report, StartStep::kSystem);
    // Before the processes, which ask for it at once.
    self.rendezvous = Rendezvous::open(ranks.variables[0], settings.outputs[1]);
    for (int rank = 0; rank < ranks.count; ++rank) {
        const pid_t pid = fork();
        if (pid == 0) become_rank(ranks, rank, settings, self_pid, report);
        if (pid < 0) {
            report.failed_errno = errno;
            report.failed_step = static_cast<int>(StartStep::kSystem);
            end_rest(self, 0);
            break;
        }
        self.pids[rank] = pid;
        ++self.alive;
    }
    // The pipes end with the last process that writes, which must not be the leader.
    for (int i = 0; i <= ranks.count; ++i) close(settings.outputs[i]);
    wait_for_all(self, settings.grace_ms, report);
    if (self.has_failed) end_as(self.status);
    _exit(0);
}

}  // namespace tune::worker
