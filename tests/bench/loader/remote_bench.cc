// Reading from afar: a data set of 8 KiB samples behind a server on loopback that sends files from
// the page cache (sendfile) and can add a pause to each request. The bar is what the same client
// reads raw: all shards by the same ranges over the same connections, thrown away.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/id.h"
#include "base/json.h"
#include "loader/dataset.h"
#include "loader/format/mds/writer.h"
#include "loader/source/open_source.h"
#include "loader/source/range_reader.h"
#include "tests/bench/loader/figures.h"

namespace tune::loader {
namespace {

constexpr std::size_t kSampleBytes = 8192;
constexpr std::int64_t kSamples = 96'000;
constexpr int kConnections = 16;
constexpr std::int64_t kBatch = 256;

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// GET and HEAD of files beneath a folder, with Range; "/bucket/key" serves S3's clients too.
class LoopbackServer {
public:
    LoopbackServer(std::filesystem::path folder, int pause_ms)
        : folder_(std::move(folder)), pause_ms_(pause_ms) {
        const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        TUNE_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::listen(listener, 256) == 0 &&
                       ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                   "a port of loopback");
        port_ = ntohs(address.sin_port);
        child_ = ::fork();
        if (child_ == 0) serve(listener);
        ::close(listener);
    }
    ~LoopbackServer() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    LoopbackServer(const LoopbackServer&) = delete;
    LoopbackServer& operator=(const LoopbackServer&) = delete;
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

private:
    [[noreturn]] void serve(int listener) const {
        ::signal(SIGPIPE, SIG_IGN);
        while (true) {
            const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (connection >= 0) std::thread([this, connection] { talk(connection); }).detach();
        }
    }

    void talk(int connection) const {
        const int on = 1;
        ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        std::string text;
        char piece[16384];
        while (true) {
            const std::size_t end = text.find("\r\n\r\n");
            if (end != std::string::npos) {
                if (!answer(connection, text.substr(0, end + 2))) break;
                text.erase(0, end + 4);
                continue;
            }
            const ssize_t count = ::recv(connection, piece, sizeof piece, 0);
            if (count <= 0) break;
            text.append(piece, static_cast<std::size_t>(count));
        }
        ::close(connection);
    }

