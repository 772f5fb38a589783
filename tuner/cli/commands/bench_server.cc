// Starts this same program as `tune server` in a temporary folder, in a process group of its own,
// and reads the address that it prints as JSON. The kernel ends it if this process dies
// (PDEATHSIG), so a killed bench leaves no server; its folder is removed when it has ended.

#include "tuner/cli/commands/bench_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tune::cli {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& what) {
    return {Code::kPermissionDenied, what + ": " + std::strerror(errno)};
}

/// What is written to `fd` up to the end of a line, or to its end.
std::string read_line(int fd) {
    std::string line;
    char letter = 0;
    while (true) {
        const ssize_t got = read(fd, &letter, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || letter == '\n') return line;
        line += letter;
    }
}

}  // namespace

Result<std::unique_ptr<BenchServer>> BenchServer::start(const fs::path& dir) {
    std::string folder = (dir / "tune-bench-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr)
        return system_error("cannot create a folder in " + dir.string());
    std::unique_ptr<BenchServer> server(new BenchServer(folder));
    TUNE_TRY_VOID(server->spawn());
    return server;
}

Result<void> BenchServer::spawn() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe");
    const std::string data = folder_ / "data";
    const std::string log = folder_ / "log";
    const int log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    std::array<const char*, 8> words = {"tune",   "server",     "--port", "0",
                                        "--data", data.c_str(), "--json", nullptr};
    pid_ = fork();
    if (pid_ == 0) {
        // Ctrl-C is for the bench, which then ends its server; a bench that is killed takes it
        // along.
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(ends[1], STDOUT_FILENO);
        dup2(log_fd, STDERR_FILENO);
        execv("/proc/self/exe", const_cast<char**>(words.data()));
        _exit(127);
    }
    close(ends[1]);
    if (log_fd >= 0) close(log_fd);
    const std::string line = pid_ > 0 ? read_line(ends[0]) : std::string();
    close(ends[0]);
    const Result<Json> reported = parse_json(line);
    if (reported && reported->is_object()) url_ = reported->value("url", "");
    if (!url_.empty()) return {};
    return Error{Code::kInternalError, "the server did not start: " + last_words()};
}

BenchServer::~BenchServer() {
    if (pid_ > 0) {
        kill(pid_, SIGTERM);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

std::int64_t BenchServer::memory_bytes() const {
    constexpr std::string_view kName = "VmRSS:";
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(kName)) return std::atoll(line.c_str() + kName.size()) * 1024;
    return 0;
}

std::string BenchServer::last_words() const {
    std::ifstream log(folder_ / "log");
    std::string last;
    for (std::string line; std::getline(log, line);)
        if (!line.empty()) last = line;
    return last;
}

}  // namespace tune::cli
