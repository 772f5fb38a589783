// Differences of counters in /proc between two samples. The trial's own share is the sum over the
// processes that descend from its supervisor; a process that ended takes its counters along, so
// differences are never taken below zero. What cannot be read is left out of the sample.

#include "worker/agent/devices/system_metrics.h"

#include <dirent.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/system/file.h"

namespace tune::worker {
namespace {

constexpr double kMegabyte = 1e6;  // as MLflow: decimal

double round_1(double value) {
    return std::round(value * 10) / 10;
}

/// "Name:   123 kB" -> bytes.
double meminfo_bytes(const std::string& text, const char* name) {
    const std::size_t at = text.find(name);
    if (at == std::string::npos) return 0;
    return std::strtod(text.c_str() + at + std::strlen(name), nullptr) * 1024;
}

struct ProcessStat {
    int parent = 0;
    double cpu_ticks = 0;
    double resident_pages = 0;
};

/// Fields of /proc/PID/stat, counted from 3 (the state) after the name.
bool read_process(const char* pid, ProcessStat& out) {
    const Result<std::string> text = read_file("/proc/" + std::string(pid) + "/stat", 8192);
    if (!text) return false;
    const std::size_t end = text->rfind(')');
    if (end == std::string::npos) return false;
    std::istringstream fields(text->substr(end + 1));
    std::string field;
    for (int number = 3; fields >> field; ++number) {
        const double value = std::strtod(field.c_str(), nullptr);
        if (number == 4) out.parent = static_cast<int>(value);
        if (number >= 14 && number <= 17) out.cpu_ticks += value;
        if (number == 24) {
            out.resident_pages = value;
            return true;
        }
    }
    return false;
}

}  // namespace

SystemMetrics::SystemMetrics(int supervisor_pid)
    : supervisor_pid_(supervisor_pid),
      cpu_(read_cpu()),
      first_traffic_(read_traffic()),
      tree_(read_tree()),
      tree_ms_(SystemClock().monotonic_ms()) {}

std::optional<SystemMetrics::CpuTimes> SystemMetrics::read_cpu() {
    const Result<std::string> text = read_file("/proc/stat");
    if (!text || !text->starts_with("cpu ")) return std::nullopt;
    std::istringstream fields(text->substr(4));
    CpuTimes times;
    double value = 0;
    for (int i = 0; i < 8 && fields >> value; ++i) {  // user ... steal; guest is in user already
        times.total += value;
        if (i != 3 && i != 4) times.busy += value;  // idle, iowait
    }
    return times;
}

std::optional<SystemMetrics::Traffic> SystemMetrics::read_traffic() {
    const Result<std::string> text = read_file("/proc/net/dev");
    if (!text) return std::nullopt;
    Traffic traffic;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        std::istringstream fields(line.substr(colon + 1));
        double value = 0;
        for (int i = 0; i < 9 && fields >> value; ++i) {
            if (i == 0) traffic.received_bytes += value;
            if (i == 8) traffic.sent_bytes += value;
        }
    }
    return traffic;
}

SystemMetrics::TreeUse SystemMetrics::read_tree() const {
    std::map<int, ProcessStat> processes;
    DIR* proc = opendir("/proc");
    if (proc == nullptr) return {};
    while (const dirent* item = readdir(proc)) {
        ProcessStat stat;
        const int pid = std::atoi(item->d_name);
        if (pid > 0 && read_process(item->d_name, stat)) processes[pid] = stat;
    }
    closedir(proc);
    std::set<int> tree = {supervisor_pid_};
    TreeUse use;
    for (bool grew = true; grew;) {
        grew = false;
        for (const auto& [pid, stat] : processes) {
            if (!tree.contains(stat.parent) || !tree.insert(pid).second) continue;
            grew = true;
            use.cpu_s += stat.cpu_ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
            use.memory_bytes += stat.resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
        }
    }
    return use;
}

void SystemMetrics::add_memory(std::vector<NamedValue>& values) {
    const Result<std::string> text = read_file("/proc/meminfo");
    if (!text) return;
    const double total = meminfo_bytes(*text, "MemTotal:");
    const double used = total - meminfo_bytes(*text, "MemAvailable:");
    if (total <= 0) return;
    values.push_back({"system/system_memory_usage_megabytes", round_1(used / kMegabyte)});
    values.push_back({"system/system_memory_usage_percentage", round_1(used / total * 100)});
}

void SystemMetrics::add_disk(std::vector<NamedValue>& values) {
    struct statvfs disk {};
    if (statvfs("/", &disk) != 0) return;
    const auto block = static_cast<double>(disk.f_frsize);
    const double used = static_cast<double>(disk.f_blocks - disk.f_bfree) * block;
    const double available = static_cast<double>(disk.f_bavail) * block;
    if (used + available <= 0) return;
    values.push_back({"system/disk_usage_percentage", round_1(used / (used + available) * 100)});
    values.push_back({"system/disk_usage_megabytes", round_1(used / kMegabyte)});
    values.push_back({"system/disk_available_megabytes", round_1(available / kMegabyte)});
}

std::vector<NamedValue> SystemMetrics::sample() {
    std::vector<NamedValue> values;
    const std::optional<CpuTimes> cpu = read_cpu();
    if (cpu && cpu_ && cpu->total > cpu_->total)
        values.push_back({"system/cpu_utilization_percentage",
                          round_1((cpu->busy - cpu_->busy) / (cpu->total - cpu_->total) * 100)});
    cpu_ = cpu;
    add_memory(values);
    add_disk(values);
    const std::optional<Traffic> traffic = read_traffic();
    if (traffic && first_traffic_) {
        values.push_back({"system/network_receive_megabytes",
                          (traffic->received_bytes - first_traffic_->received_bytes) / kMegabyte});
        values.push_back({"system/network_transmit_megabytes",
                          (traffic->sent_bytes - first_traffic_->sent_bytes) / kMegabyte});
    }
    const TreeUse tree = read_tree();
    const std::int64_t now_ms = SystemClock().monotonic_ms();
    const double elapsed_s =
        static_cast<double>(std::max<std::int64_t>(1, now_ms - tree_ms_)) / 1e3;
    // A process that ended meanwhile takes its time along: never below zero.
    values.push_back(
        {"system/trial_cpu_cores", round_1(std::max(0.0, tree.cpu_s - tree_.cpu_s) / elapsed_s)});
    values.push_back(
        {"system/trial_memory_usage_megabytes", round_1(tree.memory_bytes / kMegabyte)});
    tree_ = tree;
    tree_ms_ = now_ms;
    return values;
}

}  // namespace tune::worker
