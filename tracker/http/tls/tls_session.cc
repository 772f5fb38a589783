#include "tracker/http/tls/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace tune::tracker {

TlsSession::TlsSession(const std::shared_ptr<ssl_ctx_st>& context, int socket)
    : ssl_(SSL_new(context.get()), SSL_free) {
    if (ssl_ && SSL_set_fd(ssl_.get(), socket) == 1)
        SSL_set_accept_state(ssl_.get());
    else
        has_failed_ = true;
}

TlsSession::~TlsSession() = default;

/// What a call that did not succeed asks for. Errors of a thread are kept in one queue, which is
/// emptied before each call, so that an old one is not taken for this one's.
TlsSession::Step TlsSession::step_of(int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ: return Step::kWantsRead;
        case SSL_ERROR_WANT_WRITE: return Step::kWantsWrite;
        default: has_failed_ = true; return Step::kFailed;
    }
}

TlsSession::Step TlsSession::handshake() {
    if (has_failed_) return Step::kFailed;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) return step_of(result);
    is_established_ = true;
    return Step::kDone;
}

TlsSession::Step TlsSession::read(std::span<char> room, std::size_t& count) {
    count = 0;
    if (has_failed_) return Step::kFailed;
    while (count < room.size()) {
        ERR_clear_error();
        std::size_t got = 0;
        const int result = SSL_read_ex(ssl_.get(), room.data() + count, room.size() - count, &got);
        count += got;
        if (result == 1) continue;
        if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) return Step::kDone;
        const Step step = step_of(result);
        return count > 0 ? Step::kDone : step;
    }
    return Step::kDone;
}

bool TlsSession::has_pending() const {
    return SSL_has_pending(ssl_.get()) == 1;
}

TlsSession::Step TlsSession::write(std::string_view bytes, std::size_t& count) {
    count = 0;
    if (has_failed_) return Step::kFailed;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
    is_write_pending_ = result != 1;
    return result == 1 ? Step::kDone : step_of(result);
}

void TlsSession::say_end() {
    if (!is_established_ || has_failed_ || is_write_pending_) return;
    ERR_clear_error();
    // Best effort, once: nobody waits for the peer's own end.
    static_cast<void>(SSL_shutdown(ssl_.get()));
    ERR_clear_error();
}

std::string TlsSession::certificate_fault() const {
    const long result = ssl_ ? SSL_get_verify_result(ssl_.get()) : X509_V_OK;
    return result == X509_V_OK ? std::string() : X509_verify_cert_error_string(result);
}

bool TlsSession::has_client_certificate() const {
    return SSL_get0_peer_certificate(ssl_.get()) != nullptr &&
           SSL_get_verify_result(ssl_.get()) == X509_V_OK;
}

}  // namespace tune::tracker
