// Reads commands on this thread, runs trials on the pool's. The device is opened once: all threads
// share its context, and each computes on a stream of its own.

#include "worker/train/pool/serve.h"

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/system/unique_fd.h"
#include "worker/train/device/device.h"
#include "worker/train/pool/pool.h"
#include "worker/train/trainer.h"

namespace tune::train {
namespace {

/// Longer lines are no commands; a parameter is a few bytes.
constexpr std::size_t kLineBytesMax = std::size_t{1} << 20;

/// The values within "tune: {...}".
std::string_view values_of(std::string_view line) {
    return line.substr(std::string_view("tune: ").size());
}

TrialEnd end_of(const Result<Outcome>& outcome) {
    if (!outcome) return {.code = exit_code_of(outcome.error()), .message = outcome.error().text()};
    TrialEnd end;
    end.code = outcome->preempted ? ExitCode::kPreempted : ExitCode::kDone;
    end.epochs = outcome->epochs;
    end.steps = outcome->steps;
    end.best = outcome->best;
    if (outcome->stop_reason != StopReason::kNotStopped)
        end.message = std::string(stop_reason_name(outcome->stop_reason));
    return end;
}

Result<TrainConfig> config_of(const TrialRequest& request, const PoolOptions& options) {
    TrainConfig config;
    config.stats_every = options.stats_every;
    for (const auto& [name, value] : request.origin)
        TUNE_TRY_VOID(set_parameter(config, name, value));
    for (const auto& [name, value] : options.parameters)
        TUNE_TRY_VOID(set_parameter(config, name, value));
    for (const auto& [name, value] : request.parameters)
        TUNE_TRY_VOID(set_parameter(config, name, value));
    return config;
}

TrialEnd run_trial(const TrialRequest& request, const PoolOptions& options, Device& device,
                   const Pool::Emit& emit, const std::atomic<bool>& stop) {
    if (request.kind == TrialKind::kReport || options.only_reports) {
        emit(metrics_line(request.id, request.values));
        return {};
    }
    const Result<TrainConfig> made = config_of(request, options);
    if (!made) return end_of(made.error());
    const TrainConfig& config = *made;
    device.use_own_stream();
    const Result<Outcome> outcome = train_beside_others(
        config, device,
        [&](const std::string& lines) {
            for (std::size_t begin = 0; begin < lines.size();) {
                const std::size_t end = lines.find('\n', begin);
                emit(metrics_line(request.id,
                                  values_of(std::string_view(lines).substr(begin, end - begin))));
                begin = end + 1;
            }
            return true;
        },
        stop);
    // What the trial held goes back, so that the next one finds all of the memory.
    device.release_cached();
    malloc_trim(0);
    return end_of(outcome);
}

/// Lines from a descriptor, until its end or until `over` says so.
class LineReader {
public:
    LineReader(int fd, std::function<bool()> over) : fd_(fd), over_(std::move(over)) {}

    /// Nothing at the end.
    std::optional<std::string> next() {
        while (true) {
            if (const std::size_t end = text_.find('\n', begin_); end != std::string::npos) {
                std::string line = text_.substr(begin_, end - begin_);
                begin_ = end + 1;
                return line;
            }
            text_.erase(0, begin_);
            begin_ = 0;
            if (text_.size() <= kLineBytesMax && read_more()) continue;
            // The last line need not end, and one that is too long is no command.
            if (text_.empty() || over_()) return {};
            return std::exchange(text_, {});
        }
    }

private:
    bool read_more() {
        char buffer[65536];
        while (!over_()) {
            // A signal between this look and the wait is seen a little later.
            constexpr int kLookAgainMs = 100;
            pollfd waited{.fd = fd_, .events = POLLIN, .revents = 0};
            if (poll(&waited, 1, kLookAgainMs) <= 0) continue;
            const ssize_t count = read(fd_, buffer, sizeof buffer);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return false;
            text_.append(buffer, static_cast<std::size_t>(count));
            return true;
        }
        return false;
    }

    const int fd_;
    const std::function<bool()> over_;
    std::string text_;
    std::size_t begin_ = 0;
};

/// Waits for one client. Errors: kInternalError with the system's reason.
Result<UniqueFd> accept_at(const std::string& path, const std::atomic<bool>& stop) {
    const auto failed = [&](const char* what) {
        return Error{Code::kInternalError,
                     "socket '" + path + "': " + what + ": " + std::strerror(errno)};
    };
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return invalid_parameter("socket: '" + path + "' is longer than a socket's path may be");
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    unlink(path.c_str());
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        return failed("bind");
    if (listen(listener.get(), 1) != 0) return failed("listen");
    while (!stop.load()) {
        pollfd waited{.fd = listener.get(), .events = POLLIN, .revents = 0};
        if (poll(&waited, 1, 100) <= 0) continue;
        UniqueFd client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (client.get() < 0) return failed("accept");
        unlink(path.c_str());
        return client;
    }
    return Error{Code::kCancelled, "stopped before a client came"};
}

void obey(const std::string& line, Pool& pool, const Pool::Emit& emit, bool& finish) {
    if (line.empty()) return;
    auto command = parse_command(line);
    if (!command) return emit(refused_line(command.error().message));
    switch (command->kind) {
        case PoolCommand::Kind::kRun:
            if (auto given = pool.submit(std::move(command->request)); !given)
                emit(refused_line(given.error().message));
            return;
        case PoolCommand::Kind::kEnd: pool.end(command->id, command->reason); return;
        case PoolCommand::Kind::kFinish: finish = true; return;
    }
}

int report(const Error& error) {
    std::fprintf(stderr, "tune-trainer: %s\n", error.text().c_str());
    return static_cast<int>(exit_code_of(error));
}

}  // namespace

int serve_pool(const PoolOptions& options, const std::atomic<bool>& stop) {
    // Whether a trial will be deterministic is not known yet, and later is too late for cuBLAS.
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // NOLINT: one thread so far
    auto device = open_device(options.device, 0);
    if (!device) return report(device.error());
    limit_to_what_is_given(**device);
    UniqueFd client;
    if (!options.socket.empty()) {
        auto accepted = accept_at(options.socket, stop);
        if (!accepted) return report(accepted.error());
        client = *std::move(accepted);
    }
    const int input = options.socket.empty() ? 0 : client.get();
    const LineSink output = lines_to(options.socket.empty() ? 1 : client.get());
    std::atomic<bool> reader_gone = false;
    std::mutex emit_mutex;
    const Pool::Emit emit = [&](const std::string& line) {
        const std::lock_guard lock(emit_mutex);
        if (!reader_gone.load() && !output(line)) reader_gone.store(true);
    };
    const int threads = options.parallel > 0
                            ? options.parallel
                            : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    Pool pool(
        threads,
        [&](const TrialRequest& request, const Pool::Emit& out, const std::atomic<bool>& end) {
            return run_trial(request, options, **device, out, end);
        },
        emit);
    const auto interrupted_now = [&] { return stop.load() || reader_gone.load(); };
    LineReader reader(input, interrupted_now);
    bool finish = false;
    while (!finish) {
        const std::optional<std::string> line = reader.next();
        if (!line) break;
        obey(*line, pool, emit, finish);
    }
    bool interrupted = interrupted_now();
    do {
        interrupted = interrupted || interrupted_now();
        if (interrupted) pool.end_all(EndReason::kStop);
    } while (!pool.drain(std::chrono::milliseconds(100)));
    return static_cast<int>(interrupted ? ExitCode::kPreempted : ExitCode::kDone);
}

}  // namespace tune::train
