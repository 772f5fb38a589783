#pragma once
// The tokens that the owner made for others: an agent on another machine, a notebook, a dashboard.
// Each reaches as far as its scope says and until it expires or is revoked.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tracker/api/http/access.h"

namespace tune::tracker {

/// More are refused: each is one look-up, but a file that grows for ever was a mistake somewhere.
inline constexpr std::size_t kTokensMax = 1000;
inline constexpr std::size_t kTokenNameBytesMax = 100;

/// What is known of a token: never the token itself.
struct TokenInfo {
    std::string id;
    std::string name;
    Access most = Access::kRead;
    std::int64_t created_ms = 0;
    std::int64_t expires_ms = 0;  ///< 0: never
    std::string sha256 = {};      ///< of the whole token, as hex
    std::int64_t user_id = 0;     ///< whom it acts as; 0: the owner
};

/// A file of the data folder, `tokens.json`, that holds their SHA-256: 256 random bits need no
/// slower hash. Thread-safe; create() and revoke() wait for the disk.
class TokenBook {
public:
    /// Reads the file, if there is one. Errors: kDataLoss with the path if it cannot be understood.
    /// `clock` outlives the book.
    [[nodiscard]] static Result<std::unique_ptr<TokenBook>> open(std::filesystem::path file,
                                                                 const Clock& clock);

    struct Made {
        TokenInfo info;
        std::string token;  ///< shown once
    };
    /// `lives_ms`: 0 is for ever. Errors: kInvalidParameterValue for a name that is too long,
    /// kResourceExhausted beyond kTokensMax, kInternalError if the file cannot be written.
    [[nodiscard]] Result<Made> create(std::string name, Access most, std::int64_t lives_ms,
                                      std::int64_t user_id = 0);
    /// Those that have not expired, oldest first.
    [[nodiscard]] std::vector<TokenInfo> list() const;
    /// With `user_id` only a token of that user. Errors: kResourceDoesNotExist; kInternalError if
    /// the file cannot be written.
    [[nodiscard]] Result<void> revoke(std::string_view id,
                                      std::optional<std::int64_t> user_id = {});

    /// Whom the token is for; nothing for one that is unknown or has expired. Cost: one SHA-256
    /// when it comes for the first time, then a comparison with what came: 50 ns.
    [[nodiscard]] std::optional<TokenPrincipal> find(std::string_view token) const;

    /// Whether a token of this id is known and has not expired.
    [[nodiscard]] bool has(std::string_view id) const;
    /// The id in the text of a token; empty for another text.
    [[nodiscard]] static std::string_view id_of(std::string_view token);

    /// `changed` is called after each revocation, from any thread, without a lock. Set it before
    /// the first.
    void on_revoked(std::function<void()> changed) { revoked_ = std::move(changed); }

private:
    TokenBook(std::filesystem::path file, const Clock& clock)
        : file_(std::move(file)), clock_(clock) {}

    [[nodiscard]] bool has_expired(const TokenInfo& token) const;
    /// REQUIRES: mutex_ is held, or nobody else has the book.
    void take(std::vector<TokenInfo> tokens);
    [[nodiscard]] const TokenInfo* row_of(std::string_view id) const;
    [[nodiscard]] Result<void> save(const std::vector<TokenInfo>& tokens) const;

    const std::filesystem::path file_;
    const Clock& clock_;
    std::mutex writing_;  // one change at a time
    mutable std::mutex mutex_;
    /// Oldest first, and where each lies by its id.
    std::vector<TokenInfo> tokens_;                           // guarded by mutex_
    std::unordered_map<std::string_view, std::size_t> rows_;  // guarded by mutex_; into tokens_
    /// The text of tokens that proved right, by row; in memory only.
    mutable std::vector<std::string> proven_;  // guarded by mutex_
    std::function<void()> revoked_;
};

/// What a token of this scope reaches: read, agent or user; nothing for another word.
[[nodiscard]] std::optional<Access> scope_of(std::string_view name);
[[nodiscard]] std::string_view scope_name(Access most);

}  // namespace tune::tracker
