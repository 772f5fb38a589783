// The parameters are OWASP's for scrypt and Werkzeug's default: N = 2^15, r = 8, p = 1.

#include "base/crypto/password.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "base/text/number_text.h"

namespace tune {
namespace {

struct ScryptCost {
    std::uint64_t n = 32768;
    std::uint64_t r = 8;
    std::uint64_t p = 1;
};

constexpr std::uint64_t kMemoryBytesMax = 160u << 20;
constexpr std::size_t kKeyBytes = 64;
constexpr std::size_t kSaltBytes = 8;

std::optional<std::string> scrypt_hex(std::string_view password, std::string_view salt,
                                      const ScryptCost& cost) {
    std::array<std::uint8_t, kKeyBytes> key{};
    const auto* salt_bytes = reinterpret_cast<const unsigned char*>(salt.data());
    const int done =
        EVP_PBE_scrypt(password.data(), password.size(), salt_bytes, salt.size(), cost.n, cost.r,
                       cost.p, kMemoryBytesMax, key.data(), key.size());
    if (done != 1) return std::nullopt;
    return hex_encode(key);
}

/// The text up to `mark`, cut off `rest` together with the mark.
std::string_view take_until(std::string_view& rest, char mark) {
    const std::size_t end = rest.find(mark);
    const std::string_view taken = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return taken;
}

bool read_number(std::string_view text, std::uint64_t& number) {
    const std::optional<std::uint64_t> found = number_from_text<std::uint64_t>(text);
    number = found.value_or(0);
    return found.has_value();
}

/// Nothing for what is not scrypt, or costs too much.
std::optional<ScryptCost> read_cost(std::string_view method) {
    if (take_until(method, ':') != "scrypt") return std::nullopt;
    ScryptCost cost;
    if (!read_number(take_until(method, ':'), cost.n)) return std::nullopt;
    if (!read_number(take_until(method, ':'), cost.r)) return std::nullopt;
    if (!read_number(method, cost.p)) return std::nullopt;
    const bool is_usual = cost.n >= 1024 && cost.n <= 131072 && cost.r >= 1 && cost.r <= 8 &&
                          cost.p >= 1 && cost.p <= 4;
    if (!is_usual || cost.n * cost.p > 131072) return std::nullopt;
    return cost;
}

}  // namespace

Result<std::string> hash_password(std::string_view password) {
    const ScryptCost cost;
    const std::string salt = random_hex(kSaltBytes);
    const std::optional<std::string> hash = scrypt_hex(password, salt, cost);
    if (!hash)
        return Error{Code::kResourceExhausted,
                     "a password could not be hashed: it takes 32 MB of memory; try again"};
    return "scrypt:" + std::to_string(cost.n) + ":" + std::to_string(cost.r) + ":" +
           std::to_string(cost.p) + "$" + salt + "$" + *hash;
}

bool check_password(std::string_view stored, std::string_view password) {
    std::string_view rest = stored;
    const std::optional<ScryptCost> cost = read_cost(take_until(rest, '$'));
    if (!cost) return false;
    const std::string_view salt = take_until(rest, '$');
    const std::optional<std::string> hash = scrypt_hex(password, salt, *cost);
    return hash && equal_secrets(*hash, rest);
}

}  // namespace tune
