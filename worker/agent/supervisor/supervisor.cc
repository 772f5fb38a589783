// tune-supervisor: the supervisor of one trial process. A static program of a few hundred kilobytes
// that starts in well under a millisecond, because one is started for each attempt. It holds the
// trial's pipes, so that neither the agent's death nor a slow network ever reaches the trial, and
// it is the subreaper of the trial's whole tree: a process that leaves the group, or is forked
// twice to escape, becomes its child. So "the tree is gone" is exact: there is no child left.
//
// Several processes of one attempt have a leader between them and the supervisor (ranks.h).
//
// One thread, one ppoll loop, no allocation after the start except in the tree scan. The contract
// with the agent is supervisor.h.

#include "worker/agent/supervisor/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "worker/agent/supervisor/outputs.h"
#include "worker/agent/supervisor/ownership.h"
#include "worker/agent/supervisor/ranks.h"

namespace {

using namespace tune::worker;

constexpr std::int64_t kNever = INT64_MAX;
constexpr int kFirstArgument = 1;
constexpr int kImageDescriptor = 3;          // this program's own image, as the agent hands it over
constexpr int kArgumentsBeforeCommand = 10;  // program, eight of the contract, "--"

struct Settings {
    const char* directory;
    const char* wake_fifo;
    std::uint64_t serial;
    std::int64_t grace_ms;
    std::int64_t timeout_ms;
    const char* cores;
    const char* working_dir;
    const char* cgroup;
    char** command;
};

enum class Phase { kRunning, kEnding, kKilling };

struct Supervisor {
    Settings settings;
    int directory = -1;
    int wake = -1;
    int signals = -1;
    Output* outputs = nullptr;  // stdout, stderr, then one of each further process
    int output_count = 2;
    pollfd* polls = nullptr;  // signals, then the outputs
    Ranks ranks = {};
    RankReport* report = nullptr;  // of the leader of several processes
    pid_t trial = -1;
    bool trial_gone = false;
    int status = 0;
    rusage usage = {};
    Phase phase = Phase::kRunning;
    std::int64_t started_ms = 0;
    std::int64_t ended_ms = 0;
    std::int64_t timeout_at_ms = kNever;
    std::int64_t kill_at_ms = kNever;
    bool stopped = false;    // the agent asked for the end while the trial was alive
    bool timed_out = false;  // the time-out did
    bool killed = false;     // SIGKILL was needed
    bool swept = false;      // processes outlived the main one and were ended
    StartStep failed_step = StartStep::kNone;
    int failed_errno = 0;
    std::int64_t memory_peak = 0;  // bytes, by the cgroup
    std::int64_t oom_kills = -1;   // in the cgroup; -1: it has none
};

// Shared with the vforked child, which runs in this memory until it execs.
volatile int g_child_errno = 0;
volatile int g_child_step = 0;

std::int64_t clock_ms(clockid_t id) {
    timespec time;
    clock_gettime(id, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

std::int64_t monotonic_ms() {
    return clock_ms(CLOCK_BOOTTIME);
}

void pin_to_cores(const char* cores) {
    if (strcmp(cores, "-") == 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const char* at = cores; at != nullptr && *at != '\0';) {
        CPU_SET(static_cast<std::size_t>(strtoul(at, nullptr, 10)), &set);
        at = strchr(at, ',');
        if (at != nullptr) ++at;
    }
    sched_setaffinity(0, sizeof set, &set);  // a core that has gone away is no reason to fail
}

[[noreturn]] void child_failed(StartStep step) {
    g_child_errno = errno;
    g_child_step = static_cast<int>(step);
    _exit(127);
}

/// In the vforked child: only calls that are safe after vfork.
[[noreturn]] void become_trial(const Settings& settings, int out, int err) {
    setsid();
    // Should this supervisor be killed, the trial must not go on unseen.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin_to_cores(settings.cores);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        child_failed(StartStep::kSystem);
    if (strcmp(settings.working_dir, "-") != 0 && chdir(settings.working_dir) != 0)
        child_failed(StartStep::kWorkingDir);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(settings.command[0], settings.command);
    child_failed(StartStep::kExec);
}

/// A pipe for each output. False: the system has no more; errno says why.
bool make_pipes(Supervisor& self, int* write_ends) {
    for (int i = 0; i < self.output_count; ++i) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return false;
        self.outputs[i].pipe = ends[0];
        write_ends[i] = ends[1];
    }
    return true;
}

void start_failed(Supervisor& self, int error) {
    self.failed_step = StartStep::kSystem;
    self.failed_errno = error;
    self.trial_gone = true;
}

void start_trial(Supervisor& self) {
    auto* write_ends =
        static_cast<int*>(calloc(static_cast<std::size_t>(self.output_count), sizeof(int)));
    if (write_ends == nullptr || !make_pipes(self, write_ends)) return start_failed(self, errno);
    self.started_ms = monotonic_ms();
    if (self.ranks.count > 0) {
        self.trial = fork();
        if (self.trial == 0)
            lead_ranks(self.ranks,
                       {self.settings.command, self.settings.working_dir, self.settings.cores,
                        self.settings.grace_ms, write_ends},
                       *self.report);
    } else {
        self.trial = vfork();
        if (self.trial == 0) become_trial(self.settings, write_ends[0], write_ends[1]);
    }
    if (self.trial < 0) {
        start_failed(self, errno);
    } else if (g_child_step != 0) {
        self.failed_step = static_cast<StartStep>(g_child_step);
        self.failed_errno = g_child_errno;
    }
    for (int i = 0; i < self.output_count; ++i) {
        close(write_ends[i]);
        fcntl(self.outputs[i].pipe, F_SETFL, O_NONBLOCK);
    }
    free(write_ends);
    if (self.settings.timeout_ms > 0)
        self.timeout_at_ms = self.started_ms + self.settings.timeout_ms;
}

/// Moves what the trial has written to its file; see move_output.
void pump(Supervisor& self, Output& output, bool to_end) {
    if (!move_output(self.directory, output, to_end) || self.wake < 0) return;
    if (write(self.wake, &self.settings.serial, kWakeRecordBytes) < 0) return;  // full: see header
}

/// Sends `signal` to every descendant; the kernel re-parents the children of the dead to us, so
/// repeating this after each death reaches all of them.
void signal_tree(int signal) {
    struct Entry {
        pid_t pid;
        pid_t parent;
        bool ours;
    };
    Entry* entries = nullptr;
    std::size_t count = 0;
    std::size_t capacity = 0;
    DIR* proc = opendir("/proc");
    if (proc == nullptr) return;
    while (const dirent* item = readdir(proc)) {
        char line[1024];
        if (item->d_name[0] < '0' || item->d_name[0] > '9') continue;
        if (!read_stat(item->d_name, line, sizeof line)) continue;
        if (count == capacity) {
            capacity = capacity == 0 ? 1024 : capacity * 2;
            void* grown = realloc(entries, capacity * sizeof(Entry));
            if (grown == nullptr) break;
            entries = static_cast<Entry*>(grown);
        }
        entries[count++] = {static_cast<pid_t>(atoi(item->d_name)),
                            static_cast<pid_t>(stat_field(line, 4)), false};
    }
    closedir(proc);
    const pid_t self = getpid();
    for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t i = 0; i < count; ++i) {
            if (entries[i].ours) continue;
            bool ours = entries[i].parent == self;
            for (std::size_t j = 0; j < count && !ours; ++j)
                ours = entries[j].ours && entries[j].pid == entries[i].parent;
            if (!ours) continue;
            entries[i].ours = grew = true;
            kill(entries[i].pid, signal);
        }
    }
    free(entries);
}

