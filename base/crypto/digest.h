#pragma once
// Digests by OpenSSL's libcrypto, and HMAC-SHA256, which makes a signature or a capability.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_st;  // OpenSSL's EVP_MD, without its headers

namespace tune {

/// The digest of bytes that come piece by piece, by any algorithm. Not thread-safe.
class Digest {
public:
    /// Nothing when OpenSSL has no `openssl_name` ("SHA3-256") or its policy forbids it.
    [[nodiscard]] static std::optional<Digest> make(const char* openssl_name);
    Digest(Digest&&) noexcept;
    Digest& operator=(Digest&&) noexcept;
    ~Digest();

    void update(std::string_view bytes);
    /// The raw bytes of the digest. REQUIRES: called once, last.
    [[nodiscard]] std::string finish();

private:
    friend class Sha256;
    struct Context;
    explicit Digest(const evp_md_st* algorithm);
    std::unique_ptr<Context> context_;
};

using Sha256Bytes = std::array<std::uint8_t, 32>;

/// SHA-256 of bytes that come piece by piece. Not thread-safe. Cost: about 2 GB/s where the
/// processor has instructions for it, a quarter of that elsewhere.
class Sha256 {
public:
    Sha256();

    void update(std::string_view bytes) { digest_.update(bytes); }
    /// REQUIRES: called once, last.
    [[nodiscard]] Sha256Bytes finish();

private:
    Digest digest_;
};

[[nodiscard]] Sha256Bytes sha256(std::string_view bytes);
[[nodiscard]] Sha256Bytes hmac_sha256(std::string_view key, std::string_view text);

/// Compares in a time that does not depend on where the texts differ.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace tune
