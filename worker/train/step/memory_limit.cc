#include "worker/train/step/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace tune::train {

double proc_bytes(const char* file, const char* name) {
    std::ifstream in(file);
    const std::string wanted = name;
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(wanted))
            return std::strtod(line.c_str() + wanted.size(), nullptr) * 1024;
    return 0.0;
}

std::optional<double> cgroup_memory_limit(const std::filesystem::path& membership,
                                          const std::filesystem::path& root) {
    std::ifstream in(membership);
    std::filesystem::path group;
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("0::/")) group = std::filesystem::path(line.substr(4));
    std::optional<double> limit;
    // Every group on the way down may have one; the root has none.
    std::filesystem::path folder = root;
    const auto look = [&] {
        std::ifstream file(folder / "memory.max");
        if (double bytes = 0; file >> bytes) limit = std::min(limit.value_or(bytes), bytes);
    };
    look();
    for (const auto& part : group) {
        folder /= part;
        look();
    }
    return limit;
}

std::optional<double> bytes_of_environment(const char* name) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing changes it
    if (text == nullptr) return std::nullopt;
    char* end = nullptr;
    const double bytes = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(bytes > 0.0)) return std::nullopt;
    return bytes;
}

double host_memory_limit() {
    double limit = proc_bytes("/proc/meminfo", "MemAvailable:");
    rlimit data{};
    if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
        limit = std::min(limit, static_cast<double>(data.rlim_cur));
    for (const std::optional<double>& own :
         {cgroup_memory_limit(), bytes_of_environment("TUNE_MEMORY_BYTES")})
        if (own) limit = std::min(limit, *own);
    return limit;
}

}  // namespace tune::train
