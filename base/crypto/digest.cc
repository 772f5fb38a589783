// Digests by OpenSSL, and HMAC of two of them. What costs most for a short text is not the digest:
// it is looking the algorithm up and making a context, so both are done once.

#include "base/crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "base/check.h"

namespace tune {
namespace {

/// OpenSSL 3 looks an algorithm up by its name whenever EVP_sha256() is used, which takes longer
/// than the digest of a token: here it is looked up once.
const EVP_MD* sha256_algorithm() {
    static const EVP_MD* const found = [] {
        const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
        return fetched != nullptr ? fetched : EVP_sha256();
    }();
    return found;
}

}  // namespace

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

Sha256::Sha256() : digest_(sha256_algorithm()) {
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
    struct Freed {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    // To make a context takes as long as a short digest.
    thread_local const std::unique_ptr<EVP_MD_CTX, Freed> context(EVP_MD_CTX_new());
    Sha256Bytes digest{};
    unsigned length = 0;
    const bool is_done = EVP_DigestInit_ex(context.get(), sha256_algorithm(), nullptr) == 1 &&
                         EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                         EVP_DigestFinal_ex(context.get(), digest.data(), &length) == 1;
    TUNE_CHECK(is_done && length == digest.size(), "OpenSSL has SHA-256");
    return digest;
}

// RFC 2104. OpenSSL's HMAC() takes ten times as long: it looks up a MAC and a digest each time.
Sha256Bytes hmac_sha256(std::string_view key, std::string_view text) {
    constexpr std::size_t kBlockBytes = 64;
    std::string block(key);
    if (key.size() > kBlockBytes) {
        const Sha256Bytes short_key = sha256(key);
        block.assign(short_key.begin(), short_key.end());
    }
    block.resize(kBlockBytes, '\0');
    const auto masked = [&block](char mask) {
        std::string out = block;
        for (char& byte : out) byte = static_cast<char>(byte ^ mask);
        return out;
    };
    const Sha256Bytes inner = sha256(masked(0x36).append(text));
    return sha256(masked(0x5c).append(inner.begin(), inner.end()));
}

bool equal_secrets(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tune