/// While the main process lives its group id cannot be another's; later the tree is walked.
void signal_trial(Supervisor& self, int signal) {
    if (!self.trial_gone)
        kill(-self.trial, signal);
    else
        signal_tree(signal);
}

void begin_end(Supervisor& self, std::int64_t grace_ms) {
    const std::int64_t kill_at = monotonic_ms() + grace_ms;
    if (kill_at < self.kill_at_ms) self.kill_at_ms = kill_at;
    if (self.phase != Phase::kRunning) return;
    self.phase = Phase::kEnding;
    signal_trial(self, SIGTERM);
    signal_trial(self, SIGCONT);  // a stopped process would sleep through SIGTERM
}

void kill_all(Supervisor& self) {
    self.phase = Phase::kKilling;
    self.kill_at_ms = kNever;
    self.killed = true;
    if (!self.trial_gone) kill(-self.trial, SIGKILL);
    signal_tree(SIGKILL);
}

/// Reaps all that has ended. True when no child is left.
bool reap(Supervisor& self) {
    while (true) {
        int status = 0;
        rusage usage;
        const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) return true;  // ECHILD
        if (pid == 0) return false;
        if (pid != self.trial) continue;
        self.trial_gone = true;
        self.status = status;
        self.ended_ms = monotonic_ms();
    }
}

