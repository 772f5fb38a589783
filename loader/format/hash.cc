// The digests of shard files by the names of mosaicml-streaming. OpenSSL has the cryptographic ones
// (base/crypto/digest.h), xxHash the fast ones, whose canonical form (big-endian) is what Python's
// xxhash prints.

#include "loader/format/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/crypto/digest.h"
#include "base/text/hex.h"

namespace tune::loader {

class Hasher::Impl {
public:
    virtual ~Impl() = default;
    virtual void update(std::span<const std::byte> bytes) = 0;
    virtual std::string finish() = 0;
};

namespace {

class OpensslHash final : public Hasher::Impl {
public:
    explicit OpensslHash(Digest digest) : digest_(std::move(digest)) {}
    void update(std::span<const std::byte> bytes) override {
        digest_.update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    std::string finish() override {
        std::string text;
        for (const char byte : digest_.finish()) append_hex(text, byte);
        return text;
    }

private:
    Digest digest_;
};

template <class Canonical>
std::string canonical_hex(const Canonical& canonical) {
    return hex_encode(canonical.digest);
}

class Xxh32 final : public Hasher::Impl {
public:
    Xxh32() : state_(XXH32_createState(), &XXH32_freeState) { XXH32_reset(state_.get(), 0); }
    void update(std::span<const std::byte> bytes) override {
        XXH32_update(state_.get(), bytes.data(), bytes.size());
    }
    std::string finish() override {
        XXH32_canonical_t canonical;
        XXH32_canonicalFromHash(&canonical, XXH32_digest(state_.get()));
        return canonical_hex(canonical);
    }

private:
    std::unique_ptr<XXH32_state_t, decltype(&XXH32_freeState)> state_;
};

class Xxh64 final : public Hasher::Impl {
public:
    Xxh64() : state_(XXH64_createState(), &XXH64_freeState) { XXH64_reset(state_.get(), 0); }
    void update(std::span<const std::byte> bytes) override {
        XXH64_update(state_.get(), bytes.data(), bytes.size());
    }
    std::string finish() override {
        XXH64_canonical_t canonical;
        XXH64_canonicalFromHash(&canonical, XXH64_digest(state_.get()));
        return canonical_hex(canonical);
    }

private:
    std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
};

class Xxh3 final : public Hasher::Impl {
public:
    explicit Xxh3(bool wide) : wide_(wide), state_(XXH3_createState(), &XXH3_freeState) {
        if (wide_)
            XXH3_128bits_reset(state_.get());
        else
            XXH3_64bits_reset(state_.get());
    }
    void update(std::span<const std::byte> bytes) override {
        if (wide_)
            XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
        else
            XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
    }
    std::string finish() override {
        if (wide_) {
            XXH128_canonical_t canonical;
            XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
            return canonical_hex(canonical);
        }
        XXH64_canonical_t canonical;
        XXH64_canonicalFromHash(&canonical, XXH3_64bits_digest(state_.get()));
        return canonical_hex(canonical);
    }

private:
    bool wide_;
    std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

constexpr std::array<std::pair<std::string_view, const char*>, 12> kOpensslNames = {{
    {"blake2b", "BLAKE2b512"},
    {"blake2s", "BLAKE2s256"},
    {"md5", "MD5"},
    {"sha1", "SHA1"},
    {"sha224", "SHA224"},
    {"sha256", "SHA256"},
    {"sha384", "SHA384"},
    {"sha512", "SHA512"},
    {"sha3_224", "SHA3-224"},
    {"sha3_256", "SHA3-256"},
    {"sha3_384", "SHA3-384"},
    {"sha3_512", "SHA3-512"},
}};

std::string unknown_hash(std::string_view name) {
    std::string message = "unknown hash '" + std::string(name) + "'; known are";
    for (const std::string_view known : hash_names()) message += " " + std::string(known);
    return message;
}

}  // namespace

const std::vector<std::string_view>& hash_names() {
    static const std::vector<std::string_view> names = {
        "blake2b", "blake2s",  "md5",      "sha1",     "sha224",   "sha256",
        "sha384",  "sha3_224", "sha3_256", "sha3_384", "sha3_512", "sha512",
        "xxh128",  "xxh32",    "xxh3_128", "xxh3_64",  "xxh64"};
    return names;
}

Hasher::Hasher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

Result<Hasher> Hasher::make(std::string_view name) {
    if (name == "xxh32") return Hasher(std::make_unique<Xxh32>());
    if (name == "xxh64") return Hasher(std::make_unique<Xxh64>());
    if (name == "xxh3_64") return Hasher(std::make_unique<Xxh3>(false));
    if (name == "xxh128" || name == "xxh3_128") return Hasher(std::make_unique<Xxh3>(true));
    for (const auto& [known, openssl_name] : kOpensslNames) {
        if (known != name) continue;
        std::optional<Digest> digest = Digest::make(openssl_name);
        if (!digest)
            return Error{Code::kInternalError,
                         "this machine's OpenSSL does not allow the hash " + std::string(name)};
        return Hasher(std::make_unique<OpensslHash>(std::move(*digest)));
    }
    return Error{Code::kInvalidParameterValue, unknown_hash(name)};
}

void Hasher::update(std::span<const std::byte> bytes) {
    impl_->update(bytes);
}

std::string Hasher::finish() {
    return impl_->finish();
}

Result<std::string> hash_hex(std::string_view name, std::span<const std::byte> bytes) {
    TUNE_TRY(hasher, Hasher::make(name));
    hasher.update(bytes);
    return hasher.finish();
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace tune::loader
