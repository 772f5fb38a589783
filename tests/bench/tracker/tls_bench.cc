// What TLS costs: log-metric over https:// beside log-metric over http://, in turns on two servers
// that have one disk and the same neighbours. The clients' share of the work is in it: they encrypt
// on the same processors.
//   tls_bench [TURNS]     of two seconds each, default 10

#include <openssl/ssl.h>

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr std::size_t kClients = 16;
constexpr double kTurn_s = 2;

SSL_CTX* client_context() {
    static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    return context;
}

class TlsConnection final : public Connection {
public:
    explicit TlsConnection(std::uint16_t port)
        : Connection(port), tls_(SSL_new(client_context()), SSL_free) {
        require(SSL_set_fd(tls_.get(), fd()) == 1 && SSL_connect(tls_.get()) == 1,
                "no TLS connection");
    }

protected:
    ssize_t put(std::string_view bytes) override {
        return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
    }
    ssize_t get(char* room, std::size_t bytes_max) override {
        return SSL_read(tls_.get(), room, static_cast<int>(bytes_max));
    }

private:
    const std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
};

using Connect = std::function<std::unique_ptr<Connection>(std::uint16_t)>;

/// One of the two servers, with what its turns gave.
class Side {
public:
    Side(std::string name, const fs::path& bin_dir, const std::vector<std::string>& flags,
         const std::string& first_status, Connect connect)
        : name_(std::move(name)),
          server_(bin_dir, flags, first_status),
          connect_(std::move(connect)) {
        const std::unique_ptr<Connection> connection = connect_(server_.port());
        for (std::size_t i = 0; i < kClients; ++i) runs_.push_back(create_run(*connection, "0"));
    }

    void take_turn() {
        std::size_t answered = 0;
        int last = first_step_;
        const auto begin = Clock::now();
        drive(
            server_.port(), kClients,
            [&](std::size_t client, int turn) {
                last = std::max(last, first_step_ + turn);
                return metric_request(runs_[client], first_step_ + turn);
            },
            [&](std::size_t, double) { ++answered; },
            [](double elapsed_s) { return elapsed_s >= kTurn_s; }, connect_);
        first_step_ = last + 1;
        rates_.push_back(static_cast<double>(answered) / seconds_since(begin));
        std::fprintf(stderr, "%s %.0f/s\n", name_.c_str(), rates_.back());
    }

    [[nodiscard]] double rate() const { return quantile(rates_, 0.5); }

private:
    const std::string name_;
    Server server_;
    Connect connect_;
    std::vector<std::string> runs_;
    int first_step_ = 0;
    std::vector<double> rates_;
};

/// Made anew each time, with a key of the kind that is usual today.
std::vector<std::string> certificate_flags(const fs::path& folder) {
    const std::string certificate = folder / "server.pem";
    const std::string key = folder / "server.key";
    const std::string made =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -keyout '" +
        key + "' -out '" + certificate + "' 2>/dev/null";
    require(std::system(made.c_str()) == 0, "openssl does not make a certificate");
    return {"--tls-cert", certificate, "--tls-key", key};
}

void measure(const fs::path& bin_dir, int turns) {
    const fs::path folder = fresh_folder(bin_dir);
    {
        Side plain("plain", bin_dir, {}, "200", std::make_unique<Connection, const std::uint16_t&>);
        Side tls("TLS", bin_dir, certificate_flags(folder), "400",
                 std::make_unique<TlsConnection, const std::uint16_t&>);
        for (int turn = 0; turn < turns; ++turn) {
            plain.take_turn();
            tls.take_turn();
        }
        report("log-metric through TLS, share of the rate without", tls.rate() / plain.rate(), "",
               "higher", 0.7);
    }
    fs::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench([&] {
        measure(fs::absolute(fs::path(argv[0])).parent_path(), argc > 1 ? std::atoi(argv[1]) : 10);
    });
}
