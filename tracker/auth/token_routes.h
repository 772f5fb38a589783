#pragma once
// Tokens over REST, for the owner: POST, GET and DELETE of /api/2.0/tune/tokens.

#include "tracker/api/http/router.h"
#include "tracker/auth/token_book.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// What a token is to be.
struct TokenRequest {
    std::string name = {};
    Access most = {};
    std::int64_t lives_ms = 0;  ///< 0: for ever
};

/// Errors: kInvalidParameterValue.
[[nodiscard]] Result<TokenRequest> read_token_request(const Request& request);
/// What may be shown of a token.
[[nodiscard]] Json token_json(const TokenInfo& token);

/// Both outlive the router's use; changes wait for the disk on a reader thread of `store`.
void add_token_routes(Router& router, Store& store, TokenBook& book);

}  // namespace tune::tracker
