#pragma once
// What the server shows and asks for in a TLS handshake, from files that may change while it runs.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

struct ssl_ctx_st;

namespace tune::tracker {

/// All of them PEM.
struct TlsFiles {
    /// The server's certificate, followed by those between it and its authority.
    std::string certificate;
    /// Its key, without a passphrase.
    std::string key;
    /// Who signs the certificates of clients; empty: clients are not asked for one.
    std::string client_authority = {};
    /// Who shows none is not let in at all.
    bool is_client_required = false;
};

/// The newest certificate that could be used. A connection keeps the one that its handshake began
/// with. Thread-safe, look() and reload() from one thread at a time.
class TlsIdentity {
public:
    /// Errors: kInvalidParameterValue, in one sentence, for a file that is missing or no PEM, or a
    /// key that does not belong to the certificate.
    [[nodiscard]] static Result<std::shared_ptr<TlsIdentity>> load(TlsFiles files);

    [[nodiscard]] std::shared_ptr<ssl_ctx_st> current() const;

    /// Reads the files anew. Errors: as load(); then the certificate in use stays.
    [[nodiscard]] Result<void> reload();

    /// Whether the files differ from those that were last read, and have not changed since the last
    /// look: who replaces several is given the time between two looks. Costs a few stat calls.
    [[nodiscard]] bool has_changed();

    [[nodiscard]] bool asks_clients() const { return !files_.client_authority.empty(); }
    /// When the certificate in use ends, in seconds since 1970.
    [[nodiscard]] std::int64_t expires_s() const;

private:
    struct Loaded {
        std::shared_ptr<ssl_ctx_st> context;
        std::int64_t expires_s = 0;
    };
    /// One stat of each file; names of files that are not there have zeros.
    struct Stamp {
        std::uint64_t inode = 0;
        std::int64_t size_bytes = 0;
        std::int64_t changed_ns = 0;
        bool operator==(const Stamp&) const = default;
    };
    using Stamps = std::vector<Stamp>;

    explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
    [[nodiscard]] static Result<Loaded> read(const TlsFiles& files);
    [[nodiscard]] Stamps stamps() const;

    const TlsFiles files_;
    Stamps read_stamps_;
    Stamps looked_stamps_;
    mutable std::mutex mutex_;
    Loaded loaded_;  // guarded by mutex_
};

}  // namespace tune::tracker
