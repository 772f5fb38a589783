// The acceptor spreads connections over the workers and counts them against the limit before it
// hands them on. Beyond it a few get a 429, the rest are closed, so a flood costs no memory. stop()
// closes the acceptor first, drains, then closes what is left after the grace period.

#include "tracker/http/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <future>
#include <optional>

#include "base/log.h"
#include "base/system/address.h"
#include "tracker/http/session/session.h"
#include "tracker/http/tls/handshake.h"
#include "tracker/http/worker.h"

namespace tune::tracker {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// Connections beyond the limit that get a 429; more are closed without a response.
constexpr std::size_t kRefusalsMax = 64;
constexpr int kPoolThreads = 2;
constexpr int kHandshakeThreads = 2;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
/// Refused connections are logged no more often than this.
constexpr std::int64_t kRefusalLog_ms = 60'000;

/// How many connections there may be. Raises the soft limit of open files for them: 1,024, the
/// usual default, is far less.
Result<std::size_t> make_room(std::size_t wanted) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted > 0 ? wanted : kConnectionsMax;
    const rlim_t most = limit.rlim_max > 2 * kOtherDescriptors ? limit.rlim_max - kOtherDescriptors
                                                               : limit.rlim_max / 2;
    if (wanted > most)
        return Error{Code::kInvalidParameterValue,
                     std::to_string(wanted) + " connections need " +
                         std::to_string(wanted + kOtherDescriptors) +
                         " open files, and this process may have " +
                         std::to_string(limit.rlim_max) +
                         ". Raise that limit (ulimit -Hn, LimitNOFILE= of systemd), or give at "
                         "most --connections " +
                         std::to_string(most) + "."};
    const auto connections = wanted > 0 ? wanted : std::min<std::size_t>(most, kConnectionsMax);
    const rlim_t files = std::min<rlim_t>(limit.rlim_max, connections + kOtherDescriptors);
    if (limit.rlim_cur < files) {
        limit.rlim_cur = files;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return connections;
}

/// A server that other machines can reach is asked for by this machine's name. A page that wants
/// to reach it by DNS rebinding would have to be served under that very name.
ServerOptions with_own_name(ServerOptions options) {
    char name[256] = {};
    if (!is_loopback(options.address) && ::gethostname(name, sizeof name - 1) == 0 &&
        name[0] != '\0')
        options.allowed_hosts.emplace_back(name);
    return options;
}

Error unknown_host(const std::string& host) {
    return {Code::kInvalidParameterValue,
            "Cannot listen on '" + host +
                "': this is neither an address nor a name that resolves to one."};
}

Error listen_error(const ServerOptions& options, const error_code& ec) {
    const std::string address = options.host + ":" + std::to_string(options.port);
    if (ec == boost::asio::error::address_in_use)
        return {Code::kInvalidState, "Cannot listen on " + address +
                                         ": the port is in use by another program. Stop it, or "
                                         "choose another port with --port (0 takes a free one)."};
    if (ec == boost::asio::error::access_denied)
        return {Code::kInvalidState,
                "Cannot listen on " + address +
                    ": ports below 1024 need privileges. Choose another port with --port."};
    return {Code::kInvalidState, "Cannot listen on " + address + ": " + ec.message() +
                                     ". Give an address of this machine with --host."};
}

/// Calls `work` on the worker's thread and waits for it.
template <class Work>
void run_on(Worker& worker, Work work) {
    auto done = std::make_shared<std::promise<void>>();
    auto finished = done->get_future();
    worker.post([work, done] {
        work();
        done->set_value();
    });
    finished.wait();
}

}  // namespace

struct Server::State {
    State(const ServerOptions& options, const Router& router)
        : context(std::make_shared<ServerContext>(options, router)), pool(kPoolThreads) {
        context->pool = &pool;
        if (options.tls) context->handshake_pool = &handshake_pool.emplace(kHandshakeThreads);
        const int shortest_ms =
            std::min({options.idle_timeout_ms, options.request_timeout_ms,
                      options.event_keep_alive_ms, options.handshake_timeout_ms, 4000});
        for (int i = 0; i < std::max(1, options.threads); ++i)
            workers.push_back(
                std::make_shared<Worker>(std::max(10, shortest_ms / 4), workers.size()));
        if (options.statistics) options.statistics->bind(router, workers.size());
        acceptor.emplace(workers[0]->context());
        accept_timer.emplace(workers[0]->context());
    }

    Result<void> listen();
    void accept();
    void on_accept(const error_code& ec, tcp::socket socket);
    void log_refusal(const ConnectionTicket& ticket);

    std::shared_ptr<ServerContext> context;
    std::vector<std::shared_ptr<Worker>> workers;
    WorkPool pool;  // as the next one, it ends before the workers: its jobs hold their connections
    std::optional<WorkPool> handshake_pool;
    std::optional<tcp::acceptor> acceptor;
    std::optional<boost::asio::steady_timer> accept_timer;
    std::size_t next_worker = 0;
    std::int64_t refusal_logged_ms = -kRefusalLog_ms;
    std::uint16_t port = 0;
    bool stopped = false;
};

