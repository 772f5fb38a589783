#pragma once
// gzip of whole bodies.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// Whether an Accept-Encoding header asks for gzip (and does not refuse it with q=0).
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

/// `text` as one gzip member, at the fastest level.
[[nodiscard]] std::string gzip(std::string_view text);

/// Whether there is room for `bytes` in all. Called before each growth of what is unfolded.
using MayHold = std::function<bool(std::size_t bytes)>;

/// The content of a gzip (or zlib) stream. Stops at `bytes_max`, so that a few kB cannot unfold to
/// gigabytes. Errors: kRequestEntityTooLarge; kRequestLimitExceeded where `may_hold` says no;
/// kBadRequest for a damaged stream.
[[nodiscard]] Result<std::string> gunzip(std::string_view data, std::size_t bytes_max,
                                         const MayHold& may_hold = {});

}  // namespace tune::tracker
