#pragma once
// Tokens over REST, for the owner: POST, GET and DELETE of /api/2.0/tune/tokens.

#include "tracker/api/http/router.h"
#include "tracker/auth/token_book.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Both outlive the router's use; changes wait for the disk on a reader thread of `store`.
void add_token_routes(Router& router, Store& store, TokenBook& book);

}  // namespace tune::tracker
