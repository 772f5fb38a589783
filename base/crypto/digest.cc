#include "base/crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "base/check.h"

namespace tune {

struct Digest::Context {
    EVP_MD_CTX* evp = EVP_MD_CTX_new();
    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { EVP_MD_CTX_free(evp); }
};

/// No context where OpenSSL refuses the algorithm.
Digest::Digest(const evp_md_st* algorithm) : context_(std::make_unique<Context>()) {
    if (algorithm == nullptr || EVP_DigestInit_ex(context_->evp, algorithm, nullptr) != 1)
        context_.reset();
}

Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

std::optional<Digest> Digest::make(const char* openssl_name) {
    Digest digest(EVP_get_digestbyname(openssl_name));
    if (digest.context_ == nullptr) return std::nullopt;
    return digest;
}

void Digest::update(std::string_view bytes) {
    TUNE_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1,
               "OpenSSL continues a digest");
}

std::string Digest::finish() {
    std::string bytes(EVP_MAX_MD_SIZE, '\0');
    unsigned length = 0;
    TUNE_CHECK(EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(bytes.data()),
                                  &length) == 1,
               "OpenSSL ends a digest");
    bytes.resize(length);
    return bytes;
}

Sha256::Sha256() : digest_(EVP_sha256()) {
    TUNE_CHECK(digest_.context_ != nullptr, "OpenSSL has SHA-256");
}

Sha256Bytes Sha256::finish() {
    const std::string bytes = digest_.finish();
    Sha256Bytes digest{};
    TUNE_CHECK(bytes.size() == digest.size(), "SHA-256 has 32 bytes");
    std::copy(bytes.begin(), bytes.end(), digest.begin());
    return digest;
}

Sha256Bytes sha256(std::string_view bytes) {
    Sha256 digest;
    digest.update(bytes);
    return digest.finish();
}

Sha256Bytes hmac_sha256(std::string_view key, std::string_view text) {
    Sha256Bytes digest{};
    unsigned length = 0;
    const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            digest.data(), &length);
    TUNE_CHECK(done != nullptr && length == digest.size(), "OpenSSL has HMAC-SHA256");
    return digest;
}

bool equal_secrets(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tune
