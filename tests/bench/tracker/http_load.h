#pragma once
// A load generator for our server over HTTP: one thread on an epoll loop, so that on a small
// machine most of the time is the server's. Every connection is kept alive and has one request
// under way.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace tune::bench {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

/// A server that does not do what is measured. Not a check that aborts: on the way to main() the
/// server is stopped and its folder removed.
class Refusal : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

inline void require(bool is_fine, const std::string& reason) {
    if (!is_fine) throw Refusal(reason);
}

/// main() of a benchmark: its exit code.
inline int run_bench(const std::function<void()>& measure) {
    try {
        measure();
        return 0;
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "bench: %s\n", fault.what());
        return 1;
    }
}

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

inline void report(const char* name, double value, const char* unit, const char* better,
                   double target) {
    const Json line = {
        {"name", name}, {"value", value}, {"unit", unit}, {"better", better}, {"target", target}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
}

inline sockaddr_in local_address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

inline std::uint16_t free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = local_address(0);
    socklen_t length = sizeof address;
    ::bind(fd, reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    ::close(fd);
    return ntohs(address.sin_port);
}

/// A connection that sends a request and finds the end of its answer by its length or its last
/// chunk.
class Connection {
public:
    static int try_connect(std::uint16_t port) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in address = local_address(port);
        const int on = 1;
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            ::close(fd);
            return -1;
        }
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
    }
    explicit Connection(std::uint16_t port) : fd_(try_connect(port)) {
        require(fd_ >= 0, "cannot connect to the server");
    }
    virtual ~Connection() { ::close(fd_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] int fd() const { return fd_; }

    void send(std::string_view request) {
        answer_.clear();
        while (!request.empty()) {
            const ssize_t sent = put(request);
            require(sent > 0, "the server closed the connection before a request");
            request.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

    /// Reads what there is; whether the answer is whole.
    bool receive() {
        char piece[1 << 16];
        const ssize_t got = get(piece, sizeof piece);
        require(got > 0, "the server closed the connection");
        answer_.append(piece, static_cast<std::size_t>(got));
        const std::size_t head = answer_.find("\r\n\r\n");
        if (head == std::string::npos) return false;
        if (!is_whole(head)) return false;
        if (answer_.compare(9, 3, "200") != 0)
            throw Refusal("answered " + answer_.substr(9, answer_.find('\r') - 9) + ": " +
                          answer_.substr(head + 4, kQuotedBytesMax));
        body_at_ = head + 4;
        return true;
    }

    /// Of the whole answer.
    [[nodiscard]] std::string body() const { return answer_.substr(body_at_); }

    /// Sends and waits; the answer's body.
    std::string exchange(std::string_view request) {
        send(request);
        while (!receive()) {
        }
        return body();
    }

protected:
    /// As send(2) and recv(2).
    virtual ssize_t put(std::string_view bytes) {
        return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    virtual ssize_t get(char* room, std::size_t bytes_max) {
        return ::recv(fd_, room, bytes_max, 0);
    }

private:
    static constexpr std::size_t kQuotedBytesMax = 300;

    /// Whether all that the head at `head` announces is there: a length, or chunks up to the empty
    /// one.
    bool is_whole(std::size_t head) {
        std::string names = answer_.substr(0, head + 2);
        for (char& c : names) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        constexpr std::string_view kLength = "content-length: ";
        if (const std::size_t field = names.find(kLength); field != std::string::npos) {
            const char* digits = names.c_str() + field + kLength.size();
            return answer_.size() >= head + 4 + std::strtoul(digits, nullptr, 10);
        }
        require(names.find("chunked") != std::string::npos, names);
        if (!answer_.ends_with("\r\n0\r\n\r\n")) return false;
        join_chunks(head + 4);
        return true;
    }

    void join_chunks(std::size_t begin) {
        std::string body;
        for (std::size_t at = begin;;) {
            char* end = nullptr;
            const std::size_t length = std::strtoul(answer_.c_str() + at, &end, 16);
            if (length == 0) break;
            const auto data = static_cast<std::size_t>(end - answer_.c_str()) + 2;
            body.append(answer_, data, length);
            at = data + length + 2;
        }
        answer_.replace(begin, std::string::npos, body);
    }

    int fd_;
    std::string answer_;
    std::size_t body_at_ = 0;
};

inline std::string post(std::string_view path, std::string_view body,
                        std::string_view encodings = "gzip, deflate") {
    std::string text = "POST /api/2.0/mlflow/";
    text.append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n");
    // What the 3.17.2 client sends with each request.
    text.append("User-Agent: mlflow-python-client/3.17.2\r\nX-MLflow-Client-Version: 3.17.2\r\n");
    text.append("Accept-Encoding: ").append(encodings);
    text.append("\r\nAccept: */*\r\nConnection: keep-alive\r\n");
    text.append("Content-Type: application/json\r\nContent-Length: ");
    text.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
    return text;
}

inline Json call(Connection& connection, std::string_view path, const Json& body) {
    return Json::parse(connection.exchange(post(path, body.dump(), "identity")));
}

inline std::string create_run(Connection& connection, const std::string& experiment,
                              int start_ms = 1) {
    return call(connection, "runs/create",
                {{"experiment_id", experiment}, {"start_time", start_ms}})["run"]["info"]["run_id"]
        .get<std::string>();
}

/// A server's processes, from its start to its end, also when this program fails or is killed.
class ServerProcess {
public:
    /// Runs `words` in a session of its own and waits for its first answer at `port`; removes
    /// `folder` in the end. `first_status`: what plain HTTP is answered. Errors: throws when the
    /// server ends at once.
    ServerProcess(std::vector<std::string> words, fs::path folder, std::uint16_t port,
                  bool shows_errors = true, std::string first_status = "200")
        : folder_(std::move(folder)), port_(port), first_status_(std::move(first_status)) {
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const auto begin = Clock::now();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // also when this program is killed
            ::setsid();                          // by which its workers are found
            std::freopen("/dev/null", "w", stdout);
            if (!shows_errors) std::freopen("/dev/null", "w", stderr);
            ::execvp(arguments[0], arguments.data());
            std::_Exit(127);
        }
        try {
            wait_for_first_answer();
        } catch (...) {
            stop();
            throw;
        }
        start_ms_ = seconds_since(begin) * 1000;
    }
    ~ServerProcess() { stop(); }
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] double start_ms() const { return start_ms_; }

protected:
    [[nodiscard]] const fs::path& folder() const { return folder_; }

private:
    /// Asks for an end; what is there after 10 s is killed, and so are workers left behind.
    void stop() {
        ::kill(pid_, SIGTERM);
        const auto begin = Clock::now();
        while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
            if (seconds_since(begin) > 10) {
                ::kill(pid_, SIGKILL);
                ::waitpid(pid_, nullptr, 0);
                break;
            }
            const timespec pause{0, 5'000'000};
            ::nanosleep(&pause, nullptr);
        }
        ::kill(-pid_, SIGKILL);
        fs::remove_all(folder_);
    }

    /// Until /health answers 200: a server may listen before it can answer.
    void wait_for_first_answer() {
        for (;;) {
            require(::waitpid(pid_, nullptr, WNOHANG) == 0, "the server did not start");
            const int fd = Connection::try_connect(port_);
            if (fd >= 0 && is_healthy(fd)) return;
            const timespec pause{0, 200'000};
            ::nanosleep(&pause, nullptr);
        }
    }

    [[nodiscard]] bool is_healthy(int fd) const {
        constexpr std::string_view kAsk = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        char head[64] = {};
        const bool ok = ::send(fd, kAsk.data(), kAsk.size(), MSG_NOSIGNAL) > 0 &&
                        ::recv(fd, head, sizeof head - 1, 0) > 12 &&
                        std::string_view(head).substr(9, 3) == first_status_;
        ::close(fd);
        return ok;
    }

    fs::path folder_;
    std::uint16_t port_;
    std::string first_status_;
    pid_t pid_ = -1;
    double start_ms_ = 0;
};

/// An empty folder below `parent` for one server of this program.
inline fs::path fresh_folder(const fs::path& parent) {
    static int made = 0;
    const fs::path folder =
        parent / ("bench-data-" + std::to_string(::getpid()) + "-" + std::to_string(made++));
    fs::remove_all(folder);
    fs::create_directories(folder);
    return folder;
}

/// Our server on a folder of its own.
class Server : public ServerProcess {
public:
    /// `more`: flags of its own; `first_status` as in ServerProcess.
    explicit Server(const fs::path& bin_dir, const std::vector<std::string>& more = {},
                    const std::string& first_status = "200")
        : Server(bin_dir, fresh_folder(bin_dir), free_port(), more, first_status) {}

    /// "VmRSS:", what it holds now, or "VmHWM:", the most since reset_peak().
    [[nodiscard]] double memory_mb(const char* field = "VmRSS:") const {
        std::ifstream status("/proc/" + std::to_string(pid()) + "/status");
        std::string word;
        while (status >> word)
            if (word == field) break;
        double kb = 0;
        status >> kb;
        return kb / 1024;
    }
    /// A header line with the token of its owner, for calls that change what runs; empty where only
    /// the tracking part runs.
    [[nodiscard]] std::string authorization() const {
        std::ifstream file(folder() / "data" / "token");
        std::string token;
        file >> token;
        return token.empty() ? token : "Authorization: Bearer " + token + "\r\n";
    }
    void reset_peak() const {
        std::ofstream("/proc/" + std::to_string(pid()) + "/clear_refs") << "5";
    }

private:
    Server(const fs::path& bin_dir, const fs::path& folder, std::uint16_t port,
           const std::vector<std::string>& more, const std::string& first_status)
        : ServerProcess(words(bin_dir, folder, port, more), folder, port, true, first_status) {}

    static std::vector<std::string> words(const fs::path& bin_dir, const fs::path& folder,
                                          std::uint16_t port,
                                          const std::vector<std::string>& more) {
        const bool has_tune = fs::exists(bin_dir / "tune");
        std::vector<std::string> out = {bin_dir / (has_tune ? "tune" : "tracking_server")};
        if (has_tune) out.push_back("server");
        for (const std::string& word : {std::string("--data"), (folder / "data").string(),
                                        std::string("--port"), std::to_string(port)})
            out.push_back(word);
        out.insert(out.end(), more.begin(), more.end());
        return out;
    }
};

/// A closed loop: each client sends its next request when the last one is answered. `make(client,
/// step)` gives the request, `done(client, ms)` hears how long each took. Ends when `is_over(s)`.
/// `connect` makes the connections.
inline void drive(std::uint16_t port, std::size_t client_count,
                  const std::function<std::string(std::size_t, int)>& make,
                  const std::function<void(std::size_t, double)>& done,
                  const std::function<bool(double)>& is_over,
                  const std::function<std::unique_ptr<Connection>(std::uint16_t)>& connect =
                      std::make_unique<Connection, const std::uint16_t&>) {
    std::vector<std::unique_ptr<Connection>> clients;
    std::vector<Clock::time_point> sent(client_count);
    std::vector<int> steps(client_count, 0);
    const int loop = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < client_count; ++i) {
        clients.push_back(connect(port));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = i;
        ::epoll_ctl(loop, EPOLL_CTL_ADD, clients[i]->fd(), &event);
    }
    const auto send = [&](std::size_t i) {
        const std::string request = make(i, steps[i]++);
        sent[i] = Clock::now();
        clients[i]->send(request);
    };
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < client_count; ++i) send(i);
    std::size_t under_way = client_count;
    std::vector<epoll_event> events(client_count);
    bool over = false;
    while (under_way > 0) {
        const int count = ::epoll_wait(loop, events.data(), static_cast<int>(client_count), -1);
        over = over || is_over(seconds_since(begin));
        for (int k = 0; k < count; ++k) {
            const std::size_t i = events[static_cast<std::size_t>(k)].data.u64;
            if (!clients[i]->receive()) continue;
            done(i, seconds_since(sent[i]) * 1000);
            if (over)
                --under_way;
            else
                send(i);
        }
    }
    ::close(loop);
}

/// The share `part` (0..1) of the sorted values.
inline double quantile(std::vector<double> values, double part) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at),
                     values.end());
    return values[at];
}

/// A log-batch of `rows` points over ten metrics.
inline std::string batch_request(const std::string& run, int batch, int rows) {
    std::string body = R"({"run_id": ")" + run + R"(", "metrics": [)";
    for (int i = 0; i < rows; ++i) {
        const int step = batch * rows + i;
        if (i > 0) body += ", ";
        body += R"({"key": "m)" + std::to_string(i % 10) + R"(", "value": )" +
                std::to_string(i * 0.5) + R"(, "timestamp": )" + std::to_string(step + 1) +
                R"(, "step": )" + std::to_string(step) + "}";
    }
    return post("runs/log-batch", body + "]}");
}

inline std::string metric_request(const std::string& run, int step) {
    // The client names the run twice, by its old name too.
    return post("runs/log-metric", R"({"run_uuid": ")" + run + R"(", "run_id": ")" + run +
                                       R"(", "key": "loss", "value": 0.5, "timestamp": )" +
                                       std::to_string(step + 1) + R"(, "step": )" +
                                       std::to_string(step) + "}");
}

}  // namespace tune::bench
