#pragma once
// Keyset page tokens: the sort values of the last row of a page, and a fingerprint of the query
// they belong to, as URL-safe base64 of JSON. Opaque to clients.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tune::tracker::search {

using TokenValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// Fingerprint of what a token is valid for (filter, order, ids, view).
[[nodiscard]] std::uint64_t query_fingerprint(std::string_view canonical_query);

[[nodiscard]] std::string make_page_token(std::uint64_t fingerprint,
                                          const std::vector<TokenValue>& last_row);

/// The values given to make_page_token. Errors: kInvalidParameterValue "Invalid page token, could
/// not base64-decode" or "Invalid page token, ..." when it is damaged, of another query, or does
/// not hold `value_count` values.
[[nodiscard]] Result<std::vector<TokenValue>> read_page_token(std::uint64_t fingerprint,
                                                              std::string_view token,
                                                              std::size_t value_count);

/// A token beside what it was made for, so that who sends it with another query can be told what
/// differs.
struct ScopedToken {
    std::string scope;  ///< UTF-8
    std::string token;  ///< of make_page_token
};

[[nodiscard]] std::string make_scoped_token(const ScopedToken& scoped);

/// Errors: kInvalidParameterValue "Invalid page token: ..." for what make_scoped_token did not
/// make.
[[nodiscard]] Result<ScopedToken> read_scoped_token(std::string_view text);

}  // namespace tune::tracker::search
