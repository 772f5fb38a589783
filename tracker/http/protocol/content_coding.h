#pragma once
// gzip of whole bodies.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// Whether an Accept-Encoding header asks for gzip (and does not refuse it with q=0).
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

/// `text` as one gzip member, at the fastest level.
[[nodiscard]] std::string gzip(std::string_view text);

/// The content of a gzip (or zlib) stream. Stops at `bytes_max`, so that a few kB cannot unfold to
/// gigabytes. Errors: kRequestEntityTooLarge, kBadRequest for a damaged stream.
[[nodiscard]] Result<std::string> gunzip(std::string_view data, std::size_t bytes_max);

}  // namespace tune::tracker
