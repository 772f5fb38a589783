// Each step has a shell of its own that starts srun, waits for it and writes down how it ended. The
// shell holds a lock that the kernel releases with it: a step whose shell and srun are gone without
// a word has ended, whoever killed them. While srun waits for room nothing of ours runs yet, so an
// end before the agent's first line is srun's own complaint.

#include "worker/launch/slurm/slurm_steps.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/id.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/text.h"
#include "worker/launch/agent_script.h"
#include "worker/launch/program.h"

namespace tune::launch {
namespace {

namespace steps_fs = std::filesystem;

constexpr std::chrono::seconds kFirstMoment{30};

/// $1: the path without its ending; the rest: srun and its words.
constexpr const char* kKeep = R"sh(step=$1
shift
exec 9> "$step.lock"
flock 9
child=
trap '[ -z "$child" ] || kill -TERM "$child"' TERM
"$@" &
child=$!
echo "$$" > "$step.pid"
wait "$child"
code=$?
while kill -0 "$child" 2> /dev/null; do wait "$child"; code=$?; done
echo "$code" > "$step.exit.new"
mv "$step.exit.new" "$step.exit"
)sh";

int number_in(const std::string& file) {
    int number = -1;
    if (const Result<std::string> text = read_file(file, 64))
        std::from_chars(text->data(), text->data() + text->size(), number);
    return number;
}

/// Whether a process holds the lock; false also where there is none.
bool is_held(const std::string& file) {
    const UniqueFd lock(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    return lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

/// Its shell may not have come to the lock yet.
bool is_new(const std::string& file) {
    std::error_code gone;
    const auto made = steps_fs::last_write_time(file, gone);
    return !gone && steps_fs::file_time_type::clock::now() - made < kFirstMoment;
}

}  // namespace

Result<void> SlurmSteps::start(const Launch& launch, std::vector<std::string> words,
                               const std::string& script) const {
    std::error_code error;
    steps_fs::create_directories(folder_, error);
    if (error)
        return Error{Code::kPermissionDenied,
                     "cannot make the folder " + folder_ + ": " + error.message()};
    const std::string name = launch.group + "." + random_hex(4);
    words.insert(words.begin(), {"/bin/sh", "-c", kKeep, "sh", folder_ + "/" + name, "srun",
                                 "--jobid=" + allocation_, "--job-name=" + name});
    words.insert(words.end(),
                 {"sh", "-c", ": > " + shell_quoted(path(name, ".began")) + "\n" + script});
    // Before its shell runs, so that the next look counts it.
    TUNE_TRY_VOID(write_file_atomic(path(name, ".lock"), ""));
    return start_program({.arguments = words}, path(name, ".log"));
}

Result<std::vector<std::vector<std::string>>> SlurmSteps::running() const {
    TUNE_TRY(text,
             output_of({.arguments = {"squeue", "-h", "-s", "-j", allocation_, "-o", "%i|%j|%N"}}));
    std::vector<std::vector<std::string>> steps;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::vector<std::string> cells;
        std::istringstream stream(line);
        for (std::string cell; std::getline(stream, cell, '|');) cells.emplace_back(trimmed(cell));
        cells.resize(3);
        steps.push_back(std::move(cells));
    }
    return steps;
}

AgentJob SlurmSteps::job_of(const std::string& name, const Launch& launch) const {
    AgentJob job{.id = name,
                 .group = name.substr(0, name.rfind('.')),
                 .study = launch.study,
                 .agents = launch.agents.nodes};
    if (const int code = number_in(path(name, ".exit")); code >= 0) {
        job.state = code == 0 ? AgentJob::State::kEnded : AgentJob::State::kFailed;
        if (code != 0)
            job.reason = (access(path(name, ".began").c_str(), F_OK) == 0 ? "exit code "
                                                                          : "srun: exit code ") +
                         std::to_string(code);
    } else if (is_held(path(name, ".lock")) || is_new(path(name, ".lock"))) {
        job.reason = "the allocation has no room for it yet";
    } else {
        job.state = AgentJob::State::kEnded;
        job.reason = "killed";
    }
    return job;
}

Result<std::vector<AgentJob>> SlurmSteps::list(const Launch& launch) const {
    // Before Slurm is asked: what ends in between is listed as running once more.
    std::vector<AgentJob> jobs;
    std::error_code ignored;
    for (const auto& file : steps_fs::directory_iterator(folder_, ignored)) {
        if (file.path().extension() != ".lock") continue;
        AgentJob job = job_of(file.path().stem().string(), launch);
        if (launch.group.empty() || job.group == launch.group) jobs.push_back(std::move(job));
    }
    TUNE_TRY(steps, running());
    for (AgentJob& job : jobs) {
        const auto step = std::find_if(steps.begin(), steps.end(),
                                       [&job](const auto& cells) { return cells[1] == job.id; });
        if (job.state != AgentJob::State::kPending || step == steps.end()) continue;
        job.state = AgentJob::State::kRunning;
        job.host = (*step)[2];
        job.reason.clear();
    }
    return jobs;
}

Result<void> SlurmSteps::stop(std::span<const AgentJob> jobs, StopKind kind) const {
    constexpr const char* kSignals[] = {"--signal=INT", "--signal=TERM", "--signal=KILL"};
    TUNE_TRY(steps, running());
    std::vector<std::string> words = {"scancel", "--quiet",
                                      kSignals[static_cast<std::size_t>(kind)]};
    const std::size_t begin = words.size();
    for (const AgentJob& job : jobs) {
        const auto step = std::find_if(steps.begin(), steps.end(),
                                       [&job](const auto& cells) { return cells[1] == job.id; });
        if (step != steps.end())
            words.push_back((*step)[0]);
        else if (const int pid = number_in(path(job.id, ".pid"));
                 pid > 0 && is_held(path(job.id, ".lock")))
            ::kill(pid, SIGTERM);  // its srun waits for room
    }
    if (words.size() == begin) return {};
    TUNE_TRY(ended, run_program({.arguments = words}));
    if (ended.exit_code == 0) return {};
    return Error{Code::kInvalidState, "scancel: " + complaint_of(ended)};
}

std::string SlurmSteps::log_path(const AgentJob& job) const {
    return path(job.id, ".log");
}

void SlurmSteps::clear(const std::string& group) const {
    std::error_code ignored;
    std::vector<steps_fs::path> gone;
    for (const auto& file : steps_fs::directory_iterator(folder_, ignored))
        if (file.path().filename().string().starts_with(group + ".") &&
            file.path().extension() != ".log")
            gone.push_back(file.path());
    for (const steps_fs::path& file : gone) steps_fs::remove(file, ignored);
}

}  // namespace tune::launch
