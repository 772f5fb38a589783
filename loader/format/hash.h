#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// The 17 names of mosaicml-streaming 0.13.0, sorted: blake2b blake2s md5 sha1 sha224 sha256 sha384
/// sha3_224 sha3_256 sha3_384 sha3_512 sha512 xxh128 xxh32 xxh3_128 xxh3_64 xxh64.
[[nodiscard]] const std::vector<std::string_view>& hash_names();

/// One hash over bytes that come in pieces.
class Hasher {
public:
    /// Errors: kInvalidParameterValue for an unknown name (the message lists the known ones),
    /// kInternalError when the machine's OpenSSL refuses the algorithm.
    [[nodiscard]] static Result<Hasher> make(std::string_view name);
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;
    ~Hasher();

    void update(std::span<const std::byte> bytes);
    /// Lower-case hex; xxhash values in their canonical (big-endian) form. Call once.
    [[nodiscard]] std::string finish();

    class Impl;

private:
    explicit Hasher(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// The hash of `bytes`. Errors: those of Hasher::make.
[[nodiscard]] Result<std::string> hash_hex(std::string_view name, std::span<const std::byte> bytes);

/// xxh3_64 as a number: the quickest of them, for the loader's own records.
[[nodiscard]] std::uint64_t xxh3_64(std::span<const std::byte> bytes);

}  // namespace tune::loader
