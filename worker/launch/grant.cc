// Slurm says what it gave in SLURM_* and masks GPUs by CUDA_VISIBLE_DEVICES; Kubernetes limits by
// the cgroup and shows only the GPUs it gave; both are narrowed by whatever cgroup limit is above.
// A job of Slurm without a mask has no GPU, even where the driver lists all of the machine.

#include "worker/launch/grant.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/system/file.h"
#include "base/text/counted.h"
#include "base/text/text.h"

namespace tune::launch {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> leading_number(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data()) return std::nullopt;
    return number;
}

template <class Number>
void narrow_limit(std::optional<Number>& limit, Number other) {
    limit = limit ? std::min(*limit, other) : other;
}

void read_slurm(const Variables& variables, Grant& grant) {
    const std::string job = variables("SLURM_JOB_ID");
    if (job.empty()) return;
    grant.engine = "slurm";
    const std::string array = variables("SLURM_ARRAY_JOB_ID");
    grant.job = array.empty() ? job : array + "_" + variables("SLURM_ARRAY_TASK_ID");
    grant.host = variables("SLURMD_NODENAME");
    grant.restarts = static_cast<int>(leading_number(variables("SLURM_RESTART_COUNT")).value_or(0));
    if (const auto cpus = leading_number(variables("SLURM_CPUS_ON_NODE")); cpus && *cpus > 0)
        grant.cpus = static_cast<int>(*cpus);
    if (const auto task = leading_number(variables("SLURM_CPUS_PER_TASK")); task && *task > 0)
        narrow_limit(grant.cpus, static_cast<int>(*task));
    grant.gpu_mask = variables("CUDA_VISIBLE_DEVICES");
    grant.has_gpus = !grant.gpu_mask.empty() && grant.gpu_mask != "NoDevFiles";
    if (const auto node_mb = leading_number(variables("SLURM_MEM_PER_NODE"));
        node_mb && *node_mb > 0)
        grant.memory_bytes = *node_mb << 20;
    const auto cpu_mb = leading_number(variables("SLURM_MEM_PER_CPU"));
    if (cpu_mb && *cpu_mb > 0 && grant.cpus)
        narrow_limit(grant.memory_bytes, (*cpu_mb << 20) * *grant.cpus);
    grant.end_s = leading_number(variables("SLURM_JOB_END_TIME"));
}

void read_kubernetes(const Variables& variables, Grant& grant) {
    if (variables("KUBERNETES_SERVICE_HOST").empty() || !grant.engine.empty()) return;
    grant.engine = "kubernetes";
    grant.job = variables("HOSTNAME");
    grant.host = variables("TUNE_NODE_NAME");
}

/// The limits of one cgroup: "200000 100000" is two cores, "max 100000" none.
void read_cgroup(const fs::path& folder, Grant& grant) {
    constexpr std::size_t kBytesMax = 256;
    const std::string cpu = read_file(folder / "cpu.max", kBytesMax).value_or("");
    const std::size_t blank = cpu.find(' ');
    if (blank != std::string::npos) {
        const auto quota = leading_number(cpu);
        const auto period = leading_number(std::string_view(cpu).substr(blank + 1));
        if (quota && period && *period > 0)
            narrow_limit(grant.cpus, std::max(1, static_cast<int>(*quota / *period)));
    }
    const auto memory = leading_number(read_file(folder / "memory.max", kBytesMax).value_or(""));
    if (memory) narrow_limit(grant.memory_bytes, *memory);
}

std::string own_cgroup_path() {
    const std::string text = read_file("/proc/self/cgroup", 64u << 10).value_or("");
    const std::size_t at = text.starts_with("0::") ? 0 : text.find("\n0::");
    if (at == std::string::npos) return {};
    const std::size_t begin = text.find("0::", at) + 3;
    return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

Grant read_grant(const Variables& variables, const fs::path& cgroup_root,
                 const std::string& own_cgroup) {
    Grant grant;
    read_slurm(variables, grant);
    read_kubernetes(variables, grant);
    fs::path folder = cgroup_root;
    read_cgroup(folder, grant);
    for (const fs::path& part : fs::path(own_cgroup).relative_path()) {
        if (part == "..") break;
        folder /= part;
        read_cgroup(folder, grant);
    }
    return grant;
}

Grant own_grant() {
    const auto variable = [](const char* name) {
        const char* const value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
    };
    return read_grant(variable, "/sys/fs/cgroup", own_cgroup_path());
}

std::string grant_text(const Grant& grant) {
    if (grant.engine.empty()) return {};
    std::string text = grant.engine + " job " + grant.job;
    if (!grant.host.empty()) text += " on " + grant.host;
    text += ":";
    text += grant.cpus ? " " + counted(*grant.cpus, "core") : " all cores";
    if (grant.has_gpus) text += *grant.has_gpus ? ", GPUs " + grant.gpu_mask : ", no GPU";
    if (grant.memory_bytes) text += ", " + std::to_string(*grant.memory_bytes >> 20) + " MiB";
    if (grant.restarts > 0) text += ", restarted " + counted(grant.restarts, "time");
    return text;
}

}  // namespace tune::launch
