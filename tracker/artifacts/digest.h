#pragma once
// SHA-256 and HMAC-SHA256: what parts of uploads are known by, and what makes a URL a capability.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tune::tracker {

using Sha256Bytes = std::array<std::uint8_t, 32>;

/// The digest of bytes that come piece by piece. Not thread-safe. Cost: about 2 GB/s where the
/// processor has instructions for it, a quarter of that elsewhere.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;

    void update(std::string_view bytes);
    /// REQUIRES: called once, last.
    [[nodiscard]] Sha256Bytes finish();

private:
    struct Context;
    std::unique_ptr<Context> context_;
};

/// 64 lower-case hex digits.
[[nodiscard]] std::string digest_hex(const Sha256Bytes& digest);

/// Reads what digest_hex() wrote; false for anything else.
[[nodiscard]] bool parse_digest_hex(std::string_view text, Sha256Bytes& digest);

/// The HMAC-SHA256 of `text` under `key`, as hex.
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view text);

/// Compares in a time that does not depend on where the texts differ.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace tune::tracker