    bool answer(int connection, const std::string& request) const {
        if (pause_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms_));
        const bool is_head = request.starts_with("HEAD");
        const std::size_t begin = request.find(' ') + 1;
        const std::string path = request.substr(begin, request.find_first_of(" ?", begin) - begin);
        const int file = ::open((folder_.string() + path).c_str(), O_RDONLY | O_CLOEXEC);
        struct stat info {};
        if (file < 0 || ::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
            if (file >= 0) ::close(file);
            return say(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
        off_t first = 0;
        off_t last = info.st_size - 1;
        const std::size_t range = request.find("ange: bytes=");
        if (range != std::string::npos) {
            char* dash = nullptr;
            first = std::strtol(request.c_str() + range + 12, &dash, 10);
            if (dash[1] >= '0' && dash[1] <= '9')
                last = std::min<off_t>(last, std::strtol(dash + 1, nullptr, 10));
        }
        std::string head =
            range == std::string::npos ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 206 Partial Content\r\n";
        if (range != std::string::npos)
            head += "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) +
                    "/" + std::to_string(info.st_size) + "\r\n";
        head += "ETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: " +
                std::to_string(last - first + 1) + "\r\n\r\n";
        bool is_sent = say(connection, head);
        while (is_sent && !is_head && first <= last)
            is_sent = ::sendfile(connection, file, &first,
                                 static_cast<std::size_t>(last - first + 1)) > 0;
        ::close(file);
        return is_sent;
    }

    static bool say(int connection, const std::string& text) {
        return ::send(connection, text.data(), text.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(text.size());
    }

    const std::filesystem::path folder_;
    const int pause_ms_;
    int port_ = 0;
    pid_t child_ = 0;
};

Index write_samples(const std::filesystem::path& directory) {
    MdsWriter writer = MdsWriter::open({.directory = directory,
                                        .columns = {{"tokens", "ndarray:uint8:8192"}},
                                        .hashes = {"xxh3_64"}})
                           .value();
    std::vector<std::byte> sample(kSampleBytes);
    for (std::int64_t i = 0; i < kSamples; ++i) {
        std::memset(sample.data(), static_cast<int>(i % 251), sample.size());
        const std::span<const std::byte> payloads[] = {sample};
        writer.write_encoded(payloads).value();
    }
    return writer.finish().value();
}

double bytes_of(const Index& index) {
    double bytes = 0;
    for (const ShardInfo& shard : index.shards) bytes += static_cast<double>(shard.raw_data.bytes);
    return bytes;
}

/// Bytes a second of all shards by ranges, into memory that is thrown away.
double raw_rate(const std::string& url, const Index& index) {
    const auto source = open_source(url).value();
    RangeReader reader(kConnections);
    std::vector<ObjectInfo> objects;
    for (const ShardInfo& shard : index.shards)
        objects.push_back({shard.raw_data.basename, shard.raw_data.bytes, ""});
    const auto start = Clock::now();
    std::vector<RangeReader::Job> jobs;
    for (const ObjectInfo& object : objects)
        for (std::uint64_t at = 0; at < object.bytes; at += RangeReader::kRangeBytes)
            jobs.push_back([&source, &object, at]() -> Result<void> {
                thread_local std::vector<std::byte> buffer;
                buffer.resize(std::min<std::uint64_t>(RangeReader::kRangeBytes, object.bytes - at));
                return source->read(object, at, buffer);
            });
    reader.run(std::move(jobs)).value();
    return bytes_of(index) / since(start);
}

struct EpochRate {
    double whole = 0;   ///< bytes/s from opening to the end of the epoch
    double steady = 0;  ///< over what follows the first quarter
    double first_batch_s = 0;
    double first_batch_share = 0;  ///< bytes fetched for it by those of its samples
    double fetched_share = 0;      ///< bytes fetched by those of the set
};

EpochRate epoch_rate(const std::string& url, const std::filesystem::path& cache, bool shuffle,
                     double set_bytes) {
    const auto start = Clock::now();
    auto dataset = Dataset::open({.remote = url,
                                  .local = cache,
                                  .download_connections = kConnections,
                                  .batch_size = kBatch,
                                  .shuffle = shuffle})
                       .value();
    EpochRate rate;
    Batch batch;
    std::int64_t samples = 0;
    double quarter_s = 0;
    while (dataset->next(batch).value()) {
        if (samples == 0) {
            rate.first_batch_s = since(start);
            rate.first_batch_share = static_cast<double>(dataset->fetch_stats().bytes) /
                                     static_cast<double>(kBatch * kSampleBytes);
        }
        samples += static_cast<std::int64_t>(batch.count);
        if (quarter_s == 0 && samples >= kSamples / 4) quarter_s = since(start);
    }
    TUNE_CHECK(samples == kSamples, "an epoch holds every sample");
    const double seconds = since(start);
    rate.whole = set_bytes / seconds;
    rate.steady = set_bytes * 3 / 4 / (seconds - quarter_s);
    rate.fetched_share = static_cast<double>(dataset->fetch_stats().bytes) / set_bytes;
    return rate;
}

/// The best of three: each run has a cache of its own, which is deleted with it.
EpochRate best_epoch(const std::string& url, const std::filesystem::path& cache, bool shuffle,
                     double set_bytes) {
    EpochRate best;
    for (int i = 0; i < 3; ++i) {
        std::filesystem::remove_all(cache);
        const EpochRate rate = epoch_rate(url, cache, shuffle, set_bytes);
        if (rate.whole > best.whole) best = rate;
    }
    std::filesystem::remove_all(cache);
    return best;
}

void measure(const std::string& kind, const std::string& url, const Index& index,
             const std::filesystem::path& cache, const char* pause) {
    const double bytes = bytes_of(index);
    double raw = 0;
    for (int i = 0; i < 3; ++i) raw = std::max(raw, raw_rate(url, index));
    const std::string name = kind + pause;
    print_figure(name + ", raw reads of the same client", raw / 1e6, "MB/s", "higher");
    const EpochRate plain = best_epoch(url, cache, false, bytes);
    print_figure(name + ", an epoch in order", plain.whole / 1e6, "MB/s", "higher");
    print_figure(name + ", an epoch in order by raw reads", plain.whole / raw, "", "higher", 0.9);
    print_figure(name + ", after its first quarter by raw reads", plain.steady / raw, "", "higher",
                 0.9);
    const EpochRate shuffled = best_epoch(url, cache, true, bytes);
    print_figure(name + ", a shuffled epoch by raw reads", shuffled.whole / raw, "", "higher");
    print_figure(name + ", bytes fetched in a shuffled epoch by those of the set",
                 shuffled.fetched_share, "", "lower");
    print_figure(name + ", first batch, shuffled", shuffled.first_batch_s * 1e3, "ms", "lower");
    print_figure(name + ", bytes before the first batch by those of its samples",
                 shuffled.first_batch_share, "", "lower", 2);
}

/// Processes that read one epoch each through one cache that is empty at first.
void measure_readers(const std::string& url, double set_bytes, const std::filesystem::path& cache) {
    for (const int readers : {1, 2, 4}) {
        std::filesystem::remove_all(cache);
        const auto start = Clock::now();
        for (int reader = 0; reader < readers; ++reader)
            if (::fork() == 0) {
                (void)epoch_rate(url, cache, false, set_bytes);
                ::_exit(0);
            }
        for (int reader = 0; reader < readers; ++reader) ::wait(nullptr);
        print_figure(std::to_string(readers) + " readers of one empty cache, together",
                     readers * set_bytes / since(start) / 1e6, "MB/s", "higher");
    }
    std::filesystem::remove_all(cache);
}

int run() {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("tune-remote-bench-" + random_hex(6));
    const Index index = write_samples(folder / "bucket/set");
    ::sync();  // or the first measurements would share the disk with it
    {
        const LoopbackServer near(folder, 0);
        const LoopbackServer far(folder, 50);
        // Before anything else has threads: the readers are forked. The first one is not counted:
        // the machine gives out memory for the cache's pages that it has never used before.
        if (::fork() == 0) {
            (void)epoch_rate(near.url() + "/bucket/set", folder / "cache", false, bytes_of(index));
            ::_exit(0);
        }
        ::wait(nullptr);
        measure_readers(near.url() + "/bucket/set", bytes_of(index), folder / "cache");
        measure("http", near.url() + "/bucket/set", index, folder / "cache", "");
        measure("http", far.url() + "/bucket/set", index, folder / "cache", " + 50 ms");
        ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
        ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        ::setenv("AWS_REGION", "us-east-1", 1);
        for (const LoopbackServer* server : {&near, &far}) {
            ::setenv("AWS_ENDPOINT_URL", server->url().c_str(), 1);
            if (const auto source = open_source("s3://bucket/set"); !source) {
                std::fprintf(stderr, "%s\n", source.error().text().c_str());
                break;
            }
            measure("S3", "s3://bucket/set", index, folder / "cache",
                    server == &near ? "" : " + 50 ms");
        }
    }
    std::filesystem::remove_all(folder);
    return 0;
}

/// For the peer: writes the data set into `folder`, serves it and prints the address, until the
/// standard input ends.
int serve_only(const std::filesystem::path& folder, int pause_ms) {
    (void)write_samples(folder / "bucket/set");
    ::sync();
    const LoopbackServer server(folder, pause_ms);
    std::printf("%s\n", server.url().c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
}

}  // namespace
}  // namespace tune::loader

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--serve") == 0)
        return tune::loader::serve_only(argv[2], std::atoi(argv[3]));
    return tune::loader::run();
}