Result<void> Server::State::listen() {
    const ServerOptions& options = context->options;
    error_code ec;
    const tcp::endpoint endpoint(boost::asio::ip::make_address(options.address, ec), options.port);
    if (ec) return unknown_host(options.host);
    acceptor->open(endpoint.protocol(), ec);
    if (!ec) acceptor->set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor->bind(endpoint, ec);
    if (!ec) acceptor->listen(boost::asio::socket_base::max_listen_connections, ec);
    if (ec) return listen_error(options, ec);
    port = acceptor->local_endpoint(ec).port();
    return {};
}

void Server::State::accept() {
    const std::shared_ptr<Worker>& worker = workers[next_worker];
    acceptor->async_accept(worker->context(), [this](const error_code& ec, tcp::socket socket) {
        on_accept(ec, std::move(socket));
    });
}

void Server::State::on_accept(const error_code& ec, tcp::socket socket) {
    if (ec == boost::asio::error::operation_aborted || !acceptor->is_open()) return;
    if (ec) {
        // Mostly EMFILE. Trying again at once would spin.
        log_warning("cannot accept a connection: " + ec.message());
        accept_timer->expires_after(kAcceptPause);
        accept_timer->async_wait([this](const error_code& failed) {
            if (!failed && acceptor->is_open()) accept();
        });
        return;
    }
    error_code unknown;
    const auto remote = socket.remote_endpoint(unknown);
    auto ticket = std::make_unique<ConnectionTicket>(
        context, unknown ? std::string() : remote.address().to_string());
    const ServerOptions& options = context->options;
    const auto is_beyond = [&](std::size_t more) {
        return ticket->count() > options.connections_max + more ||
               ticket->count_of_address() > options.connections_per_client_max + more;
    };
    if (is_beyond(0)) log_refusal(*ticket);
    if (HttpStatistics* const statistics = options.statistics.get()) {
        statistics->connection_opened();
        if (is_beyond(0)) statistics->connection_refused();
    }
    if (is_beyond(kRefusalsMax)) {
        error_code ignored;
        socket.close(ignored);
    } else {
        const std::shared_ptr<Worker>& worker = workers[next_worker];
        worker->dispatch([worker, shared = context, ticket = std::move(ticket),
                          moved = std::move(socket)]() mutable {
            if (shared->options.tls)
                shake_hands(std::move(moved), worker, shared, std::move(ticket));
            else
                serve_connection(ClientStream(std::move(moved)), worker, shared, std::move(ticket));
        });
        next_worker = (next_worker + 1) % workers.size();
    }
    accept();
}

void Server::State::log_refusal(const ConnectionTicket& ticket) {
    const std::int64_t now_ms = Worker::now_ms();
    if (now_ms - refusal_logged_ms < kRefusalLog_ms) return;
    refusal_logged_ms = now_ms;
    const ServerOptions& options = context->options;
    if (ticket.count() > options.connections_max)
        log_warning("connections are refused: there are " +
                    std::to_string(options.connections_max) +
                    ", the limit (--connections, and the limit of open files)");
    else
        log_warning("connections of " + ticket.address() + " are refused: it has " +
                    std::to_string(options.connections_per_client_max) +
                    " without a credential, its share (--connections-per-client)");
}

Result<std::string> resolve_host(const std::string& host) {
    boost::asio::io_context context;
    tcp::resolver resolver(context);
    error_code ec;
    const auto found = resolver.resolve(host, "0", tcp::resolver::passive, ec);
    if (ec || found.empty()) return unknown_host(host);
    return found.begin()->endpoint().address().to_string();
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options, const Router& router) {
    TUNE_TRY(connections, make_room(options.connections_max));
    options.connections_max = connections;
    if (options.address.empty()) {
        TUNE_TRY(address, resolve_host(options.host));
        options.address = std::move(address);
    }
    auto state = std::make_unique<State>(with_own_name(std::move(options)), router);
    if (Result<void> listening = state->listen(); !listening) {
        state->stopped = true;
        return std::move(listening).error();
    }
    for (const auto& worker : state->workers) worker->start();
    return std::unique_ptr<Server>(new Server(std::move(state)));
}

void Server::serve() {
    State* const state = state_.get();
    state->workers[0]->post([state] { state->accept(); });
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, const Router& router) {
    TUNE_TRY(server, listen(std::move(options), router));
    server->serve();
    return server;
}

Server::~Server() {
    stop();
}

std::uint16_t Server::port() const {
    return state_->port;
}

std::string Server::url() const {
    std::string host = state_->context->options.host;
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    const std::string scheme = state_->context->options.tls ? "https://" : "http://";
    return scheme + host + ":" + std::to_string(state_->port);
}

void Server::stop() {
    State& s = *state_;
    if (s.stopped) return;
    s.stopped = true;
    run_on(*s.workers[0], [&s] {
        error_code ignored;
        s.acceptor->close(ignored);
        s.accept_timer->cancel();
    });
    for (const auto& worker : s.workers) run_on(*worker, [&worker] { worker->drain_all(); });
    {
        std::unique_lock lock(s.context->mutex);
        s.context->none_left.wait_for(
            lock, std::chrono::milliseconds(s.context->options.drain_timeout_ms),
            [&s] { return s.context->connection_count == 0; });
    }
    for (const auto& worker : s.workers) run_on(*worker, [&worker] { worker->close_all(); });
    for (const auto& worker : s.workers) worker->finish();
}

}  // namespace tune::tracker
