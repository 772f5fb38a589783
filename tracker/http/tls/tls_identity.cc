// Each reading makes a context of its own, with keys of its own for session tickets: after a change
// of the files no old session is taken up again, so a withdrawn authority of clients is gone.

#include "tracker/http/tls/tls_identity.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <string_view>

namespace tune::tracker {
namespace {

/// Forward secrecy and authenticated encryption only; TLS 1.3 has no others.
constexpr const char* kCiphersOfTls12 =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
constexpr const char* kGroups = "X25519:P-256:P-384";
/// How long a client may take up a session without a whole handshake.
constexpr long kSessionLife_s = 2 * 3600;
/// In the form of RFC 7301: length and name.
constexpr std::array<unsigned char, 9> kProtocols = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr std::array<unsigned char, 4> kSessionContext = {'t', 'u', 'n', 'e'};

std::string last_reason() {
    const unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    const char* const reason = ERR_reason_error_string(code);
    return reason != nullptr ? reason : "unknown error";
}

Error refusal(const std::string& what, const std::string& path, const std::string& why) {
    return {Code::kInvalidParameterValue, what + " '" + path + "' " + why};
}

Result<void> check_file(const std::string& what, const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return refusal(what, path, "is not there");
    if (std::filesystem::is_directory(path, ignored))
        return refusal(what, path, "is a folder; name a PEM file");
    return {};
}

/// A key with a passphrase is an error: nobody may be there to type it.
int no_passphrase(char*, int, int, void*) {
    return -1;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* offered, unsigned int offered_length, void*) {
    unsigned char* chosen = nullptr;
    const int found = SSL_select_next_proto(&chosen, out_length, kProtocols.data(),
                                            kProtocols.size(), offered, offered_length);
    *out = chosen;
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void set_rules(SSL_CTX* context) {
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(context, kCiphersOfTls12);
    SSL_CTX_set1_groups_list(context, kGroups);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    // Sessions are kept by the clients, in tickets: here they cost no memory.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(context, kSessionContext.data(), kSessionContext.size());
    SSL_CTX_set_timeout(context, kSessionLife_s);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
}

Result<void> use_certificate(SSL_CTX* context, const TlsFiles& files) {
    TUNE_TRY_VOID(check_file("the certificate", files.certificate));
    TUNE_TRY_VOID(check_file("the key", files.key));
    if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
        return refusal("the certificate", files.certificate,
                       "cannot be used: " + last_reason() + "; it must be PEM");
    if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
        return refusal("the key", files.key,
                       "cannot be used with the certificate '" + files.certificate +
                           "': " + last_reason() + "; it must be PEM without a passphrase");
    if (SSL_CTX_check_private_key(context) != 1)
        return refusal("the key", files.key,
                       "does not belong to the certificate '" + files.certificate + "'");
    return {};
}

Result<void> ask_clients(SSL_CTX* context, const TlsFiles& files) {
    if (files.client_authority.empty()) return {};
    const std::string what = "the authority of clients";
    TUNE_TRY_VOID(check_file(what, files.client_authority));
    STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files.client_authority.c_str());
    if (names == nullptr ||
        SSL_CTX_load_verify_file(context, files.client_authority.c_str()) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return refusal(what, files.client_authority,
                       "cannot be used: " + last_reason() + "; it must be PEM");
    }
    SSL_CTX_set_client_CA_list(context, names);
    const int required = files.is_client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, nullptr);
    return {};
}

std::int64_t end_of(const SSL_CTX* context) {
    const X509* const certificate = SSL_CTX_get0_certificate(context);
    std::tm end{};
    if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
        return 0;
    return ::timegm(&end);
}

}  // namespace

Result<TlsIdentity::Loaded> TlsIdentity::read(const TlsFiles& files) {
    ERR_clear_error();
    const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    if (!context) return Error{Code::kInternalError, "TLS cannot be used: " + last_reason()};
    set_rules(context.get());
    TUNE_TRY_VOID(use_certificate(context.get(), files));
    TUNE_TRY_VOID(ask_clients(context.get(), files));
    return Loaded{context, end_of(context.get())};
}

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(TlsFiles files) {
    std::shared_ptr<TlsIdentity> identity(new TlsIdentity(std::move(files)));
    TUNE_TRY_VOID(identity->reload());
    return identity;
}

Result<void> TlsIdentity::reload() {
    read_stamps_ = looked_stamps_ = stamps();  // before: what changes while they are read is seen
    TUNE_TRY(loaded, read(files_));
    const std::lock_guard lock(mutex_);
    loaded_ = std::move(loaded);
    return {};
}

std::shared_ptr<ssl_ctx_st> TlsIdentity::current() const {
    const std::lock_guard lock(mutex_);
    return loaded_.context;
}

std::int64_t TlsIdentity::expires_s() const {
    const std::lock_guard lock(mutex_);
    return loaded_.expires_s;
}

TlsIdentity::Stamps TlsIdentity::stamps() const {
    Stamps all;
    for (const std::string* path : {&files_.certificate, &files_.key, &files_.client_authority}) {
        struct stat status {};
        Stamp stamp;
        if (!path->empty() && ::stat(path->c_str(), &status) == 0)
            stamp = {status.st_ino, status.st_size,
                     status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
        all.push_back(stamp);
    }
    return all;
}

bool TlsIdentity::has_changed() {
    Stamps now = stamps();
    const bool is_still = now == looked_stamps_;
    looked_stamps_ = std::move(now);
    return is_still && looked_stamps_ != read_stamps_;
}

}  // namespace tune::tracker
