// A token is "tune-<id>-<secret>": the id finds the row, the digest of the whole is compared, once:
// its holder shows the same text with every request, and a digest takes longer than the rest. A
// change is on disk before it counts, so that a revoked token does not come back with a restart.

#include "tracker/auth/token_book.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/text/hex.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kPrefix = "tune-";
constexpr std::size_t kTokenIdDigits = 12;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kTokenSize = kPrefix.size() + kTokenIdDigits + 1 + 2 * kSecretBytes;

std::string digest_of(std::string_view token) {
    return hex_encode(sha256(token));
}

Json json_of(const TokenInfo& token) {
    return {{"token_id", token.id},
            {"name", token.name},
            {"scope", scope_name(token.most)},
            {"created_ms", token.created_ms},
            {"expires_ms", token.expires_ms},
            {"sha256", token.sha256},
            {"user_id", token.user_id}};
}

std::optional<TokenInfo> info_of(const Json& row) {
    if (!row.is_object()) return std::nullopt;
    for (const char* key : {"token_id", "name", "scope", "sha256"})
        if (!row.contains(key) || !row[key].is_string()) return std::nullopt;
    for (const char* key : {"created_ms", "expires_ms"})
        if (!row.contains(key) || !row[key].is_number_integer()) return std::nullopt;
    const std::optional<Access> most = scope_of(row["scope"].get<std::string>());
    if (!most) return std::nullopt;
    // Files from before there were users have none.
    const Json user_id = row.value("user_id", Json(0));
    if (!user_id.is_number_integer()) return std::nullopt;
    return TokenInfo{.id = row["token_id"].get<std::string>(),
                     .name = row["name"].get<std::string>(),
                     .most = *most,
                     .created_ms = row["created_ms"].get<std::int64_t>(),
                     .expires_ms = row["expires_ms"].get<std::int64_t>(),
                     .sha256 = row["sha256"].get<std::string>(),
                     .user_id = user_id.get<std::int64_t>()};
}

}  // namespace

std::optional<Access> scope_of(std::string_view name) {
    if (name == "read") return Access::kRead;
    if (name == "agent") return Access::kAgent;
    if (name == "user") return Access::kRun;
    return std::nullopt;
}

std::string_view scope_name(Access most) {
    if (most <= Access::kRead) return "read";
    return most <= Access::kAgent ? "agent" : "user";
}

Result<std::unique_ptr<TokenBook>> TokenBook::open(std::filesystem::path file, const Clock& clock) {
    std::unique_ptr<TokenBook> book(new TokenBook(std::move(file), clock));
    const Result<std::string> text = read_file(book->file_, 4u << 20);
    if (!text && text.error().code == Code::kResourceDoesNotExist) return book;
    if (!text) return text.error();
    const Error unreadable{Code::kDataLoss, book->file_.string() +
                                                " is no list of tokens; restore it, or delete it "
                                                "and make the tokens anew"};
    const Result<Json> rows = parse_json(*text);
    if (!rows || !rows->is_array()) return unreadable;
    std::vector<TokenInfo> tokens;
    for (const Json& row : *rows) {
        std::optional<TokenInfo> info = info_of(row);
        if (!info) return unreadable;
        tokens.push_back(std::move(*info));
    }
    book->take(std::move(tokens));
    return book;
}

void TokenBook::take(std::vector<TokenInfo> tokens) {
    tokens_ = std::move(tokens);
    proven_.assign(tokens_.size(), {});
    rows_.clear();
    for (std::size_t row = 0; row < tokens_.size(); ++row) rows_.emplace(tokens_[row].id, row);
}

const TokenInfo* TokenBook::row_of(std::string_view id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() || has_expired(tokens_[found->second]) ? nullptr
                                                                       : &tokens_[found->second];
}

bool TokenBook::has_expired(const TokenInfo& token) const {
    return token.expires_ms != 0 && token.expires_ms <= clock_.now_ms();
}

Result<void> TokenBook::save(const std::vector<TokenInfo>& tokens) const {
    Json rows = Json::array();
    for (const TokenInfo& token : tokens) rows.push_back(json_of(token));
    TUNE_TRY_VOID(write_file_atomic(file_, to_text(rows)));
    std::error_code ignored;
    std::filesystem::permissions(
        file_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
    return {};
}

Result<TokenBook::Made> TokenBook::create(std::string name, Access most, std::int64_t lives_ms,
                                          std::int64_t user_id) {
    if (name.size() > kTokenNameBytesMax)
        return Error{
            Code::kInvalidParameterValue,
            "the name of a token has at most " + std::to_string(kTokenNameBytesMax) + " bytes"};
    const std::lock_guard writing(writing_);
    std::vector<TokenInfo> tokens = list();
    if (tokens.size() >= kTokensMax)
        return Error{Code::kResourceExhausted,
                     "there are " + std::to_string(kTokensMax) + " tokens; revoke some first"};
    Made made;
    made.info.id = random_hex(kTokenIdDigits / 2);
    made.info.name = std::move(name);
    made.info.most = most;
    made.info.user_id = user_id;
    made.info.created_ms = clock_.now_ms();
    made.info.expires_ms = lives_ms == 0 ? 0 : made.info.created_ms + lives_ms;
    made.token = std::string(kPrefix) + made.info.id + "-" + random_hex(kSecretBytes);
    made.info.sha256 = digest_of(made.token);
    tokens.push_back(made.info);
    TUNE_TRY_VOID(save(tokens));
    const std::lock_guard lock(mutex_);
    take(std::move(tokens));
    return made;
}

std::vector<TokenInfo> TokenBook::list() const {
    const std::lock_guard lock(mutex_);
    std::vector<TokenInfo> living;
    for (const TokenInfo& token : tokens_)
        if (!has_expired(token)) living.push_back(token);
    return living;
}

Result<void> TokenBook::revoke(std::string_view id, std::optional<std::int64_t> user_id) {
    const std::lock_guard writing(writing_);
    std::vector<TokenInfo> tokens = list();
    const auto is_meant = [id, user_id](const TokenInfo& token) {
        return token.id == id && (!user_id || token.user_id == *user_id);
    };
    if (std::erase_if(tokens, is_meant) == 0)
        return Error{Code::kResourceDoesNotExist, "there is no token '" + std::string(id) + "'"};
    TUNE_TRY_VOID(save(tokens));
    {
        const std::lock_guard lock(mutex_);
        take(std::move(tokens));
    }
    if (revoked_) revoked_();
    return {};
}

bool TokenBook::has(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    return row_of(id) != nullptr;
}

std::string_view TokenBook::id_of(std::string_view token) {
    if (token.size() != kTokenSize || !token.starts_with(kPrefix)) return {};
    return token.substr(kPrefix.size(), kTokenIdDigits);
}

std::optional<TokenPrincipal> TokenBook::find(std::string_view token) const {
    const std::string_view id = id_of(token);
    if (id.empty()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const TokenInfo* const found = row_of(id);
    if (found == nullptr) return std::nullopt;
    std::string& proven = proven_[static_cast<std::size_t>(found - tokens_.data())];
    if (!equal_secrets(proven, token)) {
        if (!equal_secrets(found->sha256, digest_of(token))) return std::nullopt;
        proven = token;
    }
    return TokenPrincipal{found->name.empty() ? found->id : found->name, found->most,
                          found->user_id};
}

}  // namespace tune::tracker