/// After something has ended. True when the whole tree is gone.
bool after_deaths(Supervisor& self) {
    const bool had_trial = !self.trial_gone;
    if (reap(self)) return true;
    if (self.trial_gone && had_trial) {
        self.swept = true;
        self.timeout_at_ms = kNever;
        const std::int64_t leftover =
            kLeftoverGrace_ms < self.settings.grace_ms ? kLeftoverGrace_ms : self.settings.grace_ms;
        // The group has had its SIGTERM if an end was begun already; those outside it have not.
        if (self.phase == Phase::kEnding) signal_tree(SIGTERM);
        begin_end(self, leftover);
    }
    if (self.phase == Phase::kKilling) signal_tree(SIGKILL);
    return false;
}

/// True when the whole tree is gone.
bool take_signal(Supervisor& self) {
    signalfd_siginfo info;
    bool gone = false;
    while (read(self.signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        if (info.ssi_signo == SIGCHLD) {
            gone = after_deaths(self);
        } else {
            if (!self.trial_gone) self.stopped = true;
            if (info.ssi_signo == SIGQUIT)
                kill_all(self);
            else
                begin_end(self, self.settings.grace_ms);
        }
    }
    return gone;
}

void take_deadlines(Supervisor& self) {
    const std::int64_t now = monotonic_ms();
    if (now >= self.timeout_at_ms && !self.trial_gone) {
        self.timeout_at_ms = kNever;
        self.timed_out = true;
        begin_end(self, self.settings.grace_ms);
    }
    if (now >= self.kill_at_ms && self.phase != Phase::kKilling) kill_all(self);
}

void supervise(Supervisor& self) {
    bool gone = reap(self);  // a command that could not be started is dead already
    while (!gone) {
        self.polls[0] = {self.signals, POLLIN, 0};
        for (int i = 0; i < self.output_count; ++i)
            self.polls[i + 1] = {self.outputs[i].pipe, POLLIN, 0};
        const std::int64_t at =
            self.timeout_at_ms < self.kill_at_ms ? self.timeout_at_ms : self.kill_at_ms;
        timespec wait = {};
        if (at != kNever) {
            const std::int64_t left = at - monotonic_ms();
            wait.tv_sec = left > 0 ? left / 1000 : 0;
            wait.tv_nsec = left > 0 ? (left % 1000 + 1) * 1'000'000 - 1 : 0;
        }
        const auto poll_count = static_cast<nfds_t>(self.output_count) + 1;
        if (ppoll(self.polls, poll_count, at == kNever ? nullptr : &wait, nullptr) < 0 &&
            errno != EINTR)
            break;
        for (int i = 0; i < self.output_count; ++i)
            if (self.polls[i + 1].revents != 0) pump(self, self.outputs[i], false);
        if ((self.polls[0].revents & POLLIN) != 0) gone = take_signal(self);
        take_deadlines(self);
    }
    for (int i = 0; i < self.output_count; ++i) pump(self, self.outputs[i], true);
}

std::int64_t usage_ms(const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/// The record's text; its length.
int describe_end(Supervisor& self, char* text, std::size_t capacity) {
    rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    const RankReport report = self.report == nullptr ? RankReport() : *self.report;
    if (report.failed_step != 0) {
        self.failed_step = static_cast<StartStep>(report.failed_step);
        self.failed_errno = report.failed_errno;
    }
    std::int64_t lost = 0;  // of all but the first one
    for (int i = 1; i < self.output_count; ++i) lost += self.outputs[i].lost;
    const bool started = self.failed_step == StartStep::kNone;
    const bool exited = started && WIFEXITED(self.status);
    const bool signalled = started && WIFSIGNALED(self.status);
    return snprintf(
        text, capacity,
        "{\"exit_code\":%d,\"signal\":%d,\"failed_step\":%d,\"failed_errno\":%d,\"stopped\":%s,"
        "\"timed_out\":%s,\"killed\":%s,\"swept\":%s,\"max_rss_kb\":%ld,\"cpu_ms\":%lld,"
        "\"wall_ms\":%lld,\"end_ms\":%lld,\"stdout_lost\":%lld,\"stderr_lost\":%lld,"
        "\"failed_rank\":%d,\"peak_kb\":%lld,\"memory_peak\":%lld,\"oom_kills\":%lld}\n",
        exited ? WEXITSTATUS(self.status) : -1, signalled ? WTERMSIG(self.status) : 0,
        static_cast<int>(self.failed_step), self.failed_errno, self.stopped ? "true" : "false",
        self.timed_out ? "true" : "false", self.killed ? "true" : "false",
        self.swept ? "true" : "false", usage.ru_maxrss, static_cast<long long>(usage_ms(usage)),
        static_cast<long long>(self.ended_ms - self.started_ms),
        static_cast<long long>(clock_ms(CLOCK_REALTIME)),
        static_cast<long long>(self.outputs[0].lost), static_cast<long long>(lost),
        report.failed_rank,
        static_cast<long long>(self.report == nullptr ? usage.ru_maxrss : report.peak_kb),
        static_cast<long long>(self.memory_peak), static_cast<long long>(self.oom_kills));
}

bool write_exit_record(Supervisor& self) {
    char text[1024];
    int length = describe_end(self, text, sizeof text);
    const int file = openat(self.directory, kExitTemporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return false;
    bool is_written = pwrite(file, text, static_cast<std::size_t>(length), 0) == length;
    if (!is_written && make_room(self.outputs, self.output_count)) {  // the disk is full
        length = describe_end(self, text, sizeof text);
        is_written = pwrite(file, text, static_cast<std::size_t>(length), 0) == length;
    }
    // Cut afterwards, as the agent's files are (attempt_files.cc).
    is_written = is_written && ftruncate(file, length) == 0;
    close(file);
    return is_written && renameat(self.directory, kExitTemporary, self.directory, kExitFile) == 0;
}

bool has_cgroup(const Supervisor& self) {
    return strcmp(self.settings.cgroup, "-") != 0;
}

/// Opens a file of the trial's cgroup; `name` may lead out of it.
int open_cgroup_file(const Supervisor& self, const char* name, int flags) {
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", self.settings.cgroup, name);
    if (length < 0 || length >= static_cast<int>(sizeof path)) return -1;
    return open(path, flags | O_CLOEXEC);
}

bool write_cgroup_file(const Supervisor& self, const char* name, const char* text) {
    const int file = open_cgroup_file(self, name, O_WRONLY);
    if (file < 0) return false;
    const bool written = write(file, text, strlen(text)) > 0;
    const int error = errno;
    close(file);
    errno = error;
    return written;
}

/// The number after `word` in a file of the cgroup, or at its beginning if that is empty; -1: none.
std::int64_t read_cgroup_number(const Supervisor& self, const char* name, const char* word) {
    char text[1024];
    const int file = open_cgroup_file(self, name, O_RDONLY);
    if (file < 0) return -1;
    const ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count <= 0) return -1;
    text[count] = '\0';
    const char* at = strstr(text, word);
    return at == nullptr ? -1 : strtoll(at + strlen(word), nullptr, 10);
}

/// What is started from now on is in the trial's cgroup. A trial without the limits it was promised
/// is not started.
bool enter_cgroup(Supervisor& self) {
    if (!has_cgroup(self) || write_cgroup_file(self, "cgroup.procs", "0")) return true;
    self.failed_step = StartStep::kCgroup;
    self.failed_errno = errno;
    self.trial_gone = true;
    return false;
}

void leave_cgroup(Supervisor& self) {
    if (!has_cgroup(self)) return;
    char leaf[64];
    snprintf(leaf, sizeof leaf, "../%s/cgroup.procs", kSupervisorsCgroup);
    if (!write_cgroup_file(self, leaf, "0")) self.settings.cgroup = "-";
}

/// After the tree is gone: what it used.
void end_cgroup(Supervisor& self) {
    if (!has_cgroup(self)) return;
    self.memory_peak = read_cgroup_number(self, "memory.peak", "");
    self.oom_kills = read_cgroup_number(self, "memory.events", "oom_kill ");
    rmdir(self.settings.cgroup);
}

/// The agent's locks stay with this process; the trial must not take them further.
void keep_from_trial(int first) {
    for (int fd = first; fcntl(fd, F_SETFD, FD_CLOEXEC) == 0; ++fd) {
    }
}

/// What an attempt of several processes needs beside that of one. False: no memory for it.
bool prepare_outputs(Supervisor& self) {
    self.ranks = read_ranks(self.directory);
    if (self.ranks.count < 0) return false;
    if (self.ranks.count > 1) self.output_count = self.ranks.count + 1;
    const auto count = static_cast<std::size_t>(self.output_count);
    self.outputs = static_cast<Output*>(calloc(count, sizeof(Output)));
    self.polls = static_cast<pollfd*>(calloc(count + 1, sizeof(pollfd)));
    if (self.outputs == nullptr || self.polls == nullptr) return false;
    for (int i = 0; i < self.output_count; ++i)
        self.outputs[i] = {i == 0 ? kStdoutFile : i == 1 ? kStderrFile : self.ranks.outputs[i - 1]};
    if (self.ranks.count == 0) return true;
    return (self.report = new_rank_report()) != nullptr;
}

bool prepare(Supervisor& self) {
    self.directory = open(self.settings.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (self.directory < 0 || !take_ownership(self.directory)) return false;
    if (!prepare_outputs(self)) return false;
    prctl(PR_SET_NAME, "tune-supervisor");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // Read and write: the write end then never fails for want of a reader.
    self.wake = open(self.settings.wake_fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    self.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return self.signals >= 0;
}

}  // namespace

int main(int argc, char** argv) {
    close(kImageDescriptor);
    keep_from_trial(kImageDescriptor + 1);
    if (argc <= kArgumentsBeforeCommand) {
        fputs("tune-supervisor is started by the tune agent; it cannot be used alone.\n", stderr);
        return 2;
    }
    Supervisor self = {};
    char** argument = argv + kFirstArgument;
    self.settings = {argument[0],
                     argument[1],
                     strtoull(argument[2], nullptr, 10),
                     strtoll(argument[3], nullptr, 10),
                     strtoll(argument[4], nullptr, 10),
                     argument[5],
                     argument[6],
                     argument[7],
                     argv + kArgumentsBeforeCommand};
    if (!prepare(self) || !follow_agent(argv[kArgumentsBeforeCommand - 1])) return 1;
    if (enter_cgroup(self)) start_trial(self);
    leave_cgroup(self);
    supervise(self);
    end_cgroup(self);
    if (self.ended_ms == 0) self.ended_ms = self.started_ms;
    return write_exit_record(self) ? 0 : 1;
}
