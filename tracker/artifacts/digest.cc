#include "tracker/artifacts/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace tune::tracker {
namespace {

int digest_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

}  // namespace

struct Sha256::Context {
    EVP_MD_CTX* evp = EVP_MD_CTX_new();
    ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    TUNE_CHECK(context_->evp && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1,
               "OpenSSL has SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
    TUNE_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1, "SHA-256 goes on");
}

Sha256Bytes Sha256::finish() {
    Sha256Bytes digest{};
    unsigned length = 0;
    TUNE_CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), &length) == 1 && length == 32,
               "SHA-256 ends");
    return digest;
}

std::string digest_hex(const Sha256Bytes& digest) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
        text.push_back(kHex[byte >> 4]);
        text.push_back(kHex[byte & 15]);
    }
    return text;
}

bool parse_digest_hex(std::string_view text, Sha256Bytes& digest) {
    if (text.size() != digest.size() * 2) return false;
    for (std::size_t i = 0; i < digest.size(); ++i) {
        const int high = digest_digit(text[2 * i]);
        const int low = digest_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        digest[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return true;
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
    Sha256Bytes digest{};
    unsigned length = 0;
    const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            digest.data(), &length);
    TUNE_CHECK(done && length == digest.size(), "OpenSSL has HMAC-SHA256");
    return digest_hex(digest);
}

bool equal_secrets(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tune::tracker
