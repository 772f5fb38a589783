#pragma once
// The HTTP/1.1 server: connections, limits and safety rules around a Router. It knows nothing of
// what the routes do.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "tracker/api/http/router.h"

namespace tune::tracker {

class HttpStatistics;
class TlsIdentity;

/// Open connections of one client address, so that one client cannot shut out all others. Behind a
/// proxy all clients have one address: `tune server --connections-per-client`. A connection on
/// which an agent or an attempt has shown its credential does not count: thousands of agents may
/// come from behind one address.
inline constexpr std::size_t kConnectionsPerClientMax = 1536;

/// Descriptors that a server may need besides its connections: files, database, libraries.
inline constexpr std::size_t kOtherDescriptors = 1024;

/// Bytes of JSON bodies held at one time by all connections together, as they are unfolded; one
/// more is 429. Without it kConnectionsMax bodies of kJsonBodyBytesMax would be 32 GB.
inline constexpr std::size_t kBodyBytesTotalMax = 256u << 20;

/// TLS handshakes under way, of one client address and in all; what comes beyond is closed at once.
/// Each holds about 20 kB until it is done or its time is up.
inline constexpr std::size_t kHandshakesPerClientMax = 256;
inline constexpr std::size_t kHandshakesMax = 1024;
inline constexpr int kHandshakeTimeout_ms = 10'000;

/// Bytes of large answers that wait for their clients to read them, all together; one more is 429.
/// A page of 50,000 runs is 30 MB and more, and a client has 30 s to begin to read it.
inline constexpr std::size_t kAnswerBytesTotalMax = 256u << 20;

struct ServerOptions {
    /// Address or name to listen on.
    std::string host = "127.0.0.1";
    /// What resolve_host() has found for `host`; empty: it is looked up again.
    std::string address = {};
    /// 0 takes any free port; see Server::port().
    std::uint16_t port = 5000;
    /// Network threads; each runs its own event loop, and a connection stays on one of them.
    int threads = 2;
    /// Host headers answered besides localhost, private IP literals, `host`, the address that was
    /// connected to and (unless it is bound to loopback) this machine's name: exact names,
    /// "*.suffix", or "*" for any.
    std::vector<std::string> allowed_hosts = {};
    /// Origins (scheme://host[:port]) that may send state-changing requests besides the server's
    /// own; "*" for any.
    std::vector<std::string> allowed_origins = {};
    /// Speaks HTTPS with this certificate; null: plain HTTP.
    std::shared_ptr<TlsIdentity> tls = {};
    /// Where requests are counted; empty: nowhere.
    std::shared_ptr<HttpStatistics> statistics = {};
    /// Answers to loopback peers are not compressed: there it only costs time.
    bool compress_for_loopback = false;
    /// Open connections of one client address; more are answered with 429.
    std::size_t connections_per_client_max = kConnectionsPerClientMax;
    /// Open connections in all; more are answered with 429, then closed unanswered. 0:
    /// kConnectionsMax, or fewer where the hard limit of open files leaves fewer.
    std::size_t connections_max = 0;
    /// The limits, changed by tests only.
    std::size_t body_bytes_total_max = kBodyBytesTotalMax;
    std::size_t answer_bytes_total_max = kAnswerBytesTotalMax;
    std::size_t header_bytes_max = kHeaderBytesMax;
    std::size_t json_body_bytes_max = kJsonBodyBytesMax;
    std::size_t handshakes_per_client_max = kHandshakesPerClientMax;
    std::size_t handshakes_max = kHandshakesMax;
    int handshake_timeout_ms = kHandshakeTimeout_ms;
    int idle_timeout_ms = kIdleTimeout_s * 1000;
    int request_timeout_ms = kRequestTimeout_s * 1000;
    /// How long stop() lets running requests finish.
    int drain_timeout_ms = 5000;
    /// Silence on an event stream after which a comment is sent, so that proxies keep it open.
    int event_keep_alive_ms = 15'000;
};

/// The address that a server listens on for this host: itself, or what its name stands for, which
/// is looked up. Errors: kInvalidParameterValue for a host that cannot be resolved.
[[nodiscard]] Result<std::string> resolve_host(const std::string& host);

/// Listens from listen() to stop(). Thread-safe.
class Server {
public:
    /// Takes the port; clients can connect from now on and wait until serve(). Errors:
    /// kInvalidState, in one sentence that says what to do, if the port is in use or may not be
    /// used; kInvalidParameterValue for a host that cannot be resolved, or for more connections
    /// than this process may open files. `router` is complete and
    /// outlives the server.
    [[nodiscard]] static Result<std::unique_ptr<Server>> listen(ServerOptions options,
                                                                const Router& router);
    /// Answers from now on. To be called once.
    void serve();
    /// listen() and serve(). Errors: those of listen().
    [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerOptions options,
                                                               const Router& router);
    /// Stops.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// The port it listens on.
    [[nodiscard]] std::uint16_t port() const;

    /// "http://127.0.0.1:5000", or https, usable in a browser on this machine.
    [[nodiscard]] std::string url() const;

    /// Stops accepting, closes idle connections and event streams, lets running requests finish for
    /// drain_timeout_ms, then closes the rest and joins all threads. Answers given later are
    /// dropped. Idempotent; blocks.
    void stop();

private:
    struct State;
    explicit Server(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tune::tracker
