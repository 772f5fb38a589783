// Files of the cgroup file system are opened without creating them: where one is missing, the
// kernel lacks what it is for. A cgroup that hands controllers down may hold no process itself, so
// the agent's own processes go to leaves.

#include "worker/agent/devices/cgroups.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <system_error>

#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {
namespace {

constexpr const char* kAgentLeaf = "agent";
constexpr int kPeriod_us = 100'000;
constexpr const char* kAdvice =
    "; start the agent in a cgroup of its own, as by `systemd-run --user --scope -p Delegate=yes "
    "tune agent ...`, or name an empty one with --cgroup";

bool put(const std::filesystem::path& file, const std::string& text) {
    const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
    return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool has_word(const std::string& text, const std::string& wanted) {
    std::istringstream words(text);
    for (std::string word; words >> word;)
        if (word == wanted) return true;
    return false;
}

Error refused(const std::filesystem::path& path) {
    return {Code::kPermissionDenied, "the cgroup '" + path.string() +
                                         "' is not delegated to this user (" +
                                         std::strerror(errno) + ")" + kAdvice};
}

/// Whether this process is alone there. Zombies do not count; they are listed nowhere.
bool is_alone(const std::filesystem::path& folder) {
    const Result<std::string> text = read_file(folder / "cgroup.procs");
    if (!text) return false;
    std::istringstream pids(*text);
    for (int pid = 0; pids >> pid;)
        if (pid != getpid()) return false;
    return true;
}

Result<void> make(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    if (!error) return {};
    errno = error.value();
    return refused(folder);
}

Result<std::filesystem::path> own_cgroup() {
    const std::filesystem::path own = cgroup_folder(read_file("/proc/self/cgroup").value_or(""),
                                                    read_file("/proc/self/mountinfo").value_or(""));
    if (own.empty())
        return Error{Code::kResourceDoesNotExist, "this machine has no cgroups of version 2"};
    // After a restart inside the same unit.
    const bool is_leaf =
        own.filename() == kAgentLeaf &&
        has_word(read_file(own.parent_path() / "cgroup.subtree_control").value_or(""), "memory");
    return is_leaf ? own.parent_path() : own;
}

}  // namespace

std::filesystem::path cgroup_folder(std::string_view cgroups, std::string_view mounts) {
    std::istringstream memberships{std::string(cgroups)};
    std::string own;
    for (std::string line; std::getline(memberships, line);)
        if (line.starts_with("0::")) own = line.substr(3);
    std::istringstream lines{std::string(mounts)};
    for (std::string line; std::getline(lines, line);) {
        // id parent device root mount-point options... - type source options
        const std::size_t dash = line.find(" - cgroup2 ");
        if (own.empty() || dash == std::string::npos) continue;
        std::istringstream fields(line);
        std::string id;
        std::string parent;
        std::string device;
        std::string root;
        std::string point;
        fields >> id >> parent >> device >> root >> point;
        if (root == "/") return std::filesystem::path(point + own).lexically_normal();
        if (own.starts_with(root))
            return std::filesystem::path(point + "/" + own.substr(root.size())).lexically_normal();
    }
    return {};
}

Result<Cgroups> Cgroups::open(std::filesystem::path folder) {
    const bool is_own = folder.empty();
    if (is_own) {
        TUNE_TRY(own, own_cgroup());
        folder = own;
    }
    const Result<std::string> controllers = read_file(folder / "cgroup.controllers");
    if (!controllers || !has_word(*controllers, "memory"))
        return Error{
            Code::kResourceDoesNotExist,
            "'" + folder.string() + "' is no cgroup of version 2 with a memory controller"};
    if (!is_alone(folder))
        return Error{Code::kPermissionDenied,
                     "the cgroup '" + folder.string() + "' holds other processes too" + kAdvice};
    for (const char* leaf : {kAgentLeaf, kSupervisorsCgroup}) TUNE_TRY_VOID(make(folder / leaf));
    if (is_own && !put(folder / kAgentLeaf / "cgroup.procs", "0")) return refused(folder);
    if (!put(folder / "cgroup.subtree_control", "+memory")) return refused(folder);
    // What is missing of these bounds less; memory is what trials die of.
    for (const char* controller : {"cpu", "pids"})
        if (has_word(*controllers, controller) &&
            !put(folder / "cgroup.subtree_control", "+" + std::string(controller)))
            return refused(folder);
    return Cgroups(std::move(folder));
}

Result<std::filesystem::path> Cgroups::create(const std::string& name,
                                              const CgroupLimits& limits) const {
    const std::filesystem::path cgroup = folder_ / name;
    std::error_code error;
    std::filesystem::create_directory(cgroup, error);
    const auto fail = [&](const char* what) {
        return Error{Code::kInternalError,
                     std::string("cannot ") + what + " of the cgroup '" + cgroup.string() +
                         "': " + (error ? error.message() : std::strerror(errno))};
    };
    if (error) return fail("make the folder");
    if (limits.memory_bytes > 0) {
        if (!put(cgroup / "memory.max", std::to_string(limits.memory_bytes)))
            return fail("limit the memory");
        // The kernel may be without swap; a trial that is half dead is of no use to anybody.
        put(cgroup / "memory.swap.max", "0");
        put(cgroup / "memory.oom.group", "1");
    }
    const auto quota_us = static_cast<std::int64_t>(limits.cpus * kPeriod_us);
    if (quota_us > 0 &&
        !put(cgroup / "cpu.max", std::to_string(quota_us) + " " + std::to_string(kPeriod_us)))
        return fail("limit the processors");
    if (limits.processes > 0 && !put(cgroup / "pids.max", std::to_string(limits.processes)))
        return fail("limit the processes");
    return cgroup;
}

void Cgroups::remove(const std::string& name) const {
    const std::filesystem::path cgroup = folder_ / name;
    if (rmdir(cgroup.c_str()) == 0 || errno == ENOENT) return;
    put(cgroup / "cgroup.kill", "1");
    rmdir(cgroup.c_str());
}

}  // namespace tune::worker
