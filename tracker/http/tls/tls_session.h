#pragma once
// The TLS of one connection, on a non-blocking socket: what it can do at once it does, else it says
// what to wait for.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace tune::tracker {

/// One call at a time; which thread makes it does not matter. The calling thread has SIGPIPE
/// blocked (block_sigpipe).
class TlsSession {
public:
    enum class Step {
        kDone,
        kWantsRead,   // again, as soon as the socket can be read
        kWantsWrite,  // the same for writing
        kFailed,      // the connection is of no further use
    };

    /// `socket` stays the caller's and open for as long as steps are made.
    TlsSession(const std::shared_ptr<ssl_ctx_st>& context, int socket);
    ~TlsSession();
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    /// Goes on with the handshake. Costs a signature by the server's key: 0.05 ms with ECDSA P-256,
    /// 1 ms with RSA of 2048 bits.
    [[nodiscard]] Step handshake();

    /// Reads what is there, up to the whole of `room`; kDone with `count` 0: the peer has closed in
    /// an orderly way.
    [[nodiscard]] Step read(std::span<char> room, std::size_t& count);
    /// Whether a read may bring bytes although the socket has none.
    [[nodiscard]] bool has_pending() const;

    /// Writes at least a byte of `bytes` (not empty) for kDone. After kWantsWrite the same bytes
    /// are to be given again, at the same or another place.
    [[nodiscard]] Step write(std::string_view bytes, std::size_t& count);

    /// Says that nothing more comes, so that the peer can tell the end from a cut. Nothing where
    /// something was left unsent.
    void say_end();

    /// Why the certificate that the peer has shown was not accepted, or empty.
    [[nodiscard]] std::string certificate_fault() const;

    /// The peer has shown a certificate that an authority of clients has signed.
    [[nodiscard]] bool has_client_certificate() const;

private:
    [[nodiscard]] Step step_of(int result);

    std::shared_ptr<ssl_st> ssl_;
    bool is_established_ = false;
    bool has_failed_ = false;
    bool is_write_pending_ = false;
};

}  // namespace tune::tracker
